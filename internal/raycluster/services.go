package raycluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/ray"
)

// HeadService returns the Service under which workers and clients find the head. It holds only the fields that the
// operator decides on, so it is fit for server-side apply.
//
// By default it is headless and knows the head before it is ready, because workers join it then. The user's own
// headGroupSpec.headService is the base if there is one: its name, labels, annotations, ports and type are kept, and
// it is not made headless.
func HeadService(cluster *rayv1.RayCluster, settings Settings) *corev1.Service {
	head := &cluster.Spec.HeadGroupSpec
	service := newService(cluster, HeadServiceName(cluster))
	if head.HeadService != nil {
		custom := head.HeadService.DeepCopy()
		service.Labels, service.Annotations, service.Spec = custom.Labels, custom.Annotations, custom.Spec
	}
	selector := headSelector(cluster)
	service.Labels = overlay(service.Labels, selector)
	service.Annotations = overlay(service.Annotations, cluster.Spec.HeadServiceAnnotations)
	service.Spec.Selector = selector
	service.Spec.Ports = mergePorts(service.Spec.Ports, HeadPorts(cluster))
	if service.Spec.Type == "" {
		service.Spec.Type = head.ServiceType
	}
	internal := head.ServiceType == "" || head.ServiceType == corev1.ServiceTypeClusterIP
	if head.HeadService == nil && internal && !settings.HeadClusterIPService {
		service.Spec.ClusterIP = corev1.ClusterIPNone
		service.Spec.PublishNotReadyAddresses = true
	}
	if madeForRayService(cluster) {
		// A head whose Serve proxy is dead is not ready, and is still the head of its workers.
		service.Spec.PublishNotReadyAddresses = true
	}
	if cluster.Labels[rayv1.LabelJobSubmissionMode] == string(rayv1.SidecarMode) {
		// The submitter beside the head ends with the job. The Pod is not ready from then on, and has yet to be asked.
		service.Spec.PublishNotReadyAddresses = true
	}
	return service
}

func madeForRayService(cluster *rayv1.RayCluster) bool {
	return cluster.Labels[rayv1.LabelOriginatedFromKind] == rayv1.KindRayService
}

// FollowHead makes a head Service select a head Pod that was made from an earlier spec, or by another operator, and
// whose labels therefore differ from those which the Service selects. It does nothing when the Pod is nil.
func FollowHead(service *corev1.Service, head *corev1.Pod) {
	if head == nil {
		return
	}
	for key := range service.Spec.Selector {
		if value, ok := head.Labels[key]; ok {
			service.Spec.Selector[key] = value
		}
	}
}

// HeadlessWorkerService returns the Service that gives the workers of a RayCluster DNS names, or nil when no group
// has replicas of several hosts.
func HeadlessWorkerService(cluster *rayv1.RayCluster) *corev1.Service {
	multiHost := func(group rayv1.WorkerGroupSpec) bool { return group.NumOfHosts > 1 }
	if !slices.ContainsFunc(cluster.Spec.WorkerGroupSpecs, multiHost) {
		return nil
	}
	service := newService(cluster, HeadlessServiceName(cluster.Name))
	service.Labels = map[string]string{rayv1.LabelHeadlessWorkerService: cluster.Name}
	service.Spec = corev1.ServiceSpec{
		ClusterIP:                corev1.ClusterIPNone,
		PublishNotReadyAddresses: true,
		Selector: map[string]string{
			rayv1.LabelCluster:  cluster.Name,
			rayv1.LabelNodeType: rayv1.NodeTypeWorker,
		},
	}
	return service
}

// ServeService returns the Service that leads to Ray Serve on all Pods of a RayCluster, or nil when the RayCluster
// does not ask for it by annotation, or was made for a RayService: then the controller of RayServices makes a Service of this
// name that selects only Pods which serve. It returns an error when the head has no port for Serve.
func ServeService(cluster *rayv1.RayCluster, settings Settings) (*corev1.Service, error) {
	if cluster.Annotations[rayv1.AnnotationEnableServeService] != "true" || madeForRayService(cluster) {
		return nil, nil
	}
	var ports []corev1.ServicePort
	for _, port := range HeadService(cluster, settings).Spec.Ports {
		if port.Name == ray.PortNameServe || strings.HasPrefix(port.Name, ray.PortNameServe+"-") {
			port.AppProtocol, port.NodePort = nil, 0
			ports = append(ports, port)
		}
	}
	if len(ports) == 0 {
		return nil, fmt.Errorf("annotation %s asks for a Service for Ray Serve, but the first container of "+
			"spec.headGroupSpec.template declares ports of which none is named %[2]q or begins with \"%[2]s-\": "+
			"add a port named %[2]q with containerPort %[3]d",
			rayv1.AnnotationEnableServeService, ray.PortNameServe, ray.DefaultServePort)
	}
	service := newService(cluster, ServeServiceName(cluster.Name))
	service.Labels = map[string]string{
		rayv1.LabelOriginatedFromName: cluster.Name,
		rayv1.LabelOriginatedFromKind: rayv1.KindRayCluster,
		rayv1.LabelServe:              cluster.Name + "-serve",
	}
	service.Spec = corev1.ServiceSpec{
		Type:     cluster.Spec.HeadGroupSpec.ServiceType,
		Selector: map[string]string{rayv1.LabelCluster: cluster.Name},
		Ports:    ports,
	}
	return service, nil
}

func newService(cluster *rayv1.RayCluster, name string) *corev1.Service {
	return &corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{
			Name:            name,
			Namespace:       cluster.Namespace,
			OwnerReferences: ownerReferences(cluster),
		},
	}
}

// headSelector takes its values from the labels that a head Pod gets, so that it always finds it.
func headSelector(cluster *rayv1.RayCluster) map[string]string {
	labels := headLabels(cluster)
	selector := map[string]string{}
	for _, key := range []string{
		rayv1.LabelCluster, rayv1.LabelNodeType, rayv1.LabelIdentifier, rayv1.LabelAppName, rayv1.LabelCreatedBy,
	} {
		selector[key] = labels[key]
	}
	return selector
}

func overlay(base, over map[string]string) map[string]string {
	if len(base) == 0 && len(over) == 0 {
		return nil
	}
	merged := map[string]string{}
	maps.Copy(merged, base)
	maps.Copy(merged, over)
	return merged
}

// HeadPorts returns the ports of the head's Ray container, sorted by name: those that it declares, or Ray's usual
// ones when it declares none, and in any case one for metrics.
func HeadPorts(cluster *rayv1.RayCluster) []corev1.ServicePort {
	ports := declaredPorts(cluster)
	if len(ports) == 0 {
		for name, number := range usualPorts() {
			ports = append(ports, headPort(name, number))
		}
	}
	ports = mergePorts(ports, []corev1.ServicePort{headPort(ray.PortNameMetrics, ray.DefaultMetricsPort)})
	slices.SortFunc(ports, func(a, b corev1.ServicePort) int { return strings.Compare(a.Name, b.Name) })
	return ports
}

// declaredPorts returns the ports that the head's Ray container declares. Of two ports with the same number, which a
// container may have and a Service may not, the one whose name clients look for is kept, else the first one.
func declaredPorts(cluster *rayv1.RayCluster) []corev1.ServicePort {
	containers := cluster.Spec.HeadGroupSpec.Template.Spec.Containers
	if len(containers) == 0 {
		return nil
	}
	var usual, others []corev1.ServicePort
	for _, declared := range containers[0].Ports {
		if _, ok := usualPorts()[declared.Name]; ok {
			usual = mergePorts(usual, []corev1.ServicePort{headPort(declared.Name, declared.ContainerPort)})
			continue
		}
		others = append(others, headPort(nameOr(declared.Name, declared.ContainerPort), declared.ContainerPort))
	}
	return mergePorts(usual, others)
}

func headPort(name string, number int32) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Port: number, Protocol: corev1.ProtocolTCP, AppProtocol: ptr.To("tcp")}
}

func nameOr(name string, number int32) string {
	if name == "" {
		return fmt.Sprintf("%d-port", number)
	}
	return name
}

func usualPorts() map[string]int32 {
	return map[string]int32{
		ray.PortNameClient:    ray.DefaultClientPort,
		ray.PortNameDashboard: ray.DefaultDashboardPort,
		ray.PortNameGCS:       ray.DefaultGCSPort,
		ray.PortNameMetrics:   ray.DefaultMetricsPort,
		ray.PortNameServe:     ray.DefaultServePort,
	}
}

// mergePorts appends those ports whose name and number are not taken yet: the API server allows neither twice. Of
// several ports each needs a name, so a first one without gets one.
func mergePorts(first, more []corev1.ServicePort) []corev1.ServicePort {
	for i := range first {
		first[i].Name = nameOr(first[i].Name, first[i].Port)
	}
	for _, port := range more {
		taken := func(other corev1.ServicePort) bool {
			sameProtocol := other.Protocol == port.Protocol || other.Protocol == ""
			return other.Name == port.Name || other.Port == port.Port && sameProtocol
		}
		if !slices.ContainsFunc(first, taken) {
			first = append(first, port)
		}
	}
	return first
}
