package podtest

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	portforwardv1 "k8s.io/apimachinery/pkg/util/portforward"
	remotecommandv1 "k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// forward serves port forwarding: each connection is a stream for its data and one for its errors.
func (s *Server) forward(w http.ResponseWriter, r *http.Request, name types.NamespacedName, pod Pod) {
	accept := func(stream httpstream.Stream, replied <-chan struct{}) error {
		go func() {
			<-replied
			if stream.Headers().Get(corev1.StreamType) == corev1.StreamTypeError {
				_ = stream.Close()
				return
			}
			s.carry(stream, pod)
		}()
		return nil
	}
	var connection httpstream.Connection
	switch {
	case s.protocol == SPDY && websocket.IsWebSocketUpgrade(r):
		http.Error(w, "no websockets here", http.StatusBadRequest)
		return
	case s.protocol == SPDY:
		if _, err := httpstream.Handshake(r, w, []string{portforwardv1.PortForwardV1Name}); err != nil {
			s.t.Error(err)
			return
		}
		connection = spdy.NewResponseUpgrader().UpgradeResponse(w, r, accept)
	default:
		upgrader := websocket.Upgrader{Subprotocols: []string{portforwardv1.WebsocketsSPDYTunnelingPortForwardV1}}
		socket, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			s.t.Error(err)
			return
		}
		if connection, err = spdy.NewServerConnection(portforward.NewTunnelingConnection("server", socket), accept); err != nil {
			s.t.Error(err)
			return
		}
	}
	if connection == nil {
		return
	}
	s.onRemove(name, func() { _ = connection.Close() })
	<-connection.CloseChan()
}

// carry joins a stream with a connection to what serves the port.
func (s *Server) carry(stream httpstream.Stream, pod Pod) {
	defer func() { _ = stream.Reset() }()
	port, err := strconv.ParseInt(stream.Headers().Get(corev1.PortHeader), 10, 32)
	if err != nil {
		s.t.Error(err)
		return
	}
	connection, err := net.Dial("tcp", pod.Ports[int32(port)])
	if err != nil {
		return
	}
	defer connection.Close()
	go func() {
		_, _ = io.Copy(connection, stream)
		_ = connection.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(stream, connection)
	_ = stream.Close()
}

// The channels of the protocol for commands.
const (
	channelOutput = 1
	channelStatus = 3
)

// exec serves a command.
func (s *Server) exec(w http.ResponseWriter, r *http.Request, pod Pod) {
	upgrader := websocket.Upgrader{Subprotocols: []string{remotecommandv1.StreamProtocolV5Name}}
	socket, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		s.t.Error(err)
		return
	}
	defer socket.Close()
	output, code := pod.Exec(r.URL.Query()["command"])
	status := metav1.Status{Status: metav1.StatusSuccess}
	if code != 0 {
		status = metav1.Status{Status: metav1.StatusFailure, Reason: remotecommandv1.NonZeroExitCodeReason,
			Message: "command terminated", Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{
				{Type: remotecommandv1.ExitCodeCauseType, Message: strconv.Itoa(code)},
			}}}
	}
	encoded, err := json.Marshal(status)
	if err != nil {
		s.t.Error(err)
		return
	}
	_ = socket.WriteMessage(websocket.BinaryMessage, append([]byte{channelOutput}, output...))
	_ = socket.WriteMessage(websocket.BinaryMessage, append([]byte{channelStatus}, encoded...))
	_ = socket.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Time{})
}
