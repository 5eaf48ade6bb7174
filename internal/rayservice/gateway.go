package rayservice

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/ray"
	"github.com/heliostat-io/heliostat/internal/raycluster"
)

// The listener of the Gateway.
const (
	listenerName = "http"
	listenerPort = 80
)

// backend is a cluster behind a route, with its weight.
type backend struct {
	cluster *rayv1.RayCluster
	weight  int32
}

// Gateway returns the Gateway through which traffic is moved step by step. The service must have clusterUpgradeOptions.
func Gateway(service *rayv1.RayService) *gatewayv1.Gateway {
	return &gatewayv1.Gateway{
		TypeMeta:   metav1.TypeMeta{APIVersion: gatewayv1.GroupVersion.String(), Kind: "Gateway"},
		ObjectMeta: routingMeta(service, gatewayName(service)),
		Spec: gatewayv1.GatewaySpec{
			GatewayClassName: gatewayv1.ObjectName(service.Spec.UpgradeStrategy.ClusterUpgradeOptions.GatewayClassName),
			Listeners:        []gatewayv1.Listener{{Name: listenerName, Port: listenerPort, Protocol: gatewayv1.HTTPProtocolType}},
		},
	}
}

// Route returns the HTTPRoute that sends all requests at the Gateway to the backends by their weights. It fails when no port
// of a backend leads to Serve.
func Route(service *rayv1.RayService, backends ...backend) (*gatewayv1.HTTPRoute, error) {
	namespace := gatewayv1.Namespace(service.Namespace)
	refs := make([]gatewayv1.HTTPBackendRef, 0, len(backends))
	for _, backend := range backends {
		port, err := backendPort(backend.cluster)
		if err != nil {
			return nil, err
		}
		refs = append(refs, gatewayv1.HTTPBackendRef{BackendRef: gatewayv1.BackendRef{
			BackendObjectReference: gatewayv1.BackendObjectReference{
				Name: gatewayv1.ObjectName(raycluster.ServeServiceName(backend.cluster.Name)), Namespace: &namespace, Port: ptr.To(port),
			},
			Weight: ptr.To(backend.weight),
		}})
	}
	everything := gatewayv1.HTTPRouteMatch{Path: &gatewayv1.HTTPPathMatch{Type: ptr.To(gatewayv1.PathMatchPathPrefix), Value: ptr.To("/")}}
	return &gatewayv1.HTTPRoute{
		TypeMeta:   metav1.TypeMeta{APIVersion: gatewayv1.GroupVersion.String(), Kind: "HTTPRoute"},
		ObjectMeta: routingMeta(service, routeName(service)),
		Spec: gatewayv1.HTTPRouteSpec{
			CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{
				{Name: gatewayv1.ObjectName(gatewayName(service)), Namespace: &namespace}}},
			Rules: []gatewayv1.HTTPRouteRule{{Matches: []gatewayv1.HTTPRouteMatch{everything}, BackendRefs: refs}},
		},
	}, nil
}

func routingMeta(service *rayv1.RayService, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: service.Namespace, Name: name,
		Labels: map[string]string{
			rayv1.LabelOriginatedFromName: service.Name,
			rayv1.LabelOriginatedFromKind: rayv1.KindRayService,
		},
		OwnerReferences: []metav1.OwnerReference{ownerReference(service)},
	}
}

// backendPort is the port of a cluster's own Service that requests over HTTP are sent to: the one of the usual name, or else
// the first.
func backendPort(cluster *rayv1.RayCluster) (gatewayv1.PortNumber, error) {
	ports, err := servePorts(cluster, nil)
	if err != nil {
		return 0, err
	}
	usual := slices.IndexFunc(ports, func(port corev1.ServicePort) bool { return port.Name == ray.PortNameServe })
	return ports[max(usual, 0)].Port, nil
}

// weightOf is the weight of a cluster in an HTTPRoute. A backend without a weight has the weight 1, by the rule of the
// Gateway API.
func weightOf(route *gatewayv1.HTTPRoute, cluster string) int32 {
	weight := int32(0)
	for _, rule := range route.Spec.Rules {
		for _, ref := range rule.BackendRefs {
			if string(ref.Name) == raycluster.ServeServiceName(cluster) {
				weight += ptr.Deref(ref.Weight, 1)
			}
		}
	}
	return weight
}

// sameBackends tells whether two routes have the same backends with the same weights, and no others.
func sameBackends(a, b *gatewayv1.HTTPRoute) bool {
	list := func(route *gatewayv1.HTTPRoute) []string {
		var refs []string
		for _, rule := range route.Spec.Rules {
			for _, ref := range rule.BackendRefs {
				refs = append(refs, fmt.Sprint(ref.Name, " ", ptr.Deref(ref.Port, 0), " ", ptr.Deref(ref.Weight, 1)))
			}
		}
		return refs
	}
	return slices.Equal(list(a), list(b))
}

// verdict is what the implementation of the Gateway API makes of an object.
type verdict struct {
	// why says what is missing; empty when the object is in use as it is.
	why string
	// stale means that only the last change of the object has not been looked at yet.
	stale bool
}

// verdictOn tells what conditions of an object say, if they are about its present generation (RS-W24).
func verdictOn(what string, conditions []metav1.Condition, generation int64, kinds ...string) verdict {
	for _, kind := range kinds {
		switch c := meta.FindStatusCondition(conditions, kind); {
		case c == nil:
			return verdict{why: fmt.Sprintf("%s has no condition %s", what, kind)}
		case c.Status != metav1.ConditionTrue:
			return verdict{why: strings.TrimSpace(fmt.Sprintf("condition %s of %s is %s, %s %s", kind, what, c.Status, c.Reason, c.Message))}
		case c.ObservedGeneration != generation:
			return verdict{why: fmt.Sprintf("the last change of %s has not been taken up yet", what), stale: true}
		}
	}
	return verdict{}
}

// gatewayVerdict tells whether a Gateway takes requests.
func gatewayVerdict(gateway *gatewayv1.Gateway) verdict {
	return verdictOn("Gateway "+gateway.Name, gateway.Status.Conditions, gateway.Generation,
		string(gatewayv1.GatewayConditionAccepted), string(gatewayv1.GatewayConditionProgrammed))
}

// routeVerdict tells whether an HTTPRoute is in use at a Gateway.
func routeVerdict(route *gatewayv1.HTTPRoute, gateway string) verdict {
	for _, parent := range route.Status.Parents {
		namespace := ptr.Deref(parent.ParentRef.Namespace, gatewayv1.Namespace(route.Namespace))
		if string(parent.ParentRef.Name) == gateway && string(namespace) == route.Namespace {
			return verdictOn("HTTPRoute "+route.Name, parent.Conditions, route.Generation,
				string(gatewayv1.RouteConditionAccepted), string(gatewayv1.RouteConditionResolvedRefs))
		}
	}
	return verdict{why: fmt.Sprintf("HTTPRoute %s is not in use at Gateway %s", route.Name, gateway)}
}
