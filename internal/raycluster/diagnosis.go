package raycluster

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/diagnose"
	"github.com/heliostat-io/heliostat/internal/worst"
)

// troubled sets the condition Troubled of the next status by the rules of the plugin, and returns the events of the pass.
func (p *planner) troubled(next *rayv1.RayCluster, events []action.Event) []action.Event {
	events, again := worst.Object{
		Facts: p.facts(next), Conditions: &next.Status.Conditions, Generation: next.Generation, Now: p.now,
		Holds: p.snapshot.Holds, Events: events,
	}.Lift()
	p.again(again)
	return events
}

// facts are what rules may know of the cluster with its next status: what stands in the caches. Services, claims and Ingresses
// are only those under its own names, so rules that conclude from what is not among them are not asked.
func (p *planner) facts(next *rayv1.RayCluster) *diagnose.Snapshot {
	facts := &diagnose.Snapshot{Now: p.now, Clusters: []*rayv1.RayCluster{next}, Pods: p.snapshot.Pods}
	add := func(object any) {
		switch o := object.(type) {
		case *corev1.Service:
			facts.Services = append(facts.Services, o)
		case *corev1.PersistentVolumeClaim:
			facts.Claims = append(facts.Claims, o)
		case *networkingv1.Ingress:
			facts.Ingresses = append(facts.Ingresses, o)
		}
	}
	for _, object := range p.snapshot.Owned {
		add(object)
	}
	// In a fixed order, so that the same facts lead to the same words.
	for _, name := range slices.Sorted(maps.Keys(p.snapshot.Named)) {
		add(p.snapshot.Named[name])
	}
	for _, pod := range p.snapshot.Pods {
		if text := p.snapshot.MountFailures[pod.UID]; text != "" {
			facts.Events = append(facts.Events, corev1.Event{Reason: diagnose.ReasonFailedMount, Message: text, LastTimestamp: metav1.NewTime(p.now),
				InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: pod.Name}})
		}
	}
	return facts
}
