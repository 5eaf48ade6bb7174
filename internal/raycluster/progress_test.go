package raycluster

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
)

func (w *world) waits(slot, reason, message string) {
	w.pod(slot).Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "ray",
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}
}

func (w *world) unschedulable(slot string, since time.Duration) {
	w.pod(slot).Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
		Reason: "Unschedulable", Message: "0/3 nodes are available", LastTransitionTime: metav1.NewTime(planNow.Add(time.Minute - since))}}
}

func (w *world) stuck(slot string) {
	pod := w.pod(slot)
	pod.Finalizers, pod.DeletionTimestamp = []string{"example.com/hold"}, ptr.To(metav1.NewTime(planNow))
}

func TestProgressAndHealth(t *testing.T) {
	const (
		isReady    = "True/AllPodsReady False/AllPodsReady False/AllPodsReady"
		isStarting = "False/PodsNotReady True/PodsNotReady False/PodsNotReady"
	)
	starting := func() *world {
		w := demo()
		w.pass(planNow)
		return w
	}
	for name, tc := range map[string]struct {
		given *world
		when  func(*world)
		// progress are Ready, Reconciling and Stalled.
		progress string
		healthy  string
		// lines are what the message of PodsHealthy has to hold.
		lines []string
	}{
		"a cluster that was just made": {given: demo(), progress: isStarting, healthy: "True/NoTrouble"},
		"a cluster that starts":        {given: starting(), progress: isStarting, healthy: "True/NoTrouble"},
		"a cluster as wanted":          {given: ready(), progress: isReady, healthy: "True/NoTrouble"},
		"three replicas of two hosts, all ready (L12)": {
			given: ready(func(w *world) {
				group := &w.Cluster.Spec.WorkerGroupSpecs[0]
				group.Replicas, group.NumOfHosts = ptr.To[int32](3), 2
			}),
			progress: isReady, healthy: "True/NoTrouble",
		},
		"Pods that cannot be deleted": {
			given: ready(), when: func(w *world) {
				w.Holds = map[string]action.Hold{"": {Reason: "FailedToDeleteWorkerPod", Message: "denied", Until: planNow.Add(time.Hour)}}
			},
			progress: "False/PodsNotReady False/Stalled True/FailedToDeleteWorkerPod", healthy: "True/NoTrouble",
		},
		"a worker that is not ready any more": {
			given: ready(), when: func(w *world) { w.pod("a/0").Status.Conditions = nil },
			progress: isStarting, healthy: "True/NoTrouble",
		},
		"a worker too many in one group, a worker too few in another": {
			given: ready(func(w *world) {
				b := *w.Cluster.Spec.WorkerGroupSpecs[0].DeepCopy()
				b.GroupName = "b"
				w.Cluster.Spec.WorkerGroupSpecs = append(w.Cluster.Spec.WorkerGroupSpecs, b)
			}),
			when: func(w *world) {
				w.Cluster.Spec.WorkerGroupSpecs[0].Replicas, w.Cluster.Spec.WorkerGroupSpecs[1].Replicas = ptr.To[int32](1), ptr.To[int32](3)
			},
			progress: isStarting, healthy: "True/NoTrouble",
		},
		"an image that cannot be pulled, by two workers": {
			given: starting(), when: func(w *world) {
				w.waits("a/0", "ImagePullBackOff", "not found")
				w.waits("a/1", "ErrImagePull", "not found")
			},
			progress: "False/PodsNotReady False/Stalled True/ImagePullBackOff", healthy: "False/ImagePullBackOff",
			lines: []string{"group a: Pod demo-a-worker-", ": ImagePullBackOff: container ray: not found (and 1 more Pod)"},
		},
		"several groups in trouble: the worst is the reason, each has its line": {
			given: starting(), when: func(w *world) {
				w.waits("head", "CreateContainerConfigError", `secret "s" not found`)
				w.unschedulable("a/1", 0)
			},
			progress: "False/PodsNotReady False/Stalled True/CreateContainerConfigError", healthy: "False/CreateContainerConfigError",
			lines: []string{`container ray: secret "s" not found [finding secret-missing: `, "]\ngroup a: Pod ", ": Unschedulable: 0/3 nodes are available"},
		},
		"a Pod that may get a node": {
			given: starting(), when: func(w *world) { w.unschedulable("head", time.Minute) },
			progress: isStarting, healthy: "False/Unschedulable", lines: []string{"head: Pod demo-head-"},
		},
		"a Pod that gets no node": {
			given: starting(), when: func(w *world) { w.unschedulable("head", time.Hour) },
			progress: "False/PodsNotReady False/Stalled True/Unschedulable", healthy: "False/Unschedulable",
		},
		"a volume that is not mounted": {
			given: starting(), when: func(w *world) {
				w.pod("head").Spec.NodeName = "n1"
				w.MountFailures = map[types.UID]string{w.pod("head").UID: `secret "x" not found`}
			},
			progress: isStarting, healthy: "False/FailedMount", lines: []string{`: FailedMount: secret "x" not found`},
		},
		"workers that are refused": {
			given: starting(), when: func(w *world) {
				w.Holds = map[string]action.Hold{"a": {Reason: "FailedToCreateWorkerPod", Message: "exceeded quota: q", Until: planNow.Add(time.Hour)}}
			},
			progress: "False/PodsNotReady False/Stalled True/FailedCreateWorkerPod", healthy: "False/FailedCreateWorkerPod",
			lines: []string{"group a: FailedCreateWorkerPod: exceeded quota: q"},
		},
		"a quota that has no room for any Pod: the head comes first": {
			given: starting(), when: func(w *world) {
				w.Holds = map[string]action.Hold{
					"a":         {Reason: "FailedToCreateWorkerPod", Message: "exceeded quota: q", Until: planNow.Add(time.Hour)},
					"headgroup": {Reason: "FailedToCreateHeadPod", Message: "exceeded quota: q", Until: planNow.Add(time.Hour)},
				}
			},
			progress: "False/PodsNotReady False/Stalled True/FailedCreateHeadPod", healthy: "False/FailedCreateHeadPod",
			lines: []string{"head: FailedCreateHeadPod: exceeded quota: q [finding quota-exceeded: Run ", "RayCluster demo]\ngroup a: FailedCreateWorkerPod"},
		},
		"a head that is stuck terminating": {
			given: ready(), when: func(w *world) { w.stuck("head") },
			progress: "False/PodsNotReady False/Stalled True/StuckTerminating", healthy: "False/StuckTerminating",
		},
		"a worker that is stuck terminating is replaced": {
			given: ready(), when: func(w *world) { w.stuck("a/0") },
			progress: isStarting, healthy: "False/StuckTerminating",
		},
		"an evicted worker is replaced": {
			given: ready(), when: func(w *world) {
				w.pod("a/0").Status.Phase, w.pod("a/0").Status.Reason = corev1.PodFailed, "Evicted"
			},
			progress: isStarting, healthy: "False/Evicted",
		},
		"a foreign object in the place of one of ours": {
			given: starting(), when: func(w *world) {
				w.Holds = map[string]action.Hold{"Service/demo-head-svc": {Reason: "FailedToCreateService", Message: "taken", Collision: true, Until: planNow.Add(time.Hour)}}
			},
			progress: "False/PodsNotReady False/Stalled True/NameCollision", healthy: "True/NoTrouble",
		},
		"all Pods are ready, and another object is refused": {
			given: ready(), when: func(w *world) {
				w.Holds = map[string]action.Hold{"Service/demo-head-svc": {Reason: "FailedToUpdateService", Message: "no", Until: planNow.Add(time.Hour)}}
			},
			progress: "False/PodsNotReady False/Stalled True/FailedToUpdateService", healthy: "True/NoTrouble",
		},
		"a spec that makes no sense": {
			given: ready(), when: func(w *world) { w.Cluster.Spec.WorkerGroupSpecs[0].MinReplicas = ptr.To[int32](-1) },
			progress: "False/SpecInvalid False/Stalled True/SpecInvalid", healthy: "True/NoTrouble",
		},
		"on the way to suspended": {
			given: ready(), when: func(w *world) { w.Cluster.Spec.Suspend = ptr.To(true) },
			progress: "False/Suspending True/Suspending False/Suspending", healthy: "True/NoTrouble",
		},
		"a worker that does not let the cluster be suspended": {
			given: ready(), when: func(w *world) {
				w.Cluster.Spec.Suspend = ptr.To(true)
				w.stuck("a/0")
			},
			progress: "False/Suspending False/Stalled True/StuckTerminating", healthy: "False/StuckTerminating",
		},
		"suspended": {
			given: demo(func(w *world) { w.Cluster.Spec.Suspend = ptr.To(true) }),
			when:  func(w *world) { w.pass(planNow) },

			progress: "False/Suspended False/Suspended False/Suspended", healthy: "True/NoTrouble",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := tc.given
			if tc.when != nil {
				tc.when(w)
			}
			w.pass(planNow.Add(time.Minute))
			got := []string{strings.Join([]string{w.condition(rayv1.ConditionReady), w.condition(rayv1.ConditionReconciling),
				w.condition(rayv1.ConditionStalled)}, " "), w.condition(rayv1.ConditionPodsHealthy)}
			if diff := cmp.Diff([]string{tc.progress, tc.healthy}, got); diff != "" {
				t.Errorf("Ready, Reconciling, Stalled; PodsHealthy (-want +got):\n%s", diff)
			}
			for _, line := range tc.lines {
				if message := w.message(rayv1.ConditionPodsHealthy); !strings.Contains(message, line) {
					t.Errorf("the message %q does not hold %q", message, line)
				}
			}
			for _, c := range w.Cluster.Status.Conditions {
				if c.ObservedGeneration != w.Cluster.Generation || c.Reason == "" {
					t.Errorf("condition %+v speaks of no generation, or has no reason", c)
				}
			}
		})
	}
}

func TestWhatChangesWithTimeIsLookedAtAgain(t *testing.T) {
	w := ready()
	w.stuck("a/0")
	if plan := Plan(w.Snapshot, w.settings, planNow); plan.LookAgain == 0 || plan.LookAgain > 15*time.Second {
		t.Errorf("a Pod in its grace period may get stuck, and nothing would wake the plan: look again in %s", plan.LookAgain)
	}
}
