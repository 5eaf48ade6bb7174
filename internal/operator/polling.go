package operator

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/leadership"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
	"github.com/heliostat-io/heliostat/internal/ray/poll"
	"github.com/heliostat-io/heliostat/internal/rayjob"
	"github.com/heliostat-io/heliostat/internal/rayservice"
	"github.com/heliostat-io/heliostat/internal/wake"
)

// How Pods of RayServices are asked. A dead proxy is to lose its requests within seconds, and there are more Pods than
// dashboards.
const (
	podInterval    = 2 * time.Second
	podTimeout     = 2 * time.Second
	podMaxBackoff  = 4 * time.Second
	podConcurrency = 64
)

// censusInterval is how often Ray is asked about the actors of a cluster. An actor that is made and lost between two answers is
// not told of.
const censusInterval = 10 * time.Second

// talkToRay sets up all that asks Ray, and all that is sent to it, in the background.
func (w *wiring) talkToRay(ctx context.Context, registerer prometheus.Registerer, gate leadership.Gate) error {
	web, patience, err := dashboards(w.cfg, w.options)
	if err != nil {
		return err
	}
	tokens := newTokens(w.mgr.GetAPIReader(), w.clock)
	owners := owners{reader: w.mgr.GetClient(), jobs: w.jobs, services: w.services}
	notify := func(key poll.Key) { owners.wake(ctx, key) }
	w.dashboards = poll.New(poll.Options{
		HTTPClient: web, Timeout: patience, Registerer: asked(registerer, "dashboards"), Tokens: tokens.of, Clock: w.clock, Notify: notify,
	})
	w.census = poll.New(poll.Options{
		HTTPClient: web, Timeout: patience, Interval: censusInterval, Registerer: asked(registerer, "census"), Tokens: tokens.of, Clock: w.clock,
		Notify: func(cluster poll.Key) { w.clusters.Ring(cluster.NamespacedName) },
	})
	ofPods := poll.Options{
		HTTPClient: web, Timeout: podTimeout, Interval: podInterval, MaxBackoff: podMaxBackoff, Concurrency: podConcurrency,
		Registerer: asked(registerer, "pods"), Clock: w.clock, Notify: notify,
	}
	if w.cfg.UseKubernetesProxy {
		ofPods.Timeout = dashboard.ProxyTimeout
	}
	w.proxies = poll.New(ofPods)
	w.sender = action.NewRay(action.RayOptions{
		Gate: gate, HTTP: web, Tokens: tokens.of, Clock: w.clock, Log: w.options.Log.WithName("ray"), Workers: rayWorkers,
		Settled: func(kind string, name types.NamespacedName) {
			key := poll.Key{Kind: kind, NamespacedName: name}
			w.dashboards.Refresh(key)
			owners.wake(ctx, key)
		},
	})
	for _, part := range []manager.Runnable{w.dashboards, w.census, w.proxies, w.sender} {
		if err := w.mgr.Add(part); err != nil {
			return fmt.Errorf("register what talks to Ray: %w", err)
		}
	}
	return nil
}

// asked tells the series of one poller from those of the other.
func asked(registerer prometheus.Registerer, what string) prometheus.Registerer {
	return prometheus.WrapRegistererWith(prometheus.Labels{"asked": what}, registerer)
}

// owners wakes those for whom Ray was asked, or sent something.
type owners struct {
	reader         client.Reader
	jobs, services *wake.Bell
}

// wake has the owner of a question planned. Clusters and Pods are asked for RayServices.
func (o owners) wake(ctx context.Context, key poll.Key) {
	switch key.Kind {
	case rayjob.PollKind:
		o.jobs.Ring(key.NamespacedName)
	case rayv1.KindRayCluster:
		o.wakeService(ctx, key.NamespacedName)
	default:
		// What the cache does not show any more has woken its owner by that.
		pod := &corev1.Pod{}
		if err := o.reader.Get(ctx, key.NamespacedName, pod); err == nil {
			o.wakeService(ctx, types.NamespacedName{Namespace: key.Namespace, Name: pod.Labels[rayv1.LabelCluster]})
		}
	}
}

// wakeService has the RayService planned for which a cluster was made.
func (o owners) wakeService(ctx context.Context, name types.NamespacedName) {
	cluster := &rayv1.RayCluster{}
	if err := o.reader.Get(ctx, name, cluster); err != nil {
		return
	}
	if service, ok := rayservice.ServiceOf(cluster); ok {
		o.services.Ring(service)
	}
}
