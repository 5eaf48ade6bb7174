package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
	"github.com/heliostat-io/heliostat/internal/ray/poll"
	"github.com/heliostat-io/heliostat/internal/rayservice"
)

// answerOfPod asks a Pod now, for the health of its proxy or for its requests.
func (a *poller) answerOfPod(o poll.Observation) poll.Observation {
	w, now := a.process.world, a.process.Now()
	pod, there := w.server.Get("Pod", o.Target.Owner.NamespacedName).(*corev1.Pod)
	reached := there && pod.UID == o.Target.OwnerUID && answers(pod) && w.mono >= w.raySilent
	if !reached || w.may(noAnswer, 8) || o.Target.Ask == poll.AskProxy && !w.takes(pod) && w.plan.broken != noPods {
		return unanswered(o, now, errReset())
	}
	o.Asked, o.Answered, o.Err, o.Failures, o.FailingSince = now, now, nil, 0, time.Time{}
	if o.Target.Ask == poll.AskTraffic {
		told := w.trafficOf(pod)
		switch {
		case !told.Reported || told.Ongoing > 0:
			o.QuietSince = time.Time{}
		case o.QuietSince.IsZero() || o.Traffic.Requests != told.Requests:
			o.QuietSince = now
		}
		o.Traffic = &told
	}
	return o
}

// told is the report of Serve as it reaches an operator. Without its word, applications run from the first moment on.
func (w *world) told(head *corev1.Pod) *dashboard.ServeDetails {
	report := w.report(head)
	if w.plan.broken == noReport {
		for name, application := range report.Applications {
			application.Status = dashboard.ApplicationRunning
			report.Applications[name] = application
		}
	}
	return report
}

// statuses are those of the applications in a report.
func statuses(report *dashboard.ServeDetails) string {
	shown := make([]string, 0, len(report.Applications))
	for _, name := range slices.Sorted(maps.Keys(report.Applications)) {
		shown = append(shown, fmt.Sprintf("%s is %s with %s", name, report.Applications[name].Status, text(report.Applications[name].DeployedConfig["args"])))
	}
	return fmt.Sprintf("[%s], %d proxies", strings.Join(shown, ", "), len(report.Proxies))
}

// wakeOwner has the object planned that is concerned by an answer of Ray, as internal/operator does.
func (p *process) wakeOwner(key poll.Key) {
	reader := p.cache.Reader()
	cluster, pod := &rayv1.RayCluster{}, &corev1.Pod{}
	switch key.Kind {
	case "RayJob":
		p.bells[jobController].Ring(key.NamespacedName)
		return
	case rayv1.KindRayCluster:
	default:
		if reader.Get(context.Background(), key.NamespacedName, pod) != nil {
			return
		}
		key.Name = pod.Labels[rayv1.LabelCluster]
	}
	if err := reader.Get(context.Background(), key.NamespacedName, cluster); err != nil {
		return
	}
	if service, ok := rayservice.ServiceOf(cluster); ok {
		p.bells[serviceController].Ring(service)
	}
}

// settled is what internal/operator does when a request to Ray has ended.
func (p *process) settled(kind string, name types.NamespacedName) {
	key := poll.Key{Kind: kind, NamespacedName: name}
	p.poller.Refresh(key)
	p.wakeOwner(key)
}
