package sim

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/ray/serve"
	"github.com/heliostat-io/heliostat/internal/rayservice"
	"github.com/heliostat-io/heliostat/test/sim/kube"
)

// judgeCutOver checks that a Service of Serve is pointed only at a cluster that can take the traffic.
func (w *world) judgeCutOver(write kube.Write, service *corev1.Service) {
	to, from := service.Spec.Selector[rayv1.LabelCluster], ""
	w.watch.services.led[to] = true
	if before, ok := write.Before.(*corev1.Service); ok {
		from = before.Spec.Selector[rayv1.LabelCluster]
	}
	cluster, there := w.server.Get("RayCluster", named(to)).(*rayv1.RayCluster)
	switch {
	case to == from:
		return
	case !there:
		if !w.excused {
			w.fail("Service %s is pointed at RayCluster %s, which is not there", service.Name, to)
		}
		return
	case cluster.Annotations[rayv1.AnnotationAbandoned] != "":
		w.fail("Service %s is pointed at RayCluster %s, which was given up", service.Name, to)
	case service.Annotations[rayv1.AnnotationServesCluster] != to || service.Annotations[rayv1.AnnotationServesGoal] != goalOf(cluster):
		w.fail("Service %s is pointed at RayCluster %s, and says that it leads to %s", service.Name, to, text(service.Annotations))
	case !w.watch.services.proved[cluster.UID]:
		w.fail("Service %s is pointed at RayCluster %s, which was never seen to serve", service.Name, to)
	case !w.excused && !w.servesAll(to):
		w.fail("Service %s is pointed at RayCluster %s, which does not serve", service.Name, to)
	case !w.excused && from != "" && !slices.ContainsFunc(w.nodes(to), func(pod *corev1.Pod) bool { return selects(service, pod) && podReady(pod) && w.takes(pod) }):
		w.fail("Service %s is pointed at RayCluster %s, of which no Pod takes requests", service.Name, to)
	}
}

// judgePath checks at every instant that requests get to Pods which can answer them, from the first time on that one did.
func (w *world) judgePath(write kube.Write) {
	for _, stored := range w.server.List("Service") {
		service := stored.(*corev1.Service)
		owner := w.serviceOf(service)
		if !isServeService(service) || owner == nil || goes(owner) || owner.Spec.Suspend {
			continue
		}
		slice := w.sliceOf(service)
		if slice == nil {
			continue
		}
		good := 0
		for _, uid := range readyPods(slice) {
			if pod := w.podOf(uid); pod != nil && pod.DeletionTimestamp == nil && w.takes(pod) {
				good++
			} else if w.watch.services.up[service.UID] && !w.excused {
				w.fail("after %s: Service %s sends requests to Pod %s, which cannot answer them", write.Request, service.Name, uid)
			}
		}
		if good > 0 {
			w.watch.services.up[service.UID] = true
		} else if w.watch.services.up[service.UID] && !w.excused {
			w.fail("after %s: Service %s has no Pod to send requests to", write.Request, service.Name)
		}
	}
}

// podOf is the Pod with that UID, or nil.
func (w *world) podOf(uid types.UID) *corev1.Pod {
	for _, stored := range w.server.List("Pod") {
		if stored.GetUID() == uid {
			return stored.(*corev1.Pod)
		}
	}
	return nil
}

// judgeServicesAtEnd checks what must hold when the world has settled.
func (w *world) judgeServicesAtEnd() {
	for _, stored := range w.server.List("RayService") {
		service := stored.(*rayv1.RayService)
		switch why := w.unserved(service); {
		case why == "":
		case w.scenario.stuck && saysSo(service):
		default:
			w.fail("RayService %s is not as its spec asks: %s", service.Name, why)
		}
	}
}

// saysSo tells whether a RayService says that it is not as its spec asks.
func saysSo(service *rayv1.RayService) bool {
	return meta.IsStatusConditionTrue(service.Status.Conditions, rayv1.ConditionStalled) ||
		meta.IsStatusConditionTrue(service.Status.Conditions, rayv1.ConditionReconciling)
}

// unserved says in what a RayService is not as its spec asks, or nothing.
func (w *world) unserved(service *rayv1.RayService) string {
	clusters := w.clustersOf(service)
	switch {
	case service.DeletionTimestamp != nil:
		return "it is deleted"
	case service.Spec.Suspend && !meta.IsStatusConditionTrue(service.Status.Conditions, rayv1.ConditionRayServiceSuspended):
		return "it is to be suspended"
	case service.Spec.Suspend:
		return ""
	case goes(service):
		if len(clusters) == 0 && !meta.IsStatusConditionTrue(service.Status.Conditions, rayv1.ConditionRayServiceSuspended) {
			return ""
		}
		return "it is not taken down, or not resumed"
	case len(clusters) != 1:
		return "the number of its clusters is not one"
	case goalOf(clusters[0]) != rayservice.Goal(&service.Spec.RayClusterConfig) && !w.scenario.inPlace:
		return "its cluster is another one"
	case len(w.leadingTo(service, clusters[0])) != 2:
		return "its Services lead elsewhere"
	case service.Status.ActiveServiceStatus.RayClusterName != clusters[0].Name, service.Status.PendingServiceStatus.RayClusterName != "":
		return "its status tells of other clusters"
	}
	return w.unapplied(service, clusters[0].Name)
}

// unapplied says in what Serve is not as a spec asks, or nothing.
func (w *world) unapplied(service *rayv1.RayService, cluster string) string {
	config, err := serve.Parse(service.Spec.ServeConfigV2)
	if err != nil {
		return err.Error()
	}
	life := w.serveOn(cluster)
	if life == nil {
		return "Serve does not run"
	}
	if difference := config.Difference(w.report(w.headOfCluster(cluster))); difference != "" {
		return "Serve has another config: " + difference
	}
	for _, name := range slices.Sorted(maps.Keys(life.apps)) {
		if status := life.apps[name].status; status != rayv1.AppStatusRunning {
			return "application " + name + " is " + status
		}
	}
	for _, serving := range w.serveServices(service) {
		slice := w.sliceOf(serving)
		if slice == nil || len(readyPods(slice)) == 0 {
			return "Service " + serving.Name + " has no endpoint"
		}
	}
	return ""
}
