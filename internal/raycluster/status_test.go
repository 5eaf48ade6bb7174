package raycluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
)

// condition is status and reason of a condition in the status that was written last.
func (w *world) condition(kind string) string {
	c := meta.FindStatusCondition(w.Cluster.Status.Conditions, kind)
	if c == nil {
		return "absent"
	}
	return string(c.Status) + "/" + c.Reason
}

func (w *world) message(kind string) string {
	if c := meta.FindStatusCondition(w.Cluster.Status.Conditions, kind); c != nil {
		return c.Message
	}
	return ""
}

func TestStatusTellsWhatIs(t *testing.T) {
	for name, tc := range map[string]struct {
		given      *world
		when       func(*world)
		wantState  rayv1.ClusterState
		wantReady  string
		wantProven string
		wantFailed string
	}{
		"pending Pods": {
			given: demo(), when: func(w *world) { w.pass(planNow) },
			wantReady: "False/Unknown", wantProven: "False/RayClusterPodsProvisioning", wantFailed: "absent",
		},
		"all ready": {
			given: ready(), wantState: rayv1.ClusterStateReady,
			wantReady: "True/HeadPodRunningAndReady", wantProven: "True/AllPodRunningAndReadyFirstTime", wantFailed: "absent",
		},
		"a worker fell: ready is withdrawn, provisioned stays": {
			given: ready(), when: func(w *world) { w.pod("a/1").Status.Conditions = nil },
			wantReady: "True/HeadPodRunningAndReady", wantProven: "True/AllPodRunningAndReadyFirstTime", wantFailed: "absent",
		},
		"the head alone is not the cluster": {
			given: demo(), when: func(w *world) {
				w.Holds = map[string]action.Hold{"a": {Reason: "FailedToCreateWorkerPod", Message: "exceeded quota: q", Until: planNow.Add(time.Minute)}}
				w.pass(planNow)
				w.makeReady(w.pod("head"))
			},
			wantReady: "True/HeadPodRunningAndReady", wantProven: "False/RayClusterPodsProvisioning", wantFailed: "True/FailedCreateWorkerPod",
		},
		"the head's image cannot be pulled": {
			given: demo(), when: func(w *world) {
				w.pass(planNow)
				w.pod("head").Status = corev1.PodStatus{Phase: corev1.PodPending,
					Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady", Message: "containers with unready status"}},
					ContainerStatuses: []corev1.ContainerStatus{{Name: "ray-head", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "not found"}}}}}
			},
			wantReady: "False/ImagePullBackOff", wantProven: "False/RayClusterPodsProvisioning", wantFailed: "absent",
		},
		"suspended": {
			given: ready(), when: func(w *world) {
				w.Cluster.Spec.Suspend = ptr.To(true)
				w.pass(planNow)
				w.gone()
			},
			wantState: rayv1.ClusterStateSuspended,
			wantReady: "False/HeadPodNotFound", wantProven: "False/RayClusterPodsProvisioning", wantFailed: "absent",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := tc.given
			if tc.when != nil {
				tc.when(w)
			}
			w.pass(planNow.Add(time.Minute))
			got := []string{string(w.Cluster.Status.State), w.condition(rayv1.ConditionHeadPodReady),
				w.condition(rayv1.ConditionRayClusterProvisioned), w.condition(rayv1.ConditionReplicaFailure)}
			want := []string{string(tc.wantState), tc.wantReady, tc.wantProven, tc.wantFailed}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("state, HeadPodReady, Provisioned, ReplicaFailure (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSuspendTakenBackMidwayLeadsBackByItself(t *testing.T) {
	w := ready()
	w.Cluster.Spec.Suspend = ptr.To(true)
	w.pass(planNow)
	w.Cluster.Spec.Suspend = ptr.To(false)
	w.gone()
	for step := range 3 { // only what the plan itself asks for: no event comes any more
		plan := Plan(w.Snapshot, w.settings, planNow.Add(time.Minute))
		if did := w.pass(planNow.Add(time.Minute)); slices.Contains(did, "create head") {
			return
		}
		if plan.LookAgain == 0 {
			t.Fatalf("step %d waits for an event that never comes: %+v", step, w.Cluster.Status.Conditions)
		}
	}
	t.Error("the cluster did not come back")
}

func TestAnEditThatMakesTheSpecInvalidIsSaid(t *testing.T) {
	w := ready()
	w.Cluster.Spec.WorkerGroupSpecs[0].MinReplicas = ptr.To[int32](-1)
	plan := Plan(w.Snapshot, w.settings, planNow)
	if len(plan.Events) != 1 || plan.Events[0].Reason != "InvalidRayClusterSpec" {
		t.Errorf("a running cluster was edited into nonsense: want one event, got %+v", plan.Events)
	}
}

func TestInvalidSpecIsSaidOnce(t *testing.T) {
	w := demo(func(w *world) { w.Cluster.Spec.WorkerGroupSpecs[0].MinReplicas = ptr.To[int32](-1) })
	first := Plan(w.Snapshot, w.settings, planNow)
	if len(first.Events) != 1 || first.Events[0].Reason != "InvalidRayClusterSpec" || !strings.Contains(first.Events[0].Note, "minReplicas") {
		t.Errorf("want one event that names the field, got %+v", first.Events)
	}
	w.Cluster = first.Status.Object.(*rayv1.RayCluster)
	second := Plan(w.Snapshot, w.settings, planNow.Add(time.Minute))
	if second.Status != nil || len(second.Events) > 0 || len(second.Actions) > 0 || second.LookAgain != 0 {
		t.Errorf("nothing changed, so nothing is to be done or said: %+v", second)
	}
}

func TestAnInvalidEditSaysWhatBecomesOfTheCluster(t *testing.T) {
	w := ready()
	w.LastValid = w.Cluster.Spec.DeepCopy()
	w.Cluster.Spec.WorkerGroupSpecs[0].MinReplicas = ptr.To[int32](-1)
	w.pass(planNow.Add(time.Minute))
	if message := w.message(rayv1.ConditionValid); !strings.Contains(message, "minReplicas") || !strings.Contains(message, "kept as the last valid spec asked") {
		t.Errorf("message is %q", message)
	}
	if w.Cluster.Status.State != rayv1.ClusterStateReady || w.Cluster.Status.DesiredWorkerReplicas != 2 {
		t.Errorf("the cluster works on as before: state %q, %d wanted workers", w.Cluster.Status.State, w.Cluster.Status.DesiredWorkerReplicas)
	}
}

func TestEndpointsGoWithTheirService(t *testing.T) {
	w := ready()
	w.service("demo-head-svc").Spec.Ports[0].TargetPort = intstr.FromInt32(6379)
	w.pass(planNow.Add(time.Minute))
	if len(w.Cluster.Status.Endpoints) == 0 {
		t.Fatal("no endpoints")
	}
	w.Owned, w.Named = nil, map[string]client.Object{}
	w.pass(planNow.Add(2 * time.Minute))
	if got := w.Cluster.Status.Endpoints; len(got) > 0 {
		t.Errorf("no Service, but endpoints %v", got)
	}
}
