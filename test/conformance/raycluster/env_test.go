package raycluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/harness"
)

// name is the name of the RayCluster of a case.
const name = "demo"

// env is what one case works with: a namespace of its own with an operator of its own.
type env struct {
	*WithT
	harness.Cluster
	t        *testing.T
	ns       string
	operator *harness.Operator
}

func newEnv(t *testing.T) *env {
	c, ns := harness.Connect(t)
	return &env{WithT: NewWithT(t), Cluster: c, t: t, ns: ns}
}

type edit = func(*rayv1.RayCluster)

// start starts the operator.
func (e *env) start(options ...harness.Option) {
	e.t.Helper()
	e.operator = e.Run(e.t, e.ns, append([]harness.Option{harness.Alone()}, options...)...)
}

// given makes the RayCluster, and starts the operator unless it runs.
func (e *env) given(edits ...edit) *rayv1.RayCluster {
	e.t.Helper()
	cluster := e.stored(edits...)
	if e.operator == nil {
		e.start()
	}
	return cluster
}

// stored makes the RayCluster.
func (e *env) stored(edits ...edit) *rayv1.RayCluster {
	e.t.Helper()
	cluster := harness.NewCluster(e.ns, name, edits...)
	e.make(cluster)
	return cluster
}

// ready makes the RayCluster and has all its Pods ready.
func (e *env) ready(edits ...edit) *rayv1.RayCluster {
	e.t.Helper()
	cluster := e.given(edits...)
	e.BecomesReady(e.t, cluster)
	return cluster
}

func (e *env) make(object client.Object) {
	e.t.Helper()
	e.Expect(e.Create(e.t.Context(), object)).To(Succeed())
}

// read fetches an object of the namespace by name.
func (e *env) read(object client.Object, name string) error {
	return e.Get(e.t.Context(), types.NamespacedName{Namespace: e.ns, Name: name}, object)
}

// change edits the RayCluster and waits until the operator has looked at it.
func (e *env) change(cluster *rayv1.RayCluster, edit edit) {
	e.t.Helper()
	e.Edit(e.t, cluster, edit)
	e.Eventually(func() int64 {
		e.Expect(e.Get(e.t.Context(), client.ObjectKeyFromObject(cluster), cluster)).To(Succeed())
		return cluster.Status.ObservedGeneration
	}).Should(Equal(cluster.Generation), "the operator never looks at the change")
}

// rest waits until the operator has nothing more to do.
func (e *env) rest() {
	e.t.Helper()
	e.operator.Settle(e.t)
}

// heads are the head Pods, terminating ones included.
func (e *env) heads() []corev1.Pod { return e.Pods(e.t, e.ns, harness.HeadOf(name)) }

// workers are the worker Pods of all groups or of one, terminating ones included.
func (e *env) workers(group ...string) []corev1.Pod {
	selector := harness.WorkersOf(name)
	if len(group) > 0 {
		selector[rayv1.LabelGroup] = group[0]
	}
	return e.Pods(e.t, e.ns, selector)
}

// pods are all Pods of the namespace, terminating ones included.
func (e *env) pods() []corev1.Pod { return e.Pods(e.t, e.ns, nil) }

func (e *env) aliveWorkers(group ...string) []corev1.Pod { return harness.Alive(e.workers(group...)) }

// terminating are the names of the Pods that are being deleted.
func (e *env) terminating() []string {
	var names []string
	for _, pod := range e.pods() {
		if pod.DeletionTimestamp != nil {
			names = append(names, pod.Name)
		}
	}
	return names
}

// head waits for the head Pod and returns it.
func (e *env) head() corev1.Pod {
	e.t.Helper()
	e.Eventually(func() []corev1.Pod { return harness.Alive(e.heads()) }).Should(HaveLen(1))
	return harness.Alive(e.heads())[0]
}

// haveWorkers waits until there are so many live workers.
func (e *env) haveWorkers(count int, group ...string) []corev1.Pod {
	e.t.Helper()
	e.Eventually(func() []string { return harness.Names(e.aliveWorkers(group...)) }).Should(HaveLen(count))
	return e.aliveWorkers(group...)
}

// keeps checks that a Pod stays as it is for longer than a Pod that has ended would.
func (e *env) keeps(pod corev1.Pod) {
	e.t.Helper()
	e.Consistently(func() bool {
		now := &corev1.Pod{}
		return e.read(now, pod.Name) == nil && now.UID == pod.UID && now.DeletionTimestamp == nil
	}, 9*time.Second, 500*time.Millisecond).Should(BeTrue(), "Pod %s was deleted", pod.Name)
}

// holdAll keeps all Pods terminating once they are deleted.
func (e *env) holdAll(pods []corev1.Pod) {
	for _, pod := range pods {
		e.Hold(e.t, &pod)
	}
}

func (e *env) releaseAll() {
	for _, pod := range e.pods() {
		e.Release(e.t, &pod)
	}
}

// have waits until a condition has the status and, unless empty, the reason, and returns its message.
func (e *env) have(cluster *rayv1.RayCluster, kind string, status metav1.ConditionStatus, reason string) string {
	e.t.Helper()
	var c metav1.Condition
	e.Eventually(func() string {
		c = e.Condition(e.t, cluster, kind)
		if reason == "" {
			return string(c.Status)
		}
		return string(c.Status) + "/" + c.Reason
	}).Should(Equal(strings.TrimSuffix(string(status)+"/"+reason, "/")), "condition %s", kind)
	return c.Message
}

// status reads the status of the RayCluster.
func (e *env) status(cluster *rayv1.RayCluster) rayv1.RayClusterStatus {
	e.t.Helper()
	e.Expect(e.Get(e.t.Context(), client.ObjectKeyFromObject(cluster), cluster)).To(Succeed())
	return cluster.Status
}

// said waits for an event and returns its note.
func (e *env) said(about client.Object, eventType, reason string) string {
	e.t.Helper()
	note := ""
	e.Eventually(func() bool {
		events := e.Events(e.t, about)
		i := slices.IndexFunc(events, func(event eventsv1.Event) bool { return event.Reason == reason && event.Type == eventType })
		if i >= 0 {
			note = events[i].Note
		}
		return i >= 0
	}).Should(BeTrue(), "there is no %s event %s", eventType, reason)
	return note
}

// warned waits for a Warning event whose note contains the text.
func (e *env) warned(about client.Object, text string) {
	e.t.Helper()
	e.Eventually(func() []string {
		var notes []string
		for _, event := range e.Events(e.t, about) {
			if event.Type == corev1.EventTypeWarning {
				notes = append(notes, event.Note)
			}
		}
		return notes
	}).Should(ContainElement(ContainSubstring(text)))
}

// conditionMessages are the messages of all conditions of the RayCluster.
func (e *env) conditionMessages(cluster *rayv1.RayCluster) []string {
	e.t.Helper()
	var messages []string
	for _, c := range e.status(cluster).Conditions {
		messages = append(messages, c.Message)
	}
	return messages
}

// isInvalid checks that the operator finds the stored spec wrong, says so, and makes no Pod.
func (e *env) isInvalid(cluster *rayv1.RayCluster, reason, text string) {
	e.t.Helper()
	e.said(cluster, corev1.EventTypeWarning, reason)
	e.Expect(e.have(cluster, rayv1.ConditionValid, metav1.ConditionFalse, "")).To(ContainSubstring(text))
	e.rest()
	e.Expect(e.pods()).To(BeEmpty())
}

// raw is the RayCluster as a plain object, so that fields can be set which the types would leave out.
func (e *env) raw(cluster *rayv1.RayCluster) *unstructured.Unstructured {
	e.t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(cluster)
	e.Expect(err).ToNot(HaveOccurred())
	delete(content, "status")
	object := &unstructured.Unstructured{Object: content}
	object.SetAPIVersion("ray.io/v1")
	object.SetKind(rayv1.KindRayCluster)
	return object
}

// refused checks that the API server does not take the object, with the text in its answer.
func (e *env) refused(object client.Object, text string) {
	e.t.Helper()
	err := e.Create(e.t.Context(), object)
	e.Expect(apierrors.IsInvalid(err)).To(BeTrue(), "not refused as invalid: %v", err)
	e.Expect(err.Error()).To(ContainSubstring(text))
}

// storeUnchecked stores an object in its old version, whose schema has none of our rules: this is how an object comes
// to be there that is older than them.
func (e *env) storeUnchecked(object *unstructured.Unstructured) *rayv1.RayCluster {
	e.t.Helper()
	object = object.DeepCopy()
	object.SetAPIVersion("ray.io/v1alpha1")
	// The old version asks for start parameters.
	e.Expect(unstructured.SetNestedMap(object.Object, map[string]any{}, "spec", "headGroupSpec", "rayStartParams")).To(Succeed())
	groups, _, err := unstructured.NestedSlice(object.Object, "spec", "workerGroupSpecs")
	e.Expect(err).ToNot(HaveOccurred())
	for i := range groups {
		groups[i].(map[string]any)["rayStartParams"] = map[string]any{}
	}
	e.Expect(unstructured.SetNestedSlice(object.Object, groups, "spec", "workerGroupSpecs")).To(Succeed())
	e.make(object)
	cluster := &rayv1.RayCluster{}
	e.Expect(e.read(cluster, object.GetName())).To(Succeed())
	return cluster
}

// refusedOrSaid checks that bad input is refused when it is applied, and that the operator says what is wrong with an
// object which was stored before there were rules.
func (e *env) refusedOrSaid(object *unstructured.Unstructured, refusal, reason, said string) {
	e.t.Helper()
	e.refused(object.DeepCopy(), refusal)
	stored := e.storeUnchecked(object)
	if e.operator == nil {
		e.start()
	}
	e.isInvalid(stored, reason, said)
	e.Expect(e.Delete(e.t.Context(), stored)).To(Succeed())
}
