package forward_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/heliostat-io/heliostat/internal/cli/forward"
	"github.com/heliostat-io/heliostat/internal/cli/podtest"
)

// web serves a greeting and returns where.
func web(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello from the Pod") }))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

var head = types.NamespacedName{Namespace: "ml", Name: "head"}

func TestConnectionsReachThePod(t *testing.T) {
	cases := map[string]podtest.Protocol{
		"given the API server takes websockets, then they are used": podtest.WebSocket,
		"given it takes only SPDY, then that is used":               podtest.SPDY,
	}
	for name, protocol := range cases {
		t.Run(name, func(t *testing.T) {
			server := podtest.New(t, protocol)
			server.Set(head, podtest.Pod{Ports: map[int32]string{8265: web(t)}})

			f, err := forward.Start(t.Context(), server.Config(), head, []forward.Port{{Remote: 8265}}, io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if f.Ports[0].Local == 0 || f.Ports[0].Remote != 8265 {
				t.Fatalf("ports are %+v", f.Ports)
			}
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			response, err := client.Get("http://" + f.Address(0))
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			if body, err := io.ReadAll(response.Body); string(body) != "hello from the Pod" {
				t.Errorf("got %q, %v", body, err)
			}
		})
	}
}

func TestAForwardingEnds(t *testing.T) {
	cases := map[string]struct {
		end  func(*podtest.Server, *forward.Forwarding)
		want error
	}{
		"given the Pod is gone, then the loss is said":  {func(s *podtest.Server, _ *forward.Forwarding) { s.Remove(head) }, forward.ErrLost},
		"given it is closed, then that is not an error": {func(_ *podtest.Server, f *forward.Forwarding) { f.Close() }, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := podtest.New(t, podtest.WebSocket)
			server.Set(head, podtest.Pod{Ports: map[int32]string{8265: web(t)}})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			f, err := forward.Start(ctx, server.Config(), head, []forward.Port{{Remote: 8265}}, io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			cancel() // It bounds the start only.
			tc.end(server, f)
			<-f.Done()
			if !errors.Is(f.Err(), tc.want) {
				t.Errorf("Err = %v, want %v", f.Err(), tc.want)
			}
		})
	}
}

func TestTheContextHoldsWhileTheAPIServerDoesNotAnswer(t *testing.T) {
	reached, release := make(chan struct{}, 2), make(chan struct{}) // by a websocket, and perhaps by SPDY after that
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		reached <- struct{}{}
		<-release
	}))
	defer server.Close()
	defer close(release)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-reached
		cancel()
	}()
	_, err := forward.Start(ctx, &rest.Config{Host: server.URL}, head, []forward.Port{{Remote: 8265}}, io.Discard)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Start returned %v", err)
	}
}

func TestALocalPortThatIsTakenIsNamed(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	taken := int32(listener.Addr().(*net.TCPAddr).Port)
	server := podtest.New(t, podtest.WebSocket)
	server.Set(head, podtest.Pod{})

	_, err = forward.Start(t.Context(), server.Config(), head, []forward.Port{{Local: taken, Remote: 8265}}, io.Discard)
	if !errors.Is(err, forward.ErrPortTaken) || !strings.Contains(err.Error(), listener.Addr().String()[len("127.0.0.1:"):]) {
		t.Errorf("Start returned %v", err)
	}
}

func TestAPodThatIsNotThereIsSaid(t *testing.T) {
	_, err := forward.Start(t.Context(), podtest.New(t, podtest.WebSocket).Config(), head, []forward.Port{{Remote: 8265}}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "ml/head") || !strings.Contains(err.Error(), "not found") {
		t.Errorf("Start returned %v", err)
	}
}
