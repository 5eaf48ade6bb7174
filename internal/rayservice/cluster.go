package rayservice

import (
	"maps"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// rayCluster is the cluster of a name as the RayService wants it. A proxy location of Serve other than on every node is
// written on it, because the probes of its Pods depend on it.
func rayCluster(service *rayv1.RayService, name, proxyLocation, version string) *rayv1.RayCluster {
	labels := maps.Clone(service.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[rayv1.LabelOriginatedFromName] = service.Name
	labels[rayv1.LabelOriginatedFromKind] = rayv1.KindRayService
	annotations := passedOn(service.Annotations)
	annotations[rayv1.AnnotationSpecHash] = Goal(&service.Spec.RayClusterConfig)
	annotations[rayv1.AnnotationNumWorkerGroups] = strconv.Itoa(len(service.Spec.RayClusterConfig.WorkerGroupSpecs))
	annotations[rayv1.AnnotationOperatorVersion] = version
	if proxyLocation == rayv1.ServeProxyHeadOnly || proxyLocation == rayv1.ServeProxyDisabled {
		annotations[rayv1.AnnotationServeProxyLocation] = proxyLocation
	}
	return &rayv1.RayCluster{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       service.Namespace,
			Name:            name,
			Labels:          labels,
			Annotations:     annotations,
			OwnerReferences: []metav1.OwnerReference{ownerReference(service)},
		},
		Spec: *service.Spec.RayClusterConfig.DeepCopy(),
	}
}

func ownerReference(service *rayv1.RayService) metav1.OwnerReference {
	return *metav1.NewControllerRef(service, rayv1.GroupVersion.WithKind(rayv1.KindRayService))
}

// passedOn are the annotations of a RayService that its clusters get too: all but those that steer a controller, which on
// a cluster would mean something else (RS-W28), and kubectl's record of the last applied manifest.
func passedOn(annotations map[string]string) map[string]string {
	passed := map[string]string{}
	for key, value := range annotations {
		switch {
		case key == corev1.LastAppliedConfigAnnotation, key == rayv1.AnnotationEnableServeService, key == rayv1.AnnotationInitializingTimeout:
		case strings.HasPrefix(key, "heliostat.io/") && key != rayv1.AnnotationCommandMustSucceed:
		default:
			passed[key] = value
		}
	}
	return passed
}

// updated returns a cluster that fits, brought to what is wanted in all that can change in place, or nil when there is
// nothing to change. Numbers that the autoscaler chose, what queues and schedulers put on templates, and labels and
// annotations of others stay (RS-W17).
func updated(live, wanted *rayv1.RayCluster) *rayv1.RayCluster {
	next := live.DeepCopy()
	next.Labels = overlay(next.Labels, wanted.Labels)
	next.Annotations = overlay(next.Annotations, wanted.Annotations)
	next.Spec = *wanted.Spec.DeepCopy()
	if next.Spec.Suspend == nil {
		next.Spec.Suspend = live.Spec.Suspend
	}
	keepPlacement(&next.Spec.HeadGroupSpec.Template, &live.Spec.HeadGroupSpec.Template)
	autoscaled := ptr.Deref(wanted.Spec.EnableInTreeAutoscaling, false)
	for i := range next.Spec.WorkerGroupSpecs {
		if i < len(live.Spec.WorkerGroupSpecs) {
			keepGroup(&next.Spec.WorkerGroupSpecs[i], &live.Spec.WorkerGroupSpecs[i], autoscaled)
		}
	}
	if equality.Semantic.DeepEqual(live.Spec, next.Spec) && maps.Equal(live.Labels, next.Labels) && maps.Equal(live.Annotations, next.Annotations) {
		return nil
	}
	return next
}

func keepGroup(group, live *rayv1.WorkerGroupSpec, autoscaled bool) {
	keepPlacement(&group.Template, &live.Template)
	group.ScaleStrategy.WorkersToDelete = live.ScaleStrategy.WorkersToDelete
	if autoscaled || group.Replicas == nil {
		group.Replicas = live.Replicas
	}
}

func keepPlacement(template, live *corev1.PodTemplateSpec) {
	template.Spec.Tolerations, template.Spec.SchedulingGates = live.Spec.Tolerations, live.Spec.SchedulingGates
}

func overlay(base, over map[string]string) map[string]string {
	merged := maps.Clone(base)
	if merged == nil {
		merged = map[string]string{}
	}
	maps.Copy(merged, over)
	return merged
}

// withoutReplicas leaves the numbers of workers of a cluster to the autoscaler, as for a cluster that takes over step by
// step and needs few of them at first (spec/rayservice.md section 5).
func withoutReplicas(cluster *rayv1.RayCluster) *rayv1.RayCluster {
	for i := range cluster.Spec.WorkerGroupSpecs {
		cluster.Spec.WorkerGroupSpecs[i].Replicas = nil
	}
	return cluster
}
