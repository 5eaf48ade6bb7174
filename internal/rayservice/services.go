package rayservice

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/ray"
	"github.com/heliostat-io/heliostat/internal/raycluster"
)

// HeadService returns the Service that leads to the head of the active cluster. It is that of the cluster, under a name
// that stays the same over all clusters of the RayService.
func HeadService(service *rayv1.RayService, target *rayv1.RayCluster, settings raycluster.Settings) *corev1.Service {
	head := raycluster.HeadService(target, settings)
	head.Name = headServiceName(service)
	head.OwnerReferences = []metav1.OwnerReference{ownerReference(service)}
	head.Labels = overlay(head.Labels, map[string]string{
		rayv1.LabelOriginatedFromName: service.Name,
		rayv1.LabelOriginatedFromKind: rayv1.KindRayService,
		rayv1.LabelNodeType:           rayv1.NodeTypeHead,
		rayv1.LabelIdentifier:         raycluster.HeadIdentifier(service.Name),
	})
	delete(head.Labels, rayv1.LabelCluster)
	return head
}

// errNoServePort says that nothing tells which port leads to Serve.
var errNoServePort = errors.New("no port leads to Serve")

// ServeService returns the Service that leads to Serve on a cluster of the RayService, with what the user asked for in
// spec.serveService. It fails when neither that nor the head names a port for Serve.
func ServeService(service *rayv1.RayService, target *rayv1.RayCluster) (*corev1.Service, error) {
	built := &corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{
			Name: serveServiceName(service), Namespace: service.Namespace,
			OwnerReferences: []metav1.OwnerReference{ownerReference(service)},
		},
	}
	if custom := service.Spec.ServeService; custom != nil {
		built.Labels, built.Annotations = maps.Clone(custom.Labels), passedOn(custom.Annotations)
		built.Spec = *custom.Spec.DeepCopy()
	}
	built.Labels = overlay(built.Labels, serveLabels(service.Name, rayv1.KindRayService, service.Name))
	built.Spec.Selector = serveSelector(target.Name)
	var err error
	if built.Spec.Ports, err = servePorts(target, built.Spec.Ports); err != nil {
		return nil, err
	}
	return built, nil
}

// ClusterServeService returns the Service that leads to Serve on one cluster, whether or not it is the active one. By its
// endpoints a cluster shows that it can take over, and a step by step take-over sends traffic through it.
func ClusterServeService(target *rayv1.RayCluster) (*corev1.Service, error) {
	ports, err := servePorts(target, nil)
	if err != nil {
		return nil, err
	}
	service := target.Labels[rayv1.LabelOriginatedFromName]
	return &corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{
			Name: raycluster.ServeServiceName(target.Name), Namespace: target.Namespace,
			Labels:          serveLabels(target.Name, rayv1.KindRayService, service),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(target, rayv1.GroupVersion.WithKind(rayv1.KindRayCluster))},
		},
		Spec: corev1.ServiceSpec{Selector: serveSelector(target.Name), Ports: ports},
	}, nil
}

func serveLabels(name, kind, origin string) map[string]string {
	return map[string]string{
		rayv1.LabelOriginatedFromName: origin,
		rayv1.LabelOriginatedFromKind: kind,
		rayv1.LabelServe:              name + "-serve",
	}
}

func serveSelector(cluster string) map[string]string {
	return map[string]string{rayv1.LabelCluster: cluster, rayv1.LabelServe: "true"}
}

// servePorts are the ports of the head that lead to Serve, each as the user wants it where spec.serveService names it, and
// all other ports that the user names (RS-W22).
func servePorts(target *rayv1.RayCluster, custom []corev1.ServicePort) ([]corev1.ServicePort, error) {
	var ports []corev1.ServicePort
	for _, port := range raycluster.HeadPorts(target) {
		if port.Name != ray.PortNameServe && !strings.HasPrefix(port.Name, ray.PortNameServe+"-") {
			continue
		}
		named := func(other corev1.ServicePort) bool { return other.Name == port.Name }
		if !slices.ContainsFunc(custom, named) {
			port.AppProtocol = nil
			ports = append(ports, port)
		}
	}
	ports = append(slices.Clone(custom), ports...)
	if len(ports) == 0 {
		return nil, fmt.Errorf("%w: the first container of spec.rayClusterConfig.headGroupSpec.template declares ports of which none is named %[2]q or begins with \"%[2]s-\", "+
			"and spec.serveService names none: add a port named %[2]q with containerPort %[3]d", errNoServePort, ray.PortNameServe, ray.DefaultServePort)
	}
	slices.SortStableFunc(ports, func(a, b corev1.ServicePort) int { return strings.Compare(a.Name, b.Name) })
	return ports, nil
}

// clusterServices keeps the Service of each cluster.
func (p *planner) clusterServices() {
	for i := range p.s.Clusters {
		c := &p.s.Clusters[i]
		if c.leaving() || c.name() != p.active && c.name() != p.pending {
			continue
		}
		wanted, err := ClusterServeService(c.Object)
		if err != nil {
			p.block(rayv1.ReasonServiceMissing, err.Error())
			continue
		}
		p.keep(wanted, c.Object)
	}
}

// services keeps the Services of the RayService. The one of Serve is only brought up to date here; where it leads to is
// decided by takeOver.
func (p *planner) services() {
	target := p.s.cluster(p.active)
	if target == nil {
		target = p.firstReady()
	}
	if target == nil {
		return
	}
	head := HeadService(p.service, target.Object, p.settings.Clusters)
	if pod := target.head(); pod != nil {
		raycluster.FollowHead(head, pod.Pod)
	}
	if live := p.s.service(head.Name); live != nil && live.Spec.ClusterIP != "" {
		head.Spec.ClusterIP = live.Spec.ClusterIP // it can't be changed, and clients may know it
	}
	p.keep(head, p.service)
	p.keepServeService()
	p.dropOtherServeServices()
}

// keepServeService brings what is not the commit point of the Service of Serve to what is wanted. It is refused when the
// Service has been changed meanwhile, so that it never takes a cut-over back.
func (p *planner) keepServeService() {
	live := p.s.service(serveServiceName(p.service))
	active := p.s.cluster(p.active)
	if live == nil || active == nil || !p.s.owns(live) || live.Spec.Selector[rayv1.LabelCluster] != p.active || p.writes(live.Name) {
		return
	}
	wanted, err := ServeService(p.service, active.Object)
	if err != nil {
		p.block(rayv1.ReasonServiceMissing, err.Error())
		return
	}
	wanted.Annotations = overlay(wanted.Annotations, switchAnnotations(live))
	wanted.ResourceVersion = live.ResourceVersion
	p.keep(wanted, p.service)
}

// otherServeService is a Service of Serve of ours under another name than the wanted one, for which another name was given
// in spec.serveService; nil if there is none.
func (p *planner) otherServeService() *corev1.Service {
	for _, service := range p.s.Services {
		if p.isServeService(service) && service.Name != serveServiceName(p.service) {
			return service
		}
	}
	return nil
}

func (p *planner) isServeService(service *corev1.Service) bool {
	return p.s.owns(service) && service.Labels[rayv1.LabelServe] == p.service.Name+"-serve"
}

// dropOtherServeServices removes those once the wanted one has endpoints.
func (p *planner) dropOtherServeServices() {
	other := p.otherServeService()
	if other == nil || other.DeletionTimestamp != nil || readyCount(p.s.Endpoints[serveServiceName(p.service)]) == 0 {
		return
	}
	p.do(action.Delete{Object: other, Owner: p.service, Why: "spec.serveService has another name",
		Done:   action.Normal("DeletedService", "Delete", "deleted Service that has another name than spec.serveService"),
		Failed: action.Warning("FailedToDeleteService", "Delete", "cannot delete the Service")})
}

// keep asks for the one write that brings a Service to what is wanted, if it needs one.
func (p *planner) keep(wanted *corev1.Service, owner metav1.Object) {
	version := wanted.ResourceVersion
	wanted.ResourceVersion = ""
	stamped := action.Stamp(wanted)
	stamped.SetResourceVersion(version)
	a := action.Apply{
		Object: stamped, Why: "the service needs this Service",
		Done:   action.Normal("CreatedService", "Create", "created Service"),
		Failed: action.Warning("FailedToCreateService", "Create", "cannot make the Service"),
	}
	live := p.s.service(wanted.Name)
	switch {
	case live == nil:
	case !metav1.IsControlledBy(live, owner):
		p.block(rayv1.ReasonNameCollision, fmt.Sprintf("the service needs Service %s, but one of that name exists already and belongs to someone else", wanted.Name))
		p.again(collisionPause)
		return
	case live.DeletionTimestamp != nil || upToDate(live, stamped):
		return
	default:
		a.Observed, a.Why = live, "the Service differs from what is wanted"
		a.Done = action.Normal("UpdatedService", "Update", "updated Service")
		a.Failed = action.Warning("FailedToUpdateService", "Update", "cannot change the Service")
	}
	if !p.held(a.Key()) {
		p.do(a)
	}
}

// upToDate compares without the resourceVersion, which says only what the write was decided on.
func upToDate(live *corev1.Service, stamped action.Object) bool {
	plain := stamped.DeepCopyObject().(action.Object)
	plain.SetResourceVersion("")
	return action.UpToDate(live, plain)
}

func serviceKey(name string) string { return "Service/" + name }

// writes tells whether this pass writes a Service already.
func (p *planner) writes(name string) bool {
	return slices.ContainsFunc(p.decision.Actions, func(a action.Action) bool {
		return a.Key() == serviceKey(name)
	})
}

func readyCount(endpoints []Endpoint) int32 {
	count := int32(0)
	for _, endpoint := range endpoints {
		if endpoint.Ready {
			count++
		}
	}
	return count
}
