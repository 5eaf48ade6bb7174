package job

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/forward"
	"github.com/heliostat-io/heliostat/internal/cli/head"
	"github.com/heliostat-io/heliostat/internal/ray"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
)

// link leads to the dashboard of a cluster. It is made again when it breaks, for example because the head was replaced.
type link struct {
	run     *run
	cluster *rayv1.RayCluster
	token   string
	// forwarding is nil while there is none, and for good when the user gave an address.
	forwarding *forward.Forwarding
	// pod is the UID of the Pod that it leads to.
	pod types.UID
}

// authorization is the usual header for tokens.
const authorization = "Authorization"

// connect finds the token and waits until the dashboard can be reached.
func (r *run) connect(ctx context.Context, cluster *rayv1.RayCluster) (*link, error) {
	token, err := r.token(ctx, cluster)
	if err != nil {
		return nil, err
	}
	l := &link{run: r, cluster: cluster, token: token}
	limited, cancel := context.WithTimeout(ctx, r.pace.connect)
	defer cancel()
	var last error
	err = wait.PollUntilContextCancel(limited, r.pace.look, true, func(ctx context.Context) (bool, error) {
		client, err := l.dashboard(ctx)
		if err == nil {
			err = client.Healthy(ctx)
		}
		if errors.Is(err, dashboard.ErrUnauthorized) {
			return false, err
		}
		if err != nil && limited.Err() == nil {
			last = err
			r.progress.say("Waiting for the dashboard: %v", err)
		}
		return err == nil, nil
	})
	if errors.Is(err, dashboard.ErrUnauthorized) {
		last = err
	}
	if err != nil {
		l.close()
		return nil, fmt.Errorf("the dashboard of RayCluster %s/%s cannot be reached: %w", cluster.Namespace, cluster.Name, errors.Join(last, ctx.Err()))
	}
	return l, nil
}

// dashboard returns a client of the dashboard.
func (l *link) dashboard(ctx context.Context) (*dashboard.Client, error) {
	address := l.run.flags.address
	if address == "" {
		if err := l.forward(ctx); err != nil {
			return nil, err
		}
		address = "http://" + l.forwarding.Address(0)
	}
	transport := &http.Transport{TLSClientConfig: l.run.plan.tls, MaxIdleConnsPerHost: 1, DisableKeepAlives: true}
	if l.run.flags.address != "" {
		transport.Proxy = http.ProxyFromEnvironment
	}
	header := l.run.plan.header.Clone()
	options := []dashboard.Option{}
	if l.token != "" {
		if header.Get(authorization) == "" {
			header.Set(authorization, "Bearer "+l.token)
		}
		// Proxies in between may keep the usual header for themselves.
		options = append(options, dashboard.WithToken(func(context.Context) (string, error) { return l.token, nil }))
	}
	options = append(options, dashboard.WithHTTPClient(&http.Client{Transport: &dashboard.Headers{Base: transport, Header: header}}))
	return dashboard.New(address, options...), nil
}

// forward makes sure that a port of the head's Pod is forwarded.
func (l *link) forward(ctx context.Context) error {
	if l.forwarding != nil {
		select {
		case <-l.forwarding.Done():
			l.run.progress.detail("The connection to the head is lost: %v", l.forwarding.Err())
			l.forwarding = nil
		default:
			return nil
		}
	}
	config, err := l.run.env.Config()
	if err != nil {
		return err
	}
	service, pod, err := forward.PodOf(ctx, l.run.client, head.Service(l.cluster))
	if err != nil {
		return err
	}
	remote := forward.TargetPort(service, pod, forward.ServicePort(service, ray.PortNameDashboard, ray.DefaultDashboardPort))
	limited, cancel := context.WithTimeout(ctx, l.run.pace.connect)
	defer cancel()
	name := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
	f, err := forward.Start(limited, config, name, []forward.Port{{Remote: remote}}, l.run.progress.connections())
	if err != nil {
		return err
	}
	l.run.progress.detail("Port %d of Pod %s is forwarded to %s.", remote, pod.Name, f.Address(0))
	l.forwarding, l.pod = f, pod.UID
	return nil
}

// astray tells whether the port forwarding leads to a Pod that is not the head any more. While a node is cut off, the
// connection itself does not tell.
func (l *link) astray(ctx context.Context) bool {
	if l.forwarding == nil {
		return false
	}
	_, pod, err := forward.PodOf(ctx, l.run.client, head.Service(l.cluster))
	return err == nil && pod.UID != l.pod
}

// close ends the port forwarding.
func (l *link) close() {
	if l.forwarding != nil {
		l.forwarding.Close()
	}
}
