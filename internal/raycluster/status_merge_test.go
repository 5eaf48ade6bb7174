package raycluster

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

func TestMergeFor(t *testing.T) {
	condition := func(kind, reason, message string) []metav1.Condition {
		return []metav1.Condition{{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message}}
	}
	for name, tc := range map[string]struct {
		change func(*rayv1.RayClusterStatus)
		age    time.Duration
		want   time.Duration
	}{
		"a counter waits":               {change: func(st *rayv1.RayClusterStatus) { st.ReadyWorkerReplicas = 9 }, age: time.Second, want: 2 * time.Second},
		"a counter has waited":          {change: func(st *rayv1.RayClusterStatus) { st.ReadyWorkerReplicas = 9 }, age: 3 * time.Second},
		"a text waits":                  {change: func(st *rayv1.RayClusterStatus) { st.Conditions = condition("Ready", "PodsNotReady", "2 of 3") }, want: 3 * time.Second},
		"the head's own reason waits":   {change: func(st *rayv1.RayClusterStatus) { st.Conditions = condition("HeadPodReady", "Unknown", "") }, want: 3 * time.Second},
		"endpoints wait":                {change: func(st *rayv1.RayClusterStatus) { st.Endpoints = map[string]string{"dashboard": "8265"} }, want: 3 * time.Second},
		"a reason does not":             {change: func(st *rayv1.RayClusterStatus) { st.Conditions = condition("Ready", "SpecInvalid", "") }},
		"a new condition does not":      {change: func(st *rayv1.RayClusterStatus) { st.Conditions = condition("Other", "PodsNotReady", "1 of 3") }},
		"the state does not":            {change: func(st *rayv1.RayClusterStatus) { st.State = rayv1.ClusterStateReady }},
		"the generation does not":       {change: func(st *rayv1.RayClusterStatus) { st.ObservedGeneration = 2 }},
		"an incarnation does not":       {change: func(st *rayv1.RayClusterStatus) { st.Incarnations = map[string]int64{"a": 1} }},
		"a clock ahead of ours is none": {change: func(st *rayv1.RayClusterStatus) { st.ReadyWorkerReplicas = 9 }, age: -time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			before := rayv1.RayClusterStatus{LastUpdateTime: ptr.To(metav1.NewTime(planNow.Add(-tc.age))), Conditions: condition("Ready", "PodsNotReady", "1 of 3")}
			if name == "the head's own reason waits" {
				before.Conditions = condition("HeadPodReady", "HeadPodNotFound", "")
			}
			after := *before.DeepCopy()
			tc.change(&after)
			if got := mergeFor(&before, &after, planNow); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// writes plans at each moment and counts the status writes.
func (w *world) writes(now time.Time) int {
	if Plan(w.Snapshot, w.settings, now).Status == nil {
		w.pass(now)
		return 0
	}
	w.pass(now)
	return 1
}

func TestAStartCostsTwoStatusWrites(t *testing.T) {
	w := demo(func(w *world) { w.Cluster.Spec.WorkerGroupSpecs[0].Replicas = ptr.To[int32](3) })
	at := func(ms int) time.Time { return planNow.Add(900*time.Millisecond + time.Duration(ms)*time.Millisecond) }
	count := w.writes(at(0))
	for ms := 20; ms < 200; ms += 20 { // the cache shows the Service and the Pods, Pods are scheduled and start
		for i, pod := range w.Pods {
			if ms > 40*i {
				pod.Spec.NodeName = "n1"
				pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady"}}
			}
		}
		count += w.writes(at(ms))
	}
	for i, pod := range w.Pods { // one after the other, the head first
		w.makeReady(pod)
		count += w.writes(at(1500 + i))
	}
	count += w.writes(at(1600))
	if count != 2 || w.Cluster.Status.State != rayv1.ClusterStateReady {
		t.Errorf("%d status writes, state %q", count, w.Cluster.Status.State)
	}
}

func TestManyWorkersDoNotCostManyStatusWrites(t *testing.T) {
	const workers = 1000
	w := demo(func(w *world) {
		w.Cluster.Spec.WorkerGroupSpecs[0].Replicas, w.Cluster.Spec.WorkerGroupSpecs[0].MaxReplicas = ptr.To[int32](workers), ptr.To[int32](workers)
	})
	now := planNow
	for len(w.Pods) < workers+1 {
		w.pass(now)
	}
	count := 0
	for i, pod := range w.Pods { // ten become ready each second
		w.makeReady(pod)
		now = planNow.Add(time.Hour + time.Duration(i)*100*time.Millisecond)
		if i%10 == 0 || i > workers-5 {
			count += w.writes(now)
		}
	}
	if most := workers/10/2 + 2; count > most {
		t.Errorf("%d status writes, want at most %d", count, most)
	}
	if got := fmt.Sprint(w.Cluster.Status.State, w.Cluster.Status.ReadyWorkerReplicas); got != fmt.Sprint("ready", workers) {
		t.Errorf("in the end the status says %s", got)
	}
}

func TestMergedChangesAreWrittenInTheEnd(t *testing.T) {
	w := ready(func(w *world) { w.Cluster.Spec.HeadGroupSpec.ServiceType = corev1.ServiceTypeNodePort })
	for _, object := range w.Owned {
		if service, ok := any(object).(*corev1.Service); ok && len(service.Spec.Ports) > 0 {
			service.Spec.Ports[0].NodePort = 30001
		}
	}
	plan := Plan(w.Snapshot, w.settings, planNow)
	if plan.Status != nil || plan.LookAgain <= 0 || plan.LookAgain > 3*time.Second {
		t.Fatalf("new endpoints just after a write: want to look again soon, got status %v and %s", plan.Status, plan.LookAgain)
	}
	w.pass(planNow.Add(plan.LookAgain))
	if len(w.Cluster.Status.Endpoints) == 0 {
		t.Error("the endpoints are never written")
	}
}
