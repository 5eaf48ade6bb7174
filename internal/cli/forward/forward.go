// Package forward carries ports of a Pod to this machine, as kubectl port-forward does.
package forward

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"syscall"

	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/heliostat-io/heliostat/internal/cli/kube"
)

// localhost is where local ports listen: on both its addresses, as those of kubectl do.
const localhost = "localhost"

// ErrPortTaken says that something else on this machine listens on a local port.
var ErrPortTaken = errors.New("it is in use on this machine")

// ErrLost says that the connection to the Pod has ended, most often because the Pod has.
var ErrLost = portforward.ErrLostConnectionToPod

// Port is one port to carry.
type Port struct {
	// Local is the port on this machine; 0 chooses a free one.
	Local int32
	// Remote is the port in the Pod.
	Remote int32
}

// Forwarding is a running port forwarding.
type Forwarding struct {
	// Ports are the ports in the order in which they were asked for, with the local ports that were chosen.
	Ports []Port

	end  context.CancelFunc
	done chan struct{}
	err  error
}

// Done is closed when the forwarding has ended.
func (f *Forwarding) Done() <-chan struct{} { return f.done }

// Err says why the forwarding has ended. It is nil when Close has ended it. Call it after Done.
func (f *Forwarding) Err() error { return f.err }

// Close ends the forwarding and waits until its local ports are free.
func (f *Forwarding) Close() {
	f.end()
	<-f.done
}

// Address is the address of the local port at that place in Ports, for example "localhost:8265".
func (f *Forwarding) Address(i int) string {
	return net.JoinHostPort(localhost, strconv.Itoa(int(f.Ports[i].Local)))
}

// Start forwards the ports of a Pod and returns once they listen. The context bounds how long that may take, and nothing
// more: the forwarding lives until Close is called or the connection is lost. The error wraps ErrPortTaken when a local port
// is in use. What the forwarding has to say of single connections goes to log.
func Start(ctx context.Context, config *rest.Config, pod types.NamespacedName, ports []Port, log io.Writer) (*Forwarding, error) {
	if err := free(ctx, ports); err != nil {
		return nil, err
	}
	dialer, err := dialerFor(config, pod)
	if err != nil {
		return nil, fmt.Errorf("forward ports of Pod %s: %w", pod, err)
	}
	wanted := make([]string, len(ports))
	for i, port := range ports {
		wanted[i] = fmt.Sprintf("%d:%d", port.Local, port.Remote)
	}
	logger := funcr.New(func(_, text string) { _, _ = fmt.Fprintln(log, text) }, funcr.Options{})
	life, end := context.WithCancel(klog.NewContext(context.WithoutCancel(ctx), logger))
	ready := make(chan struct{})
	forwarder, err := portforward.NewOnAddressesForStreamingWithContext(life, dialer, []string{localhost}, wanted, ready, io.Discard, log)
	if err != nil {
		end()
		return nil, fmt.Errorf("forward ports of Pod %s: %w", pod, err)
	}
	f := &Forwarding{end: end, done: make(chan struct{})}
	go func() {
		defer close(f.done)
		f.err = forwarder.ForwardPorts()
	}()
	select {
	case <-f.done:
		end()
		return nil, fmt.Errorf("forward ports of Pod %s: %w", pod, f.err)
	case <-ctx.Done():
		// Not waited for: the library cannot be interrupted while it connects. It ends right after that.
		end()
		return nil, fmt.Errorf("forward ports of Pod %s: %w", pod, context.Cause(ctx))
	case <-ready:
	}
	chosen, err := forwarder.GetPorts()
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("forward ports of Pod %s: %w", pod, err)
	}
	for _, port := range chosen {
		f.Ports = append(f.Ports, Port{Local: int32(port.Local), Remote: int32(port.Remote)})
	}
	return f, nil
}

// free makes sure that the local ports are free. The library only fails when none of them is.
func free(ctx context.Context, ports []Port) error {
	for _, port := range ports {
		if port.Local == 0 {
			continue
		}
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port.Local))))
		if errors.Is(err, syscall.EADDRINUSE) {
			return fmt.Errorf("local port %d cannot be used: %w; stop the program that listens there and try again", port.Local, ErrPortTaken)
		}
		if err != nil {
			return fmt.Errorf("local port %d cannot be used: %w", port.Local, err)
		}
		if err := listener.Close(); err != nil {
			return fmt.Errorf("local port %d cannot be used: %w", port.Local, err)
		}
	}
	return nil
}

// dialerFor connects through a websocket, or through SPDY where the API server or a proxy before it takes none.
func dialerFor(config *rest.Config, pod types.NamespacedName) (httpstream.Dialer, error) {
	set, err := corev1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	address := set.RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	old := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, address)
	modern, err := portforward.NewSPDYOverWebsocketDialerForStreaming(address, config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	return portforward.NewFallbackDialerForStreaming(modern, old, kube.RefusesWebsocket), nil
}
