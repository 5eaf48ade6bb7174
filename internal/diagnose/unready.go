package diagnose

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// unready is the first container that runs and has not become ready for too long, or nil.
func (s *Snapshot) unready(pod *corev1.Pod, events []corev1.Event) *corev1.ContainerStatus {
	for i := range pod.Status.ContainerStatuses {
		c := &pod.Status.ContainerStatuses[i]
		if c.State.Running == nil || c.Ready || s.youngerThan(c.State.Running.StartedAt, s.readyPatience(pod, c.Name, events)) {
			continue
		}
		if !runsRay(pod, c.Name) || !s.waitsForServe(pod) {
			return c
		}
	}
	return nil
}

// runsRay tells whether a container is the one of a Ray node in which Ray runs.
func runsRay(pod *corev1.Pod, container string) bool {
	return isRayNode(pod) && len(pod.Spec.Containers) > 0 && pod.Spec.Containers[0].Name == container
}

// readyPatience is how long a container may take to become ready. The probes that the operator gives Ray fail while Ray starts, and
// that takes minutes on a busy node; a probe of the user's own that fails is his to judge.
func (s *Snapshot) readyPatience(pod *corev1.Pod, container string, events []corev1.Event) time.Duration {
	if !runsRay(pod, container) || s.ownProbeFails(pod, events) {
		return startPatience
	}
	return starting
}

// ownProbeFails tells whether the kubelet has told of a probe of Ray's container that stands in the user's template.
func (s *Snapshot) ownProbeFails(pod *corev1.Pod, events []corev1.Event) bool {
	template, told := s.template(pod), newest(events, "Unhealthy")
	if template == nil || len(template.Containers) == 0 || told == nil {
		return false
	}
	written := &template.Containers[0]
	return written.ReadinessProbe != nil && strings.HasPrefix(told.Message, "Readiness") ||
		written.LivenessProbe != nil && strings.HasPrefix(told.Message, "Liveness") ||
		written.StartupProbe != nil && strings.HasPrefix(told.Message, "Startup")
}

// template is the part of a RayCluster that a Pod was made from, or nil where it is not known.
func (s *Snapshot) template(pod *corev1.Pod) *corev1.PodSpec {
	cluster := s.clusterOf(pod)
	switch {
	case cluster == nil:
		return nil
	case pod.Labels[rayv1.LabelNodeType] == rayv1.NodeTypeHead:
		return &cluster.Spec.HeadGroupSpec.Template.Spec
	}
	for i := range cluster.Spec.WorkerGroupSpecs {
		if group := &cluster.Spec.WorkerGroupSpecs[i]; group.GroupName == pod.Labels[rayv1.LabelGroup] {
			return &group.Template.Spec
		}
	}
	return nil
}

// clusterOf is the RayCluster that a Pod is a node of, or nil.
func (s *Snapshot) clusterOf(pod *corev1.Pod) *rayv1.RayCluster {
	if !isRayNode(pod) {
		return nil
	}
	return s.cluster(pod.Labels[rayv1.LabelCluster])
}

// headReadyFor tells whether the head of a Pod's cluster is known to have been ready for a time.
func (s *Snapshot) headReadyFor(pod *corev1.Pod, age time.Duration) bool {
	cluster := s.clusterOf(pod)
	if cluster == nil {
		return false
	}
	head := s.head(cluster)
	return head != nil && s.readyFor(head) >= age
}

// waitsForServe tells whether a node of a RayService is not ready for a reason that is none of its own. A worker without a replica has no
// proxy, so its probe fails while the applications run elsewhere; a head whose application is sick is told by that. Where the RayService
// is not known, neither is what its applications do.
func (s *Snapshot) waitsForServe(pod *corev1.Pod) bool {
	cluster := s.clusterOf(pod)
	if cluster == nil || !s.serves(cluster, pod) {
		return false
	}
	if pod.Labels[rayv1.LabelNodeType] == rayv1.NodeTypeHead {
		return len(serveAppUnhealthy(s)) > 0
	}
	if s.Service == nil {
		return true
	}
	for _, part := range []rayv1.RayServiceStatus{s.Service.Status.ActiveServiceStatus, s.Service.Status.PendingServiceStatus} {
		if part.RayClusterName == cluster.Name {
			return len(part.ApplicationStatuses) > 0 && allRun(part.ApplicationStatuses)
		}
	}
	return false
}

// serves tells whether a Pod is a node of a RayService.
func (s *Snapshot) serves(cluster *rayv1.RayCluster, pod *corev1.Pod) bool {
	if owner := metav1.GetControllerOf(cluster); owner != nil && owner.Kind == rayv1.KindRayService {
		return true
	}
	if cluster.Labels[rayv1.LabelOriginatedFromKind] == rayv1.KindRayService || pod.Labels[rayv1.LabelServe] == "true" {
		return true
	}
	return s.Service != nil && (s.Service.Status.ActiveServiceStatus.RayClusterName == cluster.Name ||
		s.Service.Status.PendingServiceStatus.RayClusterName == cluster.Name)
}

// unreadyHead says more where it is Ray on a head that does not answer: much else waits for it.
func unreadyHead(pod *corev1.Pod, container string) (cause, next string) {
	if pod.Labels[rayv1.LabelNodeType] != rayv1.NodeTypeHead || !runsRay(pod, container) {
		return "", ""
	}
	return fmt.Sprintf("The head Pod %s of RayCluster %s runs and is not ready: Ray on it does not answer its probes.", pod.Name, pod.Labels[rayv1.LabelCluster]),
		fmt.Sprintf("Read \"kubectl describe pod %s\" for the probe that fails, and \"kubectl logs %s -c %s\" for what Ray says.", pod.Name, pod.Name, container)
}

// impossible are the kinds of trouble that a Pod cannot have, because its cluster does not use what they are about. Words such as "redis"
// stand in many a log.
func (s *Snapshot) impossible(pod *corev1.Pod) []string {
	cluster := s.clusterOf(pod)
	if cluster == nil {
		return nil
	}
	var ids []string
	if !asksForToken(cluster) {
		ids = append(ids, idTokenMismatch)
	}
	if !usesRedis(cluster) {
		ids = append(ids, idRedisUnreachable)
	}
	return ids
}

// usesRedis tells whether the state of the head is kept in Redis, by the spec or by the user's own environment.
func usesRedis(cluster *rayv1.RayCluster) bool {
	if options := cluster.Spec.GcsFaultToleranceOptions; options != nil {
		return options.Backend != rayv1.GcsBackendRocksDB
	}
	return strings.EqualFold(cluster.Annotations[rayv1.AnnotationFTEnabled], "true") ||
		sets(&cluster.Spec.HeadGroupSpec.Template.Spec, "RAY_REDIS_ADDRESS")
}

// sets tells whether a variable of the first container, in which Ray runs, has a value.
func sets(pod *corev1.PodSpec, variable string) bool {
	if len(pod.Containers) == 0 {
		return false
	}
	for _, e := range pod.Containers[0].Env {
		if e.Name == variable {
			return e.ValueFrom != nil || e.Value != "" && e.Value != "0"
		}
	}
	return false
}
