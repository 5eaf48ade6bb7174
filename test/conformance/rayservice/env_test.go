package rayservice

import (
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
	"github.com/heliostat-io/heliostat/test/harness"
)

const (
	// name is the name of the RayService of a case.
	name = "llm"
	// patience is how long something may take that is many steps of the operator, of Kubernetes and of Ray.
	patience = 4 * harness.Patience
)

// env is what one case works with: a namespace of its own with an operator of its own, and the Rays that it reaches.
type env struct {
	*WithT
	harness.Cluster
	t        *testing.T
	ns       string
	operator *harness.Operator
	// nodes plays the kubelet and Serve on Pods.
	nodes *harness.ServeNodes
	// noKubelet leaves all Pods pending.
	noKubelet bool
	// noSlices leaves the endpoints of Services as they are.
	noSlices bool
	// gateways has what the Gateway API is told taken up.
	gateways bool
	// turned is when Kubernetes did its work the last time.
	turned time.Time
}

// newEnv makes a namespace. Dashboards answer as soon as they are asked; applications are DEPLOYING once, then RUNNING.
func newEnv(t *testing.T) *env {
	c, ns := harness.Connect(t)
	return &env{WithT: NewWithT(t), Cluster: c, t: t, ns: ns, nodes: c.NewServeNodes(ns)}
}

// newRays prepares each dashboard before it is first asked.
func (e *env) newRays(prepare func(*fakedashboard.Dashboard)) {
	e.Rays.OnUnknown(func(string) *fakedashboard.Dashboard {
		ray := fakedashboard.NewInProcess()
		prepare(ray)
		return ray
	})
}

type edit = func(*rayv1.RayService)

// start starts the operator.
func (e *env) start(options ...harness.Option) {
	e.t.Helper()
	e.operator = e.Run(e.t, e.ns, append([]harness.Option{harness.Alone()}, options...)...)
}

// given makes the RayService, and starts the operator unless it runs.
func (e *env) given(edits ...edit) *rayv1.RayService {
	e.t.Helper()
	service := e.newService(edits...)
	e.make(service)
	if e.operator == nil {
		e.start()
	}
	return service
}

// newService is a RayService that is not stored yet.
func (e *env) newService(edits ...edit) *rayv1.RayService {
	service := harness.NewService(e.ns, name)
	for _, edit := range edits {
		edit(service)
	}
	return service
}

func (e *env) make(object client.Object) {
	e.t.Helper()
	e.Expect(e.Create(e.t.Context(), object)).To(Succeed())
}

// read fetches an object of the namespace by name.
func (e *env) read(object client.Object, name string) error {
	return e.Get(e.t.Context(), types.NamespacedName{Namespace: e.ns, Name: name}, object)
}

// change edits the RayService.
func (e *env) change(service *rayv1.RayService, edits ...edit) {
	e.t.Helper()
	base := service.DeepCopy()
	for _, edit := range edits {
		edit(service)
	}
	e.Expect(e.Patch(e.t.Context(), service, client.MergeFrom(base))).To(Succeed())
}

// changeSeen edits the RayService and waits until the operator has looked at it.
func (e *env) changeSeen(service *rayv1.RayService, edits ...edit) {
	e.t.Helper()
	e.change(service, edits...)
	generation := service.Generation
	e.follow(service, func(s *rayv1.RayServiceStatuses) any { return s.ObservedGeneration }).
		Should(Equal(generation), "the operator never looks at the change")
}

// turn lets Kubernetes and Ray do their work: Pods run, Services have endpoints, and what has lost its owner goes.
func (e *env) turn() {
	e.t.Helper()
	if !e.noKubelet {
		e.nodes.Turn(e.t)
	}
	if !e.noSlices {
		e.EndpointSlices(e.t, e.ns)
	}
	if e.gateways {
		e.Gateways(e.t, e.ns)
	}
	e.CollectGarbage(e.t, e.ns)
}

// turnIfDue lets them work, unless they have a moment ago: a turn is many requests, and many cases take turns at once.
func (e *env) turnIfDue() {
	e.t.Helper()
	if now := time.Now(); now.Sub(e.turned) >= 500*time.Millisecond {
		e.turned = now
		e.turn()
	}
}

// soon looks again and again while Kubernetes works.
func (e *env) soon(look func() any) AsyncAssertion {
	e.t.Helper()
	return e.Eventually(func() any {
		e.turnIfDue()
		return look()
	}).WithTimeout(patience).WithPolling(200 * time.Millisecond)
}

// follow looks at the status of the RayService again and again while Kubernetes works.
func (e *env) follow(service *rayv1.RayService, look func(*rayv1.RayServiceStatuses) any) AsyncAssertion {
	e.t.Helper()
	return e.soon(func() any {
		e.refresh(service)
		return look(&service.Status)
	})
}

// refresh reads the RayService anew.
func (e *env) refresh(service *rayv1.RayService) {
	e.t.Helper()
	e.Expect(e.Get(e.t.Context(), client.ObjectKeyFromObject(service), service)).To(Succeed())
}

// condition is one of the conditions as last read; one without type stands for none.
func condition(service *rayv1.RayService, kind string) metav1.Condition {
	return ptr.Deref(meta.FindStatusCondition(service.Status.Conditions, kind), metav1.Condition{})
}

// is is a condition in short.
func is(status metav1.ConditionStatus, reason string) string { return string(status) + "/" + reason }

// have waits until a condition has the status and the reason, and returns its message.
func (e *env) have(service *rayv1.RayService, kind string, status metav1.ConditionStatus, reason string) string {
	e.t.Helper()
	var c metav1.Condition
	e.follow(service, func(*rayv1.RayServiceStatuses) any {
		c = condition(service, kind)
		return is(c.Status, c.Reason)
	}).Should(Equal(is(status, reason)), func() string { return "condition " + kind + "; " + told(service) })
	return c.Message
}

// told is what the status says in short.
func told(service *rayv1.RayService) string {
	s := &service.Status
	text := fmt.Sprintf("active %q, pending %q, %d endpoints", s.ActiveServiceStatus.RayClusterName, s.PendingServiceStatus.RayClusterName, s.NumServeEndpoints)
	for _, c := range s.Conditions {
		text += "\n" + c.Type + "=" + is(c.Status, c.Reason) + " " + c.Message
	}
	return text
}

// said waits for an event about the object and returns its note.
func (e *env) said(about client.Object, eventType, reason string) string {
	e.t.Helper()
	note := ""
	e.soon(func() any {
		events := e.Events(e.t, about)
		i := slices.IndexFunc(events, func(event eventsv1.Event) bool { return event.Reason == reason && event.Type == eventType })
		if i >= 0 {
			note = events[i].Note
		}
		return e.EventReasons(e.t, about)
	}).Should(ContainElement(reason))
	return note
}

// times is how often an event with the reason was sent about the object.
func (e *env) times(about client.Object, reason string) int {
	e.t.Helper()
	count := 0
	for _, event := range e.Events(e.t, about) {
		if event.Reason == reason {
			count++
			if event.Series != nil {
				count += int(event.Series.Count) - 1
			}
		}
	}
	return count
}

// rest waits until the operator writes no more.
func (e *env) rest() {
	e.t.Helper()
	e.operator.Settle(e.t)
}

// clusters are all RayClusters of the namespace.
func (e *env) clusters() []rayv1.RayCluster {
	e.t.Helper()
	list := &rayv1.RayClusterList{}
	e.Expect(e.List(e.t.Context(), list, client.InNamespace(e.ns))).To(Succeed())
	return list.Items
}

// pending waits for the cluster that is to take over and returns it.
func (e *env) pending(service *rayv1.RayService) *rayv1.RayCluster {
	e.t.Helper()
	return e.clusterOf(service, func(s *rayv1.RayServiceStatuses) string { return s.PendingServiceStatus.RayClusterName })
}

// active waits for the cluster that serves and returns it.
func (e *env) active(service *rayv1.RayService) *rayv1.RayCluster {
	e.t.Helper()
	return e.clusterOf(service, func(s *rayv1.RayServiceStatuses) string { return s.ActiveServiceStatus.RayClusterName })
}

func (e *env) clusterOf(service *rayv1.RayService, name func(*rayv1.RayServiceStatuses) string) *rayv1.RayCluster {
	e.t.Helper()
	cluster := &rayv1.RayCluster{}
	e.follow(service, func(s *rayv1.RayServiceStatuses) any {
		if name(s) == "" {
			return "no name yet"
		}
		return e.read(cluster, name(s))
	}).Should(BeNil(), func() string { return told(service) })
	return cluster
}

// ready makes the RayService and follows it until it serves.
func (e *env) ready(edits ...edit) *rayv1.RayService {
	e.t.Helper()
	service := e.given(edits...)
	e.serves(service)
	return service
}

// serves follows the RayService until it is where it is meant to be.
func (e *env) serves(service *rayv1.RayService) {
	e.t.Helper()
	e.follow(service, func(s *rayv1.RayServiceStatuses) any {
		reconciling := condition(service, rayv1.ConditionReconciling)
		return s.ObservedGeneration == service.Generation && s.ServiceStatus == rayv1.ServiceStatusRunning &&
			is(reconciling.Status, reconciling.Reason) == is(metav1.ConditionFalse, rayv1.ReasonServing)
	}).Should(BeTrue(), func() string { return "it never serves; " + told(service) })
}

// ray waits until the operator asks the dashboard of a cluster, and returns that.
func (e *env) ray(cluster string) *fakedashboard.Dashboard {
	e.t.Helper()
	var ray *fakedashboard.Dashboard
	e.soon(func() any {
		ray = e.Rays.Dashboard(harness.DashboardHost(e.ns, cluster))
		return ray != nil
	}).Should(BeTrue(), "the dashboard of %s is never asked", cluster)
	return ray
}

// asked waits until Serve was asked for its report so many times more.
func (e *env) asked(ray *fakedashboard.Dashboard, times int) {
	e.t.Helper()
	before := ray.Requests(fakedashboard.EndpointServe)
	e.soon(func() any { return ray.Requests(fakedashboard.EndpointServe) - before }).Should(BeNumerically(">=", times), "Serve is not asked any more")
}

// head waits for the head Pod of a cluster and returns it.
func (e *env) head(cluster string) *corev1.Pod {
	e.t.Helper()
	var pods []corev1.Pod
	e.soon(func() any {
		pods = harness.Alive(e.Pods(e.t, e.ns, harness.HeadOf(cluster)))
		return pods
	}).Should(HaveLen(1))
	return &pods[0]
}

// service reads a Service.
func (e *env) service(name string) *corev1.Service {
	e.t.Helper()
	service := &corev1.Service{}
	e.Expect(e.read(service, name)).To(Succeed())
	return service
}

// leadsTo is the cluster that a Service sends requests to, or why that is not known.
func (e *env) leadsTo(name string) string {
	e.t.Helper()
	service := &corev1.Service{}
	if err := e.read(service, name); err != nil {
		return err.Error()
	}
	return service.Spec.Selector[rayv1.LabelCluster]
}

// gone waits until an object is no longer there.
func (e *env) gone(object client.Object) {
	e.t.Helper()
	e.soon(func() any { return e.isGone(object) }).Should(BeTrue(), "%T %s is still there", object, object.GetName())
}

// isGone tells whether an object of that UID is no longer there.
func (e *env) isGone(object client.Object) bool {
	e.t.Helper()
	now := object.DeepCopyObject().(client.Object)
	err := e.Get(e.t.Context(), client.ObjectKeyFromObject(object), now)
	e.Expect(client.IgnoreNotFound(err)).To(Succeed())
	return apierrors.IsNotFound(err) || now.GetUID() != object.GetUID()
}
