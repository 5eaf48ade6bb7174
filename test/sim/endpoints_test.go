package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
	"github.com/heliostat-io/heliostat/test/sim/kube"
)

const (
	// proxyLag is how long nodes send requests on to a Pod that an EndpointSlice does not name any more.
	proxyLag = time.Second
	// metricsPause is the time between two moments at which Ray brings its metrics up to date.
	metricsPause = 10 * time.Second
	// usualRequest is how long the longest requests take.
	usualRequest = 5 * time.Second
)

// endpointDeeds are what the controller of EndpointSlices does next. It follows from what is stored alone, so it is found out
// once for each state of that.
func (w *world) endpointDeeds() []*deed {
	if w.endpoints.rv != w.server.RV() {
		w.endpoints.rv, w.endpoints.deeds = w.server.RV(), w.newEndpoints()
	}
	return w.endpoints.deeds
}

func (w *world) newEndpoints() []*deed {
	var deeds []*deed
	for _, stored := range w.server.List("Service") {
		service := stored.(*corev1.Service)
		if service.Labels[rayv1.LabelServe] == "" || len(service.Spec.Selector) == 0 {
			continue
		}
		wanted := w.endpointsOf(service)
		slice := w.sliceOf(service)
		switch {
		case slice == nil:
			deeds = append(deeds, &deed{"Service " + service.Name + " gets endpoints", func() { w.addSlice(service, wanted) }})
		case !equality.Semantic.DeepEqual(slice.Endpoints, wanted):
			deeds = append(deeds, &deed{"the endpoints of Service " + service.Name + " are now " + shownEndpoints(wanted), func() {
				w.must(w.server.Change("endpoints", slice, "", func(o object) { o.(*discoveryv1.EndpointSlice).Endpoints = wanted }))
			}})
		}
	}
	return deeds
}

func (w *world) addSlice(service *corev1.Service, endpoints []discoveryv1.Endpoint) {
	if w.vanishing {
		return
	}
	labels := maps.Clone(service.Labels)
	labels[discoveryv1.LabelServiceName] = service.Name
	w.must(w.server.Add(&discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: service.Namespace, Name: string(service.UID), Labels: labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(service, corev1.SchemeGroupVersion.WithKind("Service"))}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: endpoints,
	}))
}

// sliceOf is the EndpointSlice of a Service, nil while there is none.
func (w *world) sliceOf(service *corev1.Service) *discoveryv1.EndpointSlice {
	slice, _ := w.server.Get("EndpointSlice", named(string(service.UID))).(*discoveryv1.EndpointSlice)
	return slice
}

// endpointsOf are the Pods that a Service selects, and whether they are ready.
func (w *world) endpointsOf(service *corev1.Service) []discoveryv1.Endpoint {
	var endpoints []discoveryv1.Endpoint
	for _, stored := range w.server.List("Pod") {
		pod := stored.(*corev1.Pod)
		if !selects(service, pod) || pod.Status.PodIP == "" {
			continue
		}
		endpoints = append(endpoints, discoveryv1.Endpoint{
			Addresses:  []string{pod.Status.PodIP},
			Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(podReady(pod)), Terminating: ptr.To(pod.DeletionTimestamp != nil)},
			TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		})
	}
	return endpoints
}

func shownEndpoints(endpoints []discoveryv1.Endpoint) string {
	shown := []string{}
	for _, endpoint := range endpoints {
		if *endpoint.Conditions.Ready {
			shown = append(shown, endpoint.TargetRef.Name)
		}
	}
	return fmt.Sprint(shown)
}

// traffic is what a Pod gets of the requests that clients send through the Service of Serve. While it is behind that, one
// request arrives each second.
type traffic struct {
	in bool
	// since is when it got behind the Service, left when the last request reached it after that.
	since, left time.Duration
	// before are the requests that it got until since.
	before int64
}

// arrived is how many requests had reached the Pod at some time.
func (t *traffic) arrived(at time.Duration) int64 {
	if !t.in {
		at = min(at, t.left)
	}
	return t.before + max(int64((at-t.since)/time.Second), 0)
}

// busy tells whether requests are under way at some time.
func (t *traffic) busy(at, request time.Duration) bool {
	return t.in && at >= t.since || t.left > 0 && at < t.left+request
}

// route notes to which Pods requests are sent from now on.
func (w *world) route(write kube.Write) {
	slice, ok := cmp.Or[object](write.After, write.Before).(*discoveryv1.EndpointSlice)
	if !ok || !isServeService(slice) {
		return
	}
	behind := map[types.UID]bool{}
	if write.After != nil {
		for _, endpoint := range slice.Endpoints {
			behind[endpoint.TargetRef.UID] = *endpoint.Conditions.Ready
		}
	}
	for uid, ready := range behind {
		if t := w.traffic[uid]; ready && (t == nil || !t.in) {
			before := int64(0)
			if t != nil {
				before = t.arrived(w.mono)
			}
			w.traffic[uid] = &traffic{in: true, since: w.mono, before: before}
		}
	}
	for uid, t := range w.traffic {
		if t.in && !behind[uid] {
			t.in, t.left = false, w.mono+proxyLag
		}
	}
}

// isServeService tells whether an object is the Service of Serve of a RayService, or an EndpointSlice of that.
func isServeService(o object) bool {
	labels := o.GetLabels()
	return labels[rayv1.LabelServe] != "" && labels[rayv1.LabelServe] == labels[rayv1.LabelOriginatedFromName]+"-serve" &&
		labels[rayv1.LabelOriginatedFromKind] == rayv1.KindRayService
}

// underWay tells whether a Pod has requests to answer.
func (w *world) underWay(pod types.UID) bool {
	t := w.traffic[pod]
	return t != nil && t.busy(w.mono, w.scenario.longest())
}

// longest is how long the longest requests take.
func (s *scenario) longest() time.Duration { return cmp.Or(s.requests, usualRequest) }

// trafficOf is what the metrics of a Pod say of its requests. They are as old as Ray lets them be.
func (w *world) trafficOf(pod *corev1.Pod) dashboard.ServeTraffic {
	at := w.mono.Truncate(metricsPause)
	t := w.traffic[pod.UID]
	if t == nil || at < t.since && t.before == 0 {
		return dashboard.ServeTraffic{}
	}
	told := dashboard.ServeTraffic{Reported: true, Requests: float64(t.arrived(at - w.scenario.longest()))}
	if t.busy(at, w.scenario.longest()) {
		told.Ongoing = 1
	}
	return told
}

// serveServices are the Services of Serve of a RayService.
func (w *world) serveServices(owner *rayv1.RayService) []*corev1.Service {
	var services []*corev1.Service
	for _, stored := range w.server.List("Service") {
		if isServeService(stored) && metav1.IsControlledBy(stored, owner) {
			services = append(services, stored.(*corev1.Service))
		}
	}
	return services
}

// readyPods are the UIDs of the Pods that an EndpointSlice sends requests to.
func readyPods(slice *discoveryv1.EndpointSlice) []types.UID {
	var ready []types.UID
	for _, endpoint := range slice.Endpoints {
		if *endpoint.Conditions.Ready {
			ready = append(ready, endpoint.TargetRef.UID)
		}
	}
	slices.Sort(ready)
	return ready
}
