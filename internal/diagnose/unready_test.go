package diagnose

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// testAll judges all findings of snapshots that differ from the healthy one, those about Pods included.
func testAll(t *testing.T, cases map[string]wholeCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := healthy()
			tc.given(s)
			found := Findings(s)
			if diff := cmp.Diff(tc.want, told(found)); diff != "" {
				t.Errorf("findings (-want +got):\n%s\n%+v", diff, found)
			}
			for _, f := range found {
				explains(t, f)
			}
		})
	}
}

func TestUnreadyNodes(t *testing.T) {
	unready := func(pod *corev1.Pod, since time.Duration) {
		pod.Status.Conditions[0].Status, pod.Status.Conditions[1].Status = corev1.ConditionFalse, corev1.ConditionFalse
		pod.Status.ContainerStatuses[0].Ready, pod.Status.ContainerStatuses[0].State = false, runningSince(since)
	}
	probe := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/bin/false"}}}}
	head := func(since time.Duration, own *corev1.Probe, told ...corev1.Event) func(*Snapshot) {
		return func(s *Snapshot) {
			unready(headOf(s), since)
			demo(s).Spec.HeadGroupSpec.Template.Spec.Containers[0].ReadinessProbe = own
			s.Events = told
		}
	}
	fails := event("Pod", "demo-head", "Unhealthy", "Readiness probe failed: ", time.Second)
	worker := func(then func(*Snapshot)) func(*Snapshot) {
		return func(s *Snapshot) {
			unready(workerOf(s), time.Hour)
			then(s)
		}
	}
	said := []string{"probe-failing Pod demo-head"}
	testAll(t, map[string]wholeCase{
		"a head that starts slowly":                          {head(4*time.Minute, nil, fails), nil},
		"a head that does not start":                         {head(6*time.Minute, nil, fails), said},
		"a head with a probe of the user's own":              {head(3*time.Minute, probe, fails), said},
		"a head with one that nobody has heard of":           {head(3*time.Minute, probe), nil},
		"a head with one that has just begun":                {head(time.Minute, probe, fails), nil},
		"a head of a RayService whose application is sick":   {func(s *Snapshot) { head(time.Hour, nil, fails)(s); sick(s) }, []string{"serve-app-unhealthy RayService chat"}},
		"a worker of a RayService that has no replica":       {worker(func(*Snapshot) {}), nil},
		"a worker of a RayService that does not serve":       {worker(sick), []string{"serve-app-unhealthy RayService chat", "probe-failing Pod demo-small-worker"}},
		"a worker of a RayService of which nothing is known": {worker(func(s *Snapshot) { workerOf(s).Labels[rayv1.LabelServe], s.Service = "true", nil }), nil},
		"a worker that serves nobody":                        {worker(func(s *Snapshot) { s.Service = nil }), []string{"probe-failing Pod demo-small-worker"}},
		"a container beside Ray": {func(s *Snapshot) {
			workerOf(s).Spec.Containers = append(workerOf(s).Spec.Containers, corev1.Container{Name: "beside"})
			workerOf(s).Status.ContainerStatuses = append(workerOf(s).Status.ContainerStatuses, corev1.ContainerStatus{Name: "beside", State: runningSince(3 * time.Minute)})
		}, []string{"probe-failing Pod demo-small-worker"}},
	})
}

func sick(s *Snapshot) {
	s.Service.Status.ActiveServiceStatus.ApplicationStatuses["default"] = rayv1.AppStatus{Status: rayv1.AppStatusDeployFailed}
}

// TestConsequences shows which findings about Pods are left out because the reason is told.
func TestConsequences(t *testing.T) {
	mount := func(secret string) func(*Snapshot) {
		return func(s *Snapshot) {
			worker := workerOf(s)
			worker.Status.Phase = corev1.PodPending
			worker.Status.ContainerStatuses[0] = corev1.ContainerStatus{Name: "ray-worker", State: waiting("CreateContainerConfigError", `secret "`+secret+`" not found`)}
			delete(s.Secrets, "creds")
		}
	}
	other := func(cluster string) func(*Snapshot) {
		return func(s *Snapshot) {
			waits(s)
			more := workerOf(s).DeepCopy()
			more.Name, more.Labels[rayv1.LabelCluster] = "another-worker", cluster
			s.Pods = append(s.Pods, more)
			if cluster == "demo" {
				return
			}
			second, head := demo(s).DeepCopy(), headOf(s).DeepCopy()
			second.Name, head.Name, head.Labels[rayv1.LabelCluster] = cluster, "second-head", cluster
			second.CreationTimestamp = ago(30 * time.Second)
			s.Clusters, s.Pods = append(s.Clusters, second), append(s.Pods, head)
			s.Policies[0].Spec.Ingress = nil
		}
	}
	testAll(t, map[string]wholeCase{
		"the Secret that is missing":       {mount("creds"), []string{"secret-missing Secret creds"}},
		"another Secret that is missing":   {mount("elsewhere"), []string{"secret-missing Pod demo-small-worker", "secret-missing Secret creds"}},
		"two workers of one cluster":       {other("demo"), []string{"worker-not-connected Pod another-worker"}},
		"a worker of a cluster of its own": {other("second"), []string{"policy-blocks-gcs NetworkPolicy demo-only", "init-waits Pod another-worker"}},
		"a head that is not ready, and waiters": {func(s *Snapshot) {
			waits(s)
			headOf(s).Status.Conditions[0].Status, headOf(s).Status.Conditions[1].Status = corev1.ConditionFalse, corev1.ConditionFalse
			headOf(s).Status.ContainerStatuses[0].Ready = false
		}, []string{"probe-failing Pod demo-head"}},
	})
}

func TestNames(t *testing.T) {
	for text, want := range map[string]bool{
		"RayCluster a": true, "RayCluster a.": true, "of RayCluster a: 3": true, "RayCluster a-b": false, "RayCluster a.b": false, "MyRayCluster ab, RayCluster a": true,
		"xRayCluster a": false, "": false,
	} {
		if got := names(text, "RayCluster a"); got != want {
			t.Errorf("%q: got %v", text, got)
		}
	}
}

func TestWordsDoNotTellTheTime(t *testing.T) {
	for line, want := range map[string]string{
		"[2026-11-30 12:00:00,123 E 17 17] gcs.cc:1: boom":      "gcs.cc:1: boom",
		"2026-11-30 12:00:00,123 INFO worker.py:1 -- boom":      "INFO worker.py:1 -- boom",
		"2026-11-30T12:00:00.123456789Z boom":                   "boom",
		"12:00:01 boom":                                         "boom",
		"E1130 12:00:00.123456 12 a.cc:1] boom":                 "a.cc:1] boom",
		"(raylet pid=12, ip=10.0.0.1) 2026-11-30 12:00:00 boom": "boom",
		"[17] boom":     "boom",
		"boom at 12:00": "boom at 12:00",
	} {
		if got := lastWords("first\n" + line + "\n\n"); got != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
}

// TestOnlyTheContainersOwnLogDecides has a Ray container that fails beside an autoscaler that speaks of something else.
func TestOnlyTheContainersOwnLogDecides(t *testing.T) {
	crash := func(log string, then func(*Snapshot)) func(*Snapshot) {
		return func(s *Snapshot) {
			headOf(s).Status.ContainerStatuses[0] = corev1.ContainerStatus{Name: "ray-head", RestartCount: 3, State: waiting("CrashLoopBackOff", ""),
				LastTerminationState: terminated(1, "Error", "")}
			s.Logs = map[string]string{LogKey("demo-head", "ray-head"): log, LogKey("demo-head", "autoscaler"): "Failed to connect to GCS"}
			then(s)
		}
	}
	redis := func(s *Snapshot) {
		demo(s).Spec.GcsFaultToleranceOptions = &rayv1.GcsFaultToleranceOptions{RedisAddress: "redis:6379"}
	}
	testAll(t, map[string]wholeCase{
		"the autoscaler's log":     {crash("boom", func(*Snapshot) {}), []string{"container-exits Pod demo-head"}},
		"its own log":              {crash("Failed to connect to GCS", func(*Snapshot) {}), []string{"gcs-unreachable Pod demo-head"}},
		"Redis, which is not used": {crash("redis_address is empty", func(*Snapshot) {}), []string{"container-exits Pod demo-head"}},
		"Redis, which is used":     {crash("redis: connection refused", redis), []string{"redis-trouble Pod demo-head"}},
		"a token that nobody asks for": {crash("bad authentication token of the model hub", func(s *Snapshot) {
			demo(s).Spec.AuthOptions, s.Ingresses = nil, nil
		}), []string{"container-exits Pod demo-head"}},
	})
}
