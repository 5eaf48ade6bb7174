package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/ray/serve"
	"github.com/heliostat-io/heliostat/internal/rayservice"
	"github.com/heliostat-io/heliostat/test/sim/kube"
)

// serviceWatch is what is kept to judge RayServices by.
type serviceWatch struct {
	// meant are the configs that a spec had together with the goal of its cluster.
	meant map[string]bool
	// proved are the clusters of which all applications have run.
	proved map[types.UID]bool
	// names are all names that clusters ever had.
	names map[string]bool
	// led are the clusters that Services of Serve ever led to.
	led map[string]bool
	// up are the Services of Serve that have had a Pod which took requests.
	up map[types.UID]bool
	// retired is when clusters were last marked as retired.
	retired map[types.UID]time.Duration
}

func newServiceWatch() serviceWatch {
	return serviceWatch{meant: map[string]bool{}, proved: map[types.UID]bool{}, names: map[string]bool{}, led: map[string]bool{},
		up: map[types.UID]bool{}, retired: map[types.UID]time.Duration{}}
}

// judgeServices judges a write as far as RayServices are concerned, and what Services lead to after it.
func (w *world) judgeServices(write kube.Write) {
	for _, stored := range w.server.List("RayCluster") {
		if w.servesAll(stored.GetName()) {
			w.watch.services.proved[stored.GetUID()] = true
		}
	}
	switch o := cmpObject(write).(type) {
	case *rayv1.RayService:
		w.judgeService(write, o)
	case *rayv1.RayCluster:
		if isOperator(write.Sender) {
			w.judgeServiceCluster(write, o)
		}
	case *corev1.Service:
		if isOperator(write.Sender) && write.After != nil && isServeService(o) {
			w.judgeCutOver(write, o)
		}
	}
	w.judgePath(write)
}

// meaning names a config together with the goal of the cluster that it was written for.
func meaning(goal string, config *serve.Config) string { return goal + " " + config.Hash() }

// judgeService notes what a spec means, and checks a status.
func (w *world) judgeService(write kube.Write, service *rayv1.RayService) {
	if config, err := serve.Parse(service.Spec.ServeConfigV2); err == nil {
		w.watch.services.meant[meaning(rayservice.Goal(&service.Spec.RayClusterConfig), config)] = true
	}
	if !isOperator(write.Sender) || write.After == nil {
		return
	}
	if active := service.Status.ActiveServiceStatus.RayClusterName; active != "" && !w.watch.services.led[active] {
		w.fail("RayService %s says that RayCluster %s serves, which no Service has ever led to", service.Name, active)
	}
	if write.Before == nil || meta.IsStatusConditionTrue(write.Before.(*rayv1.RayService).Status.Conditions, rayv1.ConditionRayServiceSuspended) {
		return
	}
	if meta.IsStatusConditionTrue(service.Status.Conditions, rayv1.ConditionRayServiceSuspended) {
		for _, kind := range []string{"RayCluster", "Service"} {
			for _, stored := range w.server.List(kind) {
				if metav1.IsControlledBy(stored, service) {
					w.fail("RayService %s is suspended, but %s %s is there", service.Name, kind, stored.GetName())
				}
			}
		}
	}
}

// serviceOf is the RayService that controls an object, nil when it is gone.
func (w *world) serviceOf(o object) *rayv1.RayService {
	for _, stored := range w.server.List("RayService") {
		if metav1.IsControlledBy(o, stored) {
			return stored.(*rayv1.RayService)
		}
	}
	return nil
}

// clustersOf are the RayClusters of a RayService.
func (w *world) clustersOf(service *rayv1.RayService) []*rayv1.RayCluster {
	var clusters []*rayv1.RayCluster
	for _, stored := range w.server.List("RayCluster") {
		if metav1.IsControlledBy(stored, service) {
			clusters = append(clusters, stored.(*rayv1.RayCluster))
		}
	}
	return clusters
}

// goes tells whether a RayService is being taken down as a whole.
func goes(service *rayv1.RayService) bool {
	conditions := service.Status.Conditions
	ready := meta.FindStatusCondition(conditions, rayv1.ConditionRayServiceReady)
	return service.DeletionTimestamp != nil || meta.IsStatusConditionTrue(conditions, rayv1.ConditionRayServiceSuspending) ||
		meta.IsStatusConditionTrue(conditions, rayv1.ConditionRayServiceSuspended) || ready != nil && ready.Reason == rayv1.ReasonInitializingTimeout
}

// judgeServiceCluster checks that a cluster of a RayService is made only when it is needed, and goes only when it is not.
func (w *world) judgeServiceCluster(write kube.Write, cluster *rayv1.RayCluster) {
	service := w.serviceOf(cluster)
	if service == nil {
		return
	}
	switch write.Verb {
	case kube.Create:
		w.judgeNewCluster(service, cluster)
	case kube.Delete:
		if !goes(service) {
			w.judgeLeaving(service, cluster)
		}
	default:
		w.judgeMarks(write, service, cluster)
	}
}

func (w *world) judgeNewCluster(service *rayv1.RayService, cluster *rayv1.RayCluster) {
	if w.watch.services.names[cluster.Name] {
		w.fail("RayCluster %s is made under a name that was used before", cluster.Name)
	}
	w.watch.services.names[cluster.Name] = true
	for _, other := range w.clustersOf(service) {
		if other.UID == cluster.UID || other.DeletionTimestamp != nil || other.Annotations[rayv1.AnnotationAbandoned] != "" {
			continue
		}
		if goalOf(other) == goalOf(cluster) {
			w.fail("RayCluster %s is made although RayCluster %s is the same", cluster.Name, other.Name)
		}
		if other.Annotations[rayv1.AnnotationRetiredAt] == "" && len(w.leadingTo(service, other)) == 0 {
			w.fail("RayCluster %s is made while RayCluster %s, which does not serve, has not been retired", cluster.Name, other.Name)
		}
	}
}

func goalOf(cluster *rayv1.RayCluster) string { return cluster.Annotations[rayv1.AnnotationSpecHash] }

// judgeMarks checks that nothing that Services lead to is marked to go.
func (w *world) judgeMarks(write kube.Write, service *rayv1.RayService, cluster *rayv1.RayCluster) {
	was, is := write.Before.GetAnnotations(), cluster.Annotations
	if was[rayv1.AnnotationRetiredAt] != is[rayv1.AnnotationRetiredAt] {
		w.watch.services.retired[cluster.UID] = w.mono
	}
	for _, mark := range []string{rayv1.AnnotationRetiredAt, rayv1.AnnotationAbandoned} {
		if is[mark] == "" || was[mark] != "" {
			continue
		}
		if leading := w.leadingTo(service, cluster); len(leading) > 0 && !goes(service) {
			w.fail("RayCluster %s is marked with %s, but %v lead to it", cluster.Name, mark, leading)
		}
	}
	if was[rayv1.AnnotationAbandoned] != "" && is[rayv1.AnnotationAbandoned] == "" {
		w.fail("RayCluster %s is not abandoned any more", cluster.Name)
	}
}

// leadingTo are the Services of a RayService that lead to a cluster.
func (w *world) leadingTo(service *rayv1.RayService, cluster *rayv1.RayCluster) []string {
	var leading []string
	for _, stored := range w.server.List("Service") {
		if metav1.IsControlledBy(stored, service) && stored.(*corev1.Service).Spec.Selector[rayv1.LabelCluster] == cluster.Name {
			leading = append(leading, stored.GetName())
		}
	}
	return leading
}

// judgeLeaving checks that a cluster is deleted only when nobody uses it any more.
func (w *world) judgeLeaving(service *rayv1.RayService, cluster *rayv1.RayCluster) {
	if leading := w.leadingTo(service, cluster); len(leading) > 0 {
		w.fail("RayCluster %s is deleted, but %v lead to it", cluster.Name, leading)
	}
	if cluster.Annotations[rayv1.AnnotationAbandoned] == "" {
		w.fail("RayCluster %s is deleted without having been abandoned", cluster.Name)
	}
	if kept, least := w.mono-w.watch.services.retired[cluster.UID], w.leastDelay(service); kept < least {
		w.fail("RayCluster %s is deleted %s after it was retired, not %s", cluster.Name, kept, least)
	}
	told := slices.ContainsFunc(w.cut, func(note string) bool { return strings.Contains(note, cluster.Name) })
	for _, pod := range w.nodes(cluster.Name) {
		switch {
		case told || pod.DeletionTimestamp != nil:
		case w.underWay(pod.UID):
			w.fail("RayCluster %s is deleted while Pod %s has requests to answer", cluster.Name, pod.Name)
		}
	}
}

// leastDelay is how long a cluster must be kept, as far as clocks of operators agree.
func (w *world) leastDelay(service *rayv1.RayService) time.Duration {
	delay := 60 * time.Second
	if seconds := service.Spec.RayClusterDeletionDelaySeconds; seconds != nil {
		delay = time.Duration(*seconds) * time.Second
	}
	if w.plan.length > 0 {
		delay -= 2 * w.scenario.skew()
	}
	return delay - time.Second // times on objects are in whole seconds
}

// judgeConfig checks that a cluster gets no config that was written for another one.
func (w *world) judgeConfig(cluster string, body []byte) {
	live, there := w.server.Get("RayCluster", named(cluster)).(*rayv1.RayCluster)
	config, err := serve.Parse(string(body))
	if err != nil {
		w.fail("Serve on %s is given something that is no config: %v", cluster, err)
		return
	}
	if there && !w.scenario.inPlace && !w.watch.services.meant[meaning(goalOf(live), config)] {
		w.fail("Serve on %s is given a config that was not written for it: %s", cluster, body)
	}
}

func describeService(o *rayv1.RayService) string {
	s := o.Status
	conditions := slices.DeleteFunc(slices.Clone(s.Conditions), func(c metav1.Condition) bool {
		return strings.HasPrefix(c.Type, "Suspend") && c.Status == metav1.ConditionFalse // whether it ever was
	})
	return fmt.Sprintf("%s, %s serves %s with %d, pending %q, %s, observed %t, finalizers %v", s.ServiceStatus, s.ActiveServiceStatus.RayClusterName,
		s.ActiveServiceStatus.Goal, s.NumServeEndpoints, s.PendingServiceStatus.RayClusterName, verdicts(conditions), s.ObservedGeneration == o.Generation, o.Finalizers)
}

// describeRole is what a cluster of a RayService is for.
func describeRole(o *rayv1.RayCluster) string {
	if o.Labels[rayv1.LabelOriginatedFromKind] != rayv1.KindRayService {
		return ""
	}
	return fmt.Sprintf(", goal %s, retired %t, abandoned %t, config %q", goalOf(o), o.Annotations[rayv1.AnnotationRetiredAt] != "",
		o.Annotations[rayv1.AnnotationAbandoned] != "", o.Annotations[rayv1.AnnotationServeConfig])
}
