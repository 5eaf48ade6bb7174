package raycluster

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
)

var planNow = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// world is a RayCluster and its Pods, as a plan sees them.
type world struct {
	Snapshot
	settings Settings
	// tokens counts the tokens that were drawn.
	tokens int
}

// demo is a cluster "demo" with one group "a" of two workers and no Pod yet.
func demo(edits ...func(*world)) *world {
	container := func(name string) corev1.PodTemplateSpec {
		return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: name, Image: "img:1"}}}}
	}
	w := &world{settings: DefaultSettings()}
	w.Cluster = &rayv1.RayCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo", UID: "u-1", Generation: 1},
		Spec: rayv1.RayClusterSpec{
			HeadGroupSpec: rayv1.HeadGroupSpec{Template: container("ray-head")},
			WorkerGroupSpecs: []rayv1.WorkerGroupSpec{{GroupName: "a", Replicas: ptr.To[int32](2), MinReplicas: ptr.To[int32](0),
				MaxReplicas: ptr.To[int32](4), NumOfHosts: 1, Template: container("ray-worker")}},
		},
	}
	w.Named = map[string]client.Object{}
	for _, edit := range edits {
		edit(w)
	}
	return w
}

// pass applies a plan to the world as the API server would, and returns what it did.
func (w *world) pass(now time.Time) []string {
	plan := Plan(w.Snapshot, w.settings, now)
	if plan.Status != nil {
		w.Cluster = plan.Status.Object.(*rayv1.RayCluster)
	}
	return w.do(plan.Actions, now)
}

func (w *world) do(actions []action.Action, now time.Time) []string {
	var did []string
	for _, a := range actions {
		switch a := a.(type) {
		case action.Create:
			pod, isPod := a.Object.DeepCopyObject().(*corev1.Pod)
			if !isPod {
				w.own(a.Object)
				did = append(did, "create "+a.Object.GetName())
				continue
			}
			pod.UID, pod.CreationTimestamp, pod.Status.Phase = types.UID(pod.Name), metav1.NewTime(now), corev1.PodPending
			w.Pods = append(w.Pods, pod)
			did = append(did, "create "+slotName(pod))
		case action.Apply:
			w.own(a.Object)
			did = append(did, "apply "+a.Object.GetName())
		case action.Finalizers:
			w.Cluster = w.Cluster.DeepCopy()
			w.Cluster.Finalizers = a.Want
			did = append(did, fmt.Sprintf("finalizers %v", a.Want))
		case action.Update:
			w.own(a.Object)
			did = append(did, "update "+a.Object.GetName())
		case action.MakeToken:
			secret := a.Secret.DeepCopy()
			w.tokens++
			secret.Data = map[string][]byte{a.Entry: fmt.Appendf(nil, "token %d", w.tokens)}
			secret.CreationTimestamp = metav1.NewTime(now)
			w.own(secret)
			did = append(did, "make token "+secret.Name)
		case action.Delete:
			object := a.Object
			object.SetDeletionTimestamp(ptr.To(metav1.NewTime(now)))
			if pod, ok := object.(*corev1.Pod); ok {
				did = append(did, "delete "+slotName(pod))
				continue
			}
			w.Owned = slices.DeleteFunc(w.Owned, func(other client.Object) bool { return other == object })
			did = append(did, "delete "+object.GetName())
		}
	}
	return did
}

// own puts an object into the place of one of the same kind and name.
func (w *world) own(object client.Object) {
	w.Owned = slices.DeleteFunc(w.Owned, func(other client.Object) bool {
		return kindOf(other) == kindOf(object) && other.GetName() == object.GetName()
	})
	w.Owned = append(w.Owned, object)
}

// slotName is "head" or "<group>/<replica>", which does not depend on computed names.
func slotName(pod *corev1.Pod) string {
	if pod.Labels[rayv1.LabelNodeType] == rayv1.NodeTypeHead {
		return "head"
	}
	name := pod.Labels[rayv1.LabelGroup] + "/" + pod.Labels[rayv1.LabelWorkerGroupReplicaIndex]
	if host, ok := pod.Labels[rayv1.LabelReplicaHostIndex]; ok {
		name += "." + host
	}
	return name
}

func (w *world) pod(slot string) *corev1.Pod {
	for _, pod := range w.Pods {
		if slotName(pod) == slot && pod.DeletionTimestamp == nil {
			return pod
		}
	}
	panic("no Pod " + slot)
}

func (w *world) makeReady(pods ...*corev1.Pod) {
	for _, pod := range pods {
		pod.Spec.NodeName = "n1"
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1",
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	}
}

// gone removes the Pods that are terminating, as the kubelet would.
func (w *world) gone() {
	var rest []*corev1.Pod
	for _, pod := range w.Pods {
		if pod.DeletionTimestamp == nil {
			rest = append(rest, pod)
		}
	}
	w.Pods = rest
}

// ready is demo with all its Pods running and ready.
func ready(edits ...func(*world)) *world {
	w := demo(edits...)
	w.pass(planNow)
	w.makeReady(w.Pods...)
	w.pass(planNow)
	return w
}

func TestPlanOfPods(t *testing.T) {
	group := func(w *world) *rayv1.WorkerGroupSpec { return &w.Cluster.Spec.WorkerGroupSpecs[0] }
	for name, tc := range map[string]struct {
		given func() *world
		when  func(*world)
		want  []string
	}{
		"a new cluster gets its Service, one head and its workers": {
			given: func() *world { return demo() },
			want:  []string{"apply demo-head-svc", "create head", "create a/0", "create a/1"},
		},
		"a ready cluster needs nothing": {given: func() *world { return ready() }},
		"scaling up takes the next index": {
			given: func() *world { return ready() },
			when:  func(w *world) { group(w).Replicas = ptr.To[int32](3) },
			want:  []string{"create a/2"},
		},
		"replicas above the maximum count as the maximum": {
			given: func() *world { return ready() },
			when:  func(w *world) { group(w).Replicas = ptr.To[int32](9) },
			want:  []string{"create a/2", "create a/3"},
		},
		"scaling down takes the worker that is worth least": {
			given: func() *world { return ready() },
			when: func(w *world) {
				group(w).Replicas = ptr.To[int32](1)
				w.pod("a/0").Status.Conditions = nil
			},
			want: []string{"delete a/0"},
		},
		"a terminating worker is neither capacity nor a victim": {
			given: func() *world { return ready() },
			when: func(w *world) {
				group(w).Replicas = ptr.To[int32](1)
				w.pod("a/1").DeletionTimestamp = ptr.To(metav1.NewTime(planNow))
			},
		},
		"a worker stuck terminating is replaced beside it, under another index": {
			given: func() *world { return ready() },
			when:  func(w *world) { w.pod("a/0").DeletionTimestamp = ptr.To(metav1.NewTime(planNow)) },
			want:  []string{"create a/2"},
		},
		"a deleted worker comes back at the smallest free index": {
			given: func() *world { return ready() },
			when: func(w *world) {
				w.pod("a/0").DeletionTimestamp = ptr.To(metav1.NewTime(planNow))
				w.gone()
			},
			want: []string{"create a/0"},
		},
		"a failed worker is deleted and replaced at once": {
			given: func() *world { return ready() },
			when:  func(w *world) { w.pod("a/0").Status.Phase = corev1.PodFailed },
			want:  []string{"delete a/0", "create a/2"},
		},
		"a worker whose Ray container ended for good is replaced": {
			given: func() *world { return ready() },
			when: func(w *world) {
				pod := w.pod("a/1")
				pod.Spec.RestartPolicy = corev1.RestartPolicyNever
				pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "ray-worker", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}}
			},
			want: []string{"delete a/1", "create a/2"},
		},
		"a worker whose Ray container will be restarted stays": {
			given: func() *world { return ready() },
			when: func(w *world) {
				pod := w.pod("a/1")
				pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
				pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "ray-worker", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}}
			},
		},
		"a failed head is deleted, and its successor waits until it is gone": {
			given: func() *world { return ready() },
			when:  func(w *world) { w.pod("head").Status.Phase = corev1.PodFailed },
			want:  []string{"delete head"},
		},
		"a terminating head keeps a second one from being made": {
			given: func() *world { return ready() },
			when:  func(w *world) { w.pod("head").DeletionTimestamp = ptr.To(metav1.NewTime(planNow)) },
		},
		"a terminating head that has ended is replaced, although a finalizer of others holds it": {
			given: func() *world { return ready() },
			when: func(w *world) {
				head := w.pod("head")
				head.DeletionTimestamp, head.Finalizers, head.Status.Phase = ptr.To(metav1.NewTime(planNow)), []string{"example.com/hold"}, corev1.PodFailed
			},
			want: []string{"create head"},
		},
		"unless all heads have one name": {
			given: func() *world { return ready(func(w *world) { w.settings.DeterministicHeadPodName = true }) },
			when: func(w *world) {
				head := w.pod("head")
				head.DeletionTimestamp, head.Finalizers, head.Status.Phase = ptr.To(metav1.NewTime(planNow)), []string{"example.com/hold"}, corev1.PodFailed
			},
		},
		"a lost head is replaced and the workers are left alone": {
			given: func() *world { return ready() },
			when: func(w *world) {
				w.pod("head").DeletionTimestamp = ptr.To(metav1.NewTime(planNow))
				w.gone()
			},
			want: []string{"create head"},
		},
		"of two heads the one that is worth more stays": {
			given: func() *world { return ready() },
			when: func(w *world) {
				second := w.pod("head").DeepCopy()
				second.Name, second.UID, second.Status = "demo-head-zzzzz", "second", corev1.PodStatus{Phase: corev1.PodPending}
				w.Pods = append([]*corev1.Pod{second}, w.Pods...)
			},
			want: []string{"delete head"},
		},
		"workersToDelete names go, and only those": {
			given: func() *world { return ready() },
			when: func(w *world) {
				group(w).Replicas = ptr.To[int32](1)
				group(w).ScaleStrategy.WorkersToDelete = []string{w.pod("a/0").Name, "demo-a-worker-gone1", w.pod("head").Name}
			},
			want: []string{"delete a/0"},
		},
		"with the autoscaler on, surplus workers stay until they are named": {
			given: func() *world {
				return ready(func(w *world) { w.Cluster.Spec.EnableInTreeAutoscaling = ptr.To(true) })
			},
			when: func(w *world) { group(w).Replicas = ptr.To[int32](1) },
		},
		"the workers of a removed group go": {
			given: func() *world { return ready() },
			when:  func(w *world) { w.Cluster.Spec.WorkerGroupSpecs = nil },
			want:  []string{"delete a/0", "delete a/1"},
		},
		"a refused group is held back and does not hold up another one": {
			given: func() *world {
				return demo(func(w *world) {
					b := *group(w).DeepCopy()
					b.GroupName = "b"
					w.Cluster.Spec.WorkerGroupSpecs = append(w.Cluster.Spec.WorkerGroupSpecs, b)
					w.Holds = map[string]action.Hold{"a": {Reason: "FailedToCreateWorkerPod", Until: planNow.Add(time.Hour)}}
				})
			},
			want: []string{"apply demo-head-svc", "create head", "create b/0", "create b/1"},
		},
		"a replica of several hosts is a unit": {
			given: func() *world {
				return demo(func(w *world) { group(w).NumOfHosts = 2; group(w).Replicas = ptr.To[int32](1) })
			},
			want: []string{"apply demo-head-svc", "apply demo-headless", "create head", "create a/0.0", "create a/0.1"},
		},
		"a named host takes its replica with it": {
			given: func() *world {
				return ready(func(w *world) { group(w).NumOfHosts = 2; group(w).Replicas = ptr.To[int32](2) })
			},
			when: func(w *world) {
				group(w).Replicas = ptr.To[int32](1)
				group(w).ScaleStrategy.WorkersToDelete = []string{w.pod("a/0.1").Name}
			},
			want: []string{"delete a/0.0", "delete a/0.1"},
		},
		"given no earlier spec, one that makes no sense changes nothing that runs": {
			given: func() *world { return ready() },
			when: func(w *world) {
				group(w).MinReplicas = ptr.To[int32](9)
				w.pod("a/0").Status.Phase = corev1.PodFailed
			},
		},
		"suspending removes all Pods and keeps the Service": {
			given: func() *world { return ready() },
			when:  func(w *world) { w.Cluster.Spec.Suspend = ptr.To(true) },
			want:  []string{"delete head", "delete a/0", "delete a/1"},
		},
		"a cluster that is managed by another controller is left alone": {
			given: func() *world { return demo() },
			when:  func(w *world) { w.Cluster.Spec.ManagedBy = ptr.To(rayv1.ManagedByMultiKueue) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := tc.given()
			if tc.when != nil {
				tc.when(w)
			}
			if diff := cmp.Diff(tc.want, w.pass(planNow.Add(time.Minute))); diff != "" {
				t.Errorf("actions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPlanNeverUsesANameTwice(t *testing.T) {
	w := ready()
	used := map[string]bool{}
	for _, pod := range w.Pods {
		used[pod.Name] = true
	}
	for round := range 50 {
		for _, slot := range []string{"head", "a/0"} {
			w.pod(slot).DeletionTimestamp = ptr.To(metav1.NewTime(planNow))
		}
		w.gone() // nobody saw these Pods die: only the status remembers their numbers
		w.pass(planNow)
		for _, pod := range []*corev1.Pod{w.pod("head"), w.pod("a/0")} {
			if used[pod.Name] {
				t.Fatalf("round %d: the name %s is used again", round, pod.Name)
			}
			used[pod.Name] = true
		}
	}
}

func TestPodsThatEndAtOnceAreReplacedSlowly(t *testing.T) {
	w := ready()
	w.pod("a/0").Status.Phase = corev1.PodFailed
	plan := Plan(w.Snapshot, w.settings, planNow.Add(time.Second))
	if len(plan.Actions) > 0 || plan.LookAgain != 4*time.Second {
		t.Errorf("a Pod that ended after one second is replaced after five: %v, look again in %s", plan.Actions, plan.LookAgain)
	}
}
