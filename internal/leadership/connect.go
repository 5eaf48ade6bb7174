package leadership

import (
	"fmt"
	"net"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// userAgent is added to the user agent of what leadership asks the API server.
const userAgent = "leader-election"

// Connection is leadership's own way to the API server, so that a renewal never waits for the operator's other requests:
// not for a limit, and not behind them on a shared connection.
type Connection struct {
	// Leases reads and writes Leases.
	Leases coordinationv1client.LeasesGetter
	// Client reads and writes all other kinds, without caches.
	Client client.Client
}

// Connect makes a connection like the shared one, for kinds that the scheme has.
func Connect(shared *rest.Config, scheme *runtime.Scheme) (Connection, error) {
	own := rest.AddUserAgent(rest.CopyConfig(shared), userAgent)
	own.QPS, own.Burst = -1, 0
	if own.Dial == nil {
		// Connections are shared by configuration, and a dialer makes it another one.
		own.Dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	web, err := rest.HTTPClientFor(own)
	if err != nil {
		return Connection{}, fmt.Errorf("connect for leadership: %w", err)
	}
	leases, err := coordinationv1client.NewForConfigAndClient(own, web)
	if err != nil {
		return Connection{}, fmt.Errorf("make the client for the Lease: %w", err)
	}
	others, err := client.New(own, client.Options{Scheme: scheme, HTTPClient: web})
	if err != nil {
		return Connection{}, fmt.Errorf("make the client for the Holder: %w", err)
	}
	return Connection{Leases: leases, Client: others}, nil
}
