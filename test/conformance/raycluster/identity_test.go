package raycluster

import (
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/harness"
)

func identityCases() []Case {
	return []Case{
		{Row: 111, Kind: better, Weak: []string{"W16"}, Theirs: "makes a surplus worker or a second head", When: "the API server stores Pods and the answers are lost", Then: "one head, two workers, nothing made twice",
			How: "the name of a Pod follows from its place, so a repeated create meets the first one", Run: func(e *env) {
				e.start(harness.Transport(harness.LoseAnswers("create", "pods", 2)))
				cluster := e.ready()
				e.rest()
				e.Expect(e.heads()).To(HaveLen(1))
				e.Expect(e.workers()).To(HaveLen(2))
				e.Expect(e.operator.Traffic.Count("create", "pods")).To(Equal(3))
				e.Expect(e.status(cluster).State).To(Equal(rayv1.ClusterStateReady))
			}},
		{Row: 112, Kind: better, Weak: []string{"W17"}, Theirs: "stops all work on Pods until someone deletes one", Given: "a ready cluster", When: "someone makes a second Pod with the head's labels", Then: "the real head works on, a Warning names the other, workers are kept",
			How: "ours is what we control, not what carries our labels", Run: func(e *env) {
				cluster := e.ready()
				head := e.head()
				foreign := &corev1.Pod{Spec: harness.PodTemplate("ray-head").Spec}
				foreign.Namespace, foreign.Name, foreign.Labels = e.ns, "impostor", head.Labels
				e.make(foreign)
				lost := e.workers()[0]
				e.Kill(e.t, &lost)
				e.isReplaced(lost)
				e.keeps(head)
				e.Expect(e.status(cluster).Head.PodName).To(Equal(head.Name))
				e.warned(cluster, foreign.Name)
				e.Expect(e.read(&corev1.Pod{}, foreign.Name)).To(Succeed())
			}},
		{Row: 113, Kind: better, Weak: []string{"W19"}, Theirs: "takes the old Pods for its own and says ready", Given: "Pods of a deleted cluster of the same name", When: "the cluster is created again", Then: "it gets Pods of its own and counts none of the old ones",
			How: "ownership is by UID", Run: func(e *env) {
				first := e.ready()
				old := uids(e.pods())
				e.Expect(e.Delete(e.t.Context(), first)).To(Succeed()) // no garbage collector runs here: the Pods stay
				second := e.stored()
				e.Eventually(e.pods).Should(HaveLen(6))
				e.rest()
				status := e.status(second)
				e.Expect(status.State).To(Equal(rayv1.ClusterStateNew))
				e.Expect([]int32{status.AvailableWorkerReplicas, status.ReadyWorkerReplicas}).To(Equal([]int32{0, 0}))
				e.Expect(uids(e.pods())).To(ContainElements(old))
				own := 0
				for _, pod := range e.pods() {
					if metav1.IsControlledBy(&pod, second) {
						own++
					}
				}
				e.Expect(own).To(Equal(3))
			}},
		{Row: 114, Kind: better, Weak: []string{"W18"}, Theirs: "errors without end, no condition", Given: "someone else's Service under the head Service's name", When: "the cluster is created", Then: "a condition names it, nothing of it is overwritten",
			How: "condition NameCollision; Pods do not wait for it", Run: func(e *env) {
				foreign := &corev1.Service{Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "other"}, Ports: []corev1.ServicePort{{Port: 80}}}}
				foreign.Namespace, foreign.Name = e.ns, "demo-head-svc"
				e.make(foreign)
				cluster := e.given()
				e.head()
				e.haveWorkers(2)
				e.Expect(e.have(cluster, conditionNameCollision, metav1.ConditionTrue, "")).To(ContainSubstring("demo-head-svc"))
				e.rest()
				e.Expect(e.service("demo-head-svc").ResourceVersion).To(Equal(foreign.ResourceVersion))
			}},
	}
}

// listed are the objects of a kind in the namespace.
func (e *env) listed(list client.ObjectList) []client.Object {
	e.t.Helper()
	e.Expect(e.List(e.t.Context(), list, client.InNamespace(e.ns))).To(Succeed())
	var objects []client.Object
	e.Expect(apimeta.EachListItem(list, func(object runtime.Object) error {
		objects = append(objects, object.(client.Object))
		return nil
	})).To(Succeed())
	return objects
}
