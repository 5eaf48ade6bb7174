package diagnose

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var now = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

func waiting(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

func terminated(code int32, reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: message}}
}

func runningSince(d time.Duration) corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: ago(d)}}
}

func rayIs(states ...corev1.ContainerState) corev1.ContainerStatus {
	s := corev1.ContainerStatus{Name: "ray", Image: "img:1", State: states[0]}
	if len(states) > 1 {
		s.LastTerminationState = states[1]
	}
	return s
}

func inPhase(phase corev1.PodPhase, containers ...corev1.ContainerStatus) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Status.Phase, pod.Status.ContainerStatuses = phase, containers }
}

func with(kind corev1.PodConditionType, status corev1.ConditionStatus, reason, message string, since time.Duration) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: ago(since)})
	}
}

func TestPod(t *testing.T) {
	gone := func(since time.Duration, finalizers ...string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			end := ago(since)
			pod.DeletionTimestamp, pod.Finalizers = &end, finalizers
		}
	}
	restarted := func(s corev1.ContainerStatus, times int32) corev1.ContainerStatus {
		s.RestartCount = times
		return s
	}
	neverRestarted := func(pod *corev1.Pod) {
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
		pod.Spec.Containers = []corev1.Container{{Name: "ray"}, {Name: "autoscaler"}}
	}
	for name, tc := range map[string]struct {
		pod   []func(*corev1.Pod)
		mount string
		want  Finding
		again time.Duration
	}{
		"a young Pod is in no trouble":        {pod: []func(*corev1.Pod){inPhase(corev1.PodPending)}},
		"nor is one that is being set up":     {pod: []func(*corev1.Pod){inPhase(corev1.PodPending, rayIs(waiting("ContainerCreating", "")))}},
		"nor is one that runs":                {pod: []func(*corev1.Pod){inPhase(corev1.PodRunning, rayIs(runningSince(time.Minute)))}},
		"nor is one that starts, not ready":   {pod: []func(*corev1.Pod){inPhase(corev1.PodRunning, rayIs(runningSince(0))), with("Ready", "False", "ContainersNotReady", "", 0), with("ContainersReady", "False", "ContainersNotReady", "", 0)}},
		"nor is one that waits behind a gate": {pod: []func(*corev1.Pod){inPhase(corev1.PodPending), with("PodScheduled", "False", "SchedulingGated", "gated", 0)}},
		"nor is a worker that waits for the GCS": {pod: []func(*corev1.Pod){
			inPhase(corev1.PodPending, rayIs(waiting("PodInitializing", ""))),
			func(pod *corev1.Pod) {
				pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "wait-gcs-ready", State: runningSince(time.Hour)}}
			}}},
		"an init container that has done its work": {pod: []func(*corev1.Pod){
			inPhase(corev1.PodPending, rayIs(waiting("PodInitializing", ""))),
			func(pod *corev1.Pod) {
				pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "setup", State: terminated(0, "Completed", "")}}
			}}},
		"an image that is not there": {
			pod:  []func(*corev1.Pod){inPhase(corev1.PodPending, rayIs(waiting("ImagePullBackOff", "Back-off pulling image")))},
			want: Finding{Severity: Blocking, Reason: "ImagePullBackOff", Object: "Pod p", Message: "container ray: Back-off pulling image"},
		},
		"the same at the moment of a try": {
			pod:  []func(*corev1.Pod){inPhase(corev1.PodPending, rayIs(waiting("ErrImagePull", "not found:\n  img:1")))},
			want: Finding{Severity: Blocking, Reason: "ImagePullBackOff", Object: "Pod p", Message: "container ray: not found: img:1"},
		},
		"an image name that is none": {
			pod:  []func(*corev1.Pod){inPhase(corev1.PodPending, rayIs(waiting("InvalidImageName", "")))},
			want: Finding{Severity: Blocking, Reason: "InvalidImageName", Object: "Pod p", Message: `container ray: image "img:1"`},
		},
		"an image that must be there already": {
			pod:  []func(*corev1.Pod){inPhase(corev1.PodPending, rayIs(waiting("ErrImageNeverPull", "not present")))},
			want: Finding{Severity: Blocking, Reason: "ErrImageNeverPull", Object: "Pod p", Message: "container ray: not present"},
		},
		"a ConfigMap that is not there": {
			pod:  []func(*corev1.Pod){inPhase(corev1.PodPending, rayIs(waiting("CreateContainerConfigError", `configmap "x" not found`)))},
			want: Finding{Severity: Blocking, Reason: "CreateContainerConfigError", Object: "Pod p", Message: `container ray: configmap "x" not found`},
		},
		"an init container whose image is not there": {
			pod: []func(*corev1.Pod){inPhase(corev1.PodPending, rayIs(waiting("PodInitializing", ""))), func(pod *corev1.Pod) {
				pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "setup", State: waiting("ErrImagePull", "denied")}}
			}},
			want: Finding{Severity: Blocking, Reason: "ImagePullBackOff", Object: "Pod p", Message: "init container setup: denied"},
		},
		"an init container that fails": {
			pod: []func(*corev1.Pod){inPhase(corev1.PodPending, rayIs(waiting("PodInitializing", ""))), func(pod *corev1.Pod) {
				pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "setup", State: waiting("CrashLoopBackOff", "back-off 10s"),
					LastTerminationState: terminated(2, "Error", "no such file"), RestartCount: 1}}
			}},
			want: Finding{Severity: Blocking, Reason: "CrashLoopBackOff", Object: "Pod p", Message: "init container setup: exit code 2: no such file"},
		},
		"a crash loop, waiting": {
			pod:  []func(*corev1.Pod){inPhase(corev1.PodRunning, restarted(rayIs(waiting("CrashLoopBackOff", "back-off 40s"), terminated(1, "Error", "boom")), 3))},
			want: Finding{Severity: Blocking, Reason: "CrashLoopBackOff", Object: "Pod p", Message: "container ray: exit code 1: boom"},
		},
		"a crash loop, running for a moment": {
			pod:   []func(*corev1.Pod){inPhase(corev1.PodRunning, restarted(rayIs(runningSince(time.Second), terminated(1, "Error", "boom")), 3))},
			want:  Finding{Severity: Blocking, Reason: "CrashLoopBackOff", Object: "Pod p", Message: "container ray: exit code 1: boom"},
			again: 10*time.Minute - time.Second,
		},
		"a crash loop, just ended": {
			pod:  []func(*corev1.Pod){inPhase(corev1.PodRunning, restarted(rayIs(terminated(1, "Error", "boom")), 3))},
			want: Finding{Severity: Blocking, Reason: "CrashLoopBackOff", Object: "Pod p", Message: "container ray: exit code 1: boom"},
		},
		"a sidecar that nothing starts again": {
			pod: []func(*corev1.Pod){inPhase(corev1.PodRunning, rayIs(runningSince(time.Hour)), corev1.ContainerStatus{
				Name: "autoscaler", State: terminated(137, "OOMKilled", "")}), neverRestarted},
			want: Finding{Severity: Blocking, Reason: "OOMKilled", Object: "Pod p",
				Message: "container autoscaler: exit code 137; with restartPolicy Never nothing starts it again before the Pod is replaced"},
		},
		"a submitter beside Ray that has ended, as it is meant to": {
			pod: []func(*corev1.Pod){inPhase(corev1.PodRunning, rayIs(runningSince(time.Hour)), corev1.ContainerStatus{
				Name: "ray-job-submitter", State: terminated(1, "Error", "")}), neverRestarted},
		},
		"a submitter of its own that has ended": {
			pod: []func(*corev1.Pod){inPhase(corev1.PodRunning, corev1.ContainerStatus{
				Name: "ray-job-submitter", State: terminated(1, "Error", "boom")}), func(pod *corev1.Pod) {
				pod.Spec.Containers = []corev1.Container{{Name: "ray-job-submitter"}}
			}},
			want: Finding{Severity: Passing, Reason: "Error", Object: "Pod p", Message: "container ray-job-submitter: exit code 1: boom"},
		},
		"a Ray container that has ended: the Pod is replaced": {
			pod:  []func(*corev1.Pod){inPhase(corev1.PodRunning, rayIs(terminated(1, "Error", "boom"))), neverRestarted},
			want: Finding{Severity: Passing, Reason: "Error", Object: "Pod p", Message: "container ray: exit code 1: boom"},
		},
		"a container that restarted long ago": {
			pod: []func(*corev1.Pod){inPhase(corev1.PodRunning, restarted(rayIs(runningSince(time.Hour), terminated(1, "Error", "boom")), 3))},
		},
		"a container that restarted and is ready again": {
			pod: []func(*corev1.Pod){inPhase(corev1.PodRunning, func() corev1.ContainerStatus {
				s := rayIs(runningSince(time.Second), terminated(137, "OOMKilled", ""))
				s.Ready, s.RestartCount = true, 5
				return s
			}())},
		},
		"out of memory again and again": {
			pod:  []func(*corev1.Pod){inPhase(corev1.PodRunning, restarted(rayIs(waiting("CrashLoopBackOff", ""), terminated(137, "OOMKilled", "")), 2))},
			want: Finding{Severity: Blocking, Reason: "OOMKilled", Object: "Pod p", Message: "container ray: exit code 137"},
		},
		"out of memory for the first time": {
			pod:   []func(*corev1.Pod){inPhase(corev1.PodRunning, restarted(rayIs(runningSince(0), terminated(137, "OOMKilled", "")), 1))},
			want:  Finding{Severity: Passing, Reason: "OOMKilled", Object: "Pod p", Message: "container ray: exit code 137"},
			again: 10 * time.Minute,
		},
		"the first end of a container": {
			pod:  []func(*corev1.Pod){inPhase(corev1.PodRunning, rayIs(terminated(3, "Error", strings.Repeat("x", 400))))},
			want: Finding{Severity: Passing, Reason: "Error", Object: "Pod p", Message: "container ray: exit code 3: ..." + strings.Repeat("x", 300)},
		},
		"unschedulable": {
			pod:   []func(*corev1.Pod){inPhase(corev1.PodPending), with("PodScheduled", "False", "Unschedulable", "0/3 nodes are available", time.Minute)},
			want:  Finding{Severity: Passing, Reason: "Unschedulable", Object: "Pod p", Message: "0/3 nodes are available"},
			again: 4 * time.Minute,
		},
		"unschedulable for longer than a new node takes": {
			pod:  []func(*corev1.Pod){inPhase(corev1.PodPending), with("PodScheduled", "False", "Unschedulable", "0/3 nodes are available", time.Hour)},
			want: Finding{Severity: Blocking, Reason: "Unschedulable", Object: "Pod p", Message: "0/3 nodes are available"},
		},
		"a volume that is not mounted": {
			pod:   []func(*corev1.Pod){inPhase(corev1.PodPending, rayIs(waiting("ContainerCreating", "")))},
			mount: `MountVolume.SetUp failed for volume "data": secret "x" not found`,
			want:  Finding{Severity: Passing, Reason: "FailedMount", Object: "Pod p", Message: `MountVolume.SetUp failed for volume "data": secret "x" not found`},
		},
		"a volume that was not mounted at first": {
			pod:   []func(*corev1.Pod){inPhase(corev1.PodRunning, rayIs(runningSince(time.Minute)))},
			mount: "MountVolume.SetUp failed",
		},
		"an evicted Pod": {
			pod: []func(*corev1.Pod){inPhase(corev1.PodFailed, rayIs(terminated(137, "Error", ""))), func(pod *corev1.Pod) {
				pod.Status.Reason, pod.Status.Message = "Evicted", "The node was low on resource: memory."
			}},
			want: Finding{Severity: Passing, Reason: "Evicted", Object: "Pod p", Message: "The node was low on resource: memory."},
		},
		"a preempted Pod": {
			pod:  []func(*corev1.Pod){inPhase(corev1.PodFailed), with("DisruptionTarget", "True", "PreemptionByScheduler", "preempted", 0)},
			want: Finding{Severity: Passing, Reason: "PreemptionByScheduler", Object: "Pod p", Message: "preempted"},
		},
		"a Pod that failed with its container": {
			pod:  []func(*corev1.Pod){inPhase(corev1.PodFailed, rayIs(terminated(137, "OOMKilled", "")))},
			want: Finding{Severity: Passing, Reason: "OOMKilled", Object: "Pod p", Message: "container ray: exit code 137"},
		},
		"a Pod that ended well": {
			pod:  []func(*corev1.Pod){inPhase(corev1.PodSucceeded)},
			want: Finding{Severity: Passing, Reason: "Completed", Object: "Pod p", Message: "all its containers have ended with exit code 0"},
		},
		"a lost node": {
			pod:  []func(*corev1.Pod){inPhase(corev1.PodRunning, rayIs(runningSince(time.Hour))), with("Ready", "False", "", "", 0), with("ContainersReady", "True", "", "", time.Hour)},
			want: Finding{Severity: Passing, Reason: "NodeNotReady", Object: "Pod p", Message: "node n1 does not answer"},
		},
		"a lost node, in the words of older controllers": {
			pod:  []func(*corev1.Pod){inPhase(corev1.PodUnknown)},
			want: Finding{Severity: Passing, Reason: "NodeLost", Object: "Pod p", Message: "node n1 does not answer"},
		},
		"a Pod whose readiness gate is closed": {
			pod: []func(*corev1.Pod){inPhase(corev1.PodRunning, rayIs(runningSince(time.Hour))), with("Ready", "False", "ReadinessGatesNotReady", "", 0), with("ContainersReady", "True", "", "", 0),
				func(pod *corev1.Pod) { pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "x"}} }},
		},
		"a terminating Pod within its grace period, whatever else": {
			pod:   []func(*corev1.Pod){inPhase(corev1.PodRunning, rayIs(terminated(1, "Error", ""))), gone(-30 * time.Second)},
			again: 45 * time.Second,
		},
		"a Pod that a finalizer holds": {
			pod:  []func(*corev1.Pod){inPhase(corev1.PodRunning), gone(time.Minute, "example.com/hold")},
			want: Finding{Severity: Passing, Reason: ReasonStuckTerminating, Object: "Pod p", Message: "should have been gone at 2026-11-29T11:59:00Z; finalizers hold it: example.com/hold"},
		},
		"a Pod that its node does not end": {
			pod:  []func(*corev1.Pod){inPhase(corev1.PodRunning), gone(time.Minute)},
			want: Finding{Severity: Passing, Reason: ReasonStuckTerminating, Object: "Pod p", Message: "should have been gone at 2026-11-29T11:59:00Z; node n1 does not say that its containers have ended"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{NodeName: "n1"}}
			for _, change := range tc.pod {
				change(pod)
			}
			got, again := Pod(PodFacts{Pod: pod, MountFailure: tc.mount, Now: now})
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreUnexported(Finding{})); diff != "" {
				t.Errorf("finding (-want +got):\n%s", diff)
			}
			if again != tc.again {
				t.Errorf("look again in %s, want %s", again, tc.again)
			}
		})
	}
}

func TestTheWorstComesFirst(t *testing.T) {
	find := func(name string, changes ...func(*corev1.Pod)) Finding {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, change := range changes {
			change(pod)
		}
		f, _ := Pod(PodFacts{Pod: pod, Now: now})
		return f
	}
	findings := []Finding{
		find("failed", inPhase(corev1.PodFailed)),
		find("image-b", inPhase(corev1.PodPending, rayIs(waiting("ErrImagePull", "")))),
		find("unschedulable", inPhase(corev1.PodPending), with("PodScheduled", "False", "Unschedulable", "", 0)),
		find("image-a", inPhase(corev1.PodPending, rayIs(waiting("ImagePullBackOff", "")))),
		find("crash", inPhase(corev1.PodRunning, rayIs(waiting("CrashLoopBackOff", ""), terminated(1, "", "")))),
	}
	slices.SortFunc(findings, Compare)
	var got []string
	for _, f := range findings {
		got = append(got, f.Object)
	}
	want := []string{"Pod image-a", "Pod image-b", "Pod crash", "Pod unschedulable", "Pod failed"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}
