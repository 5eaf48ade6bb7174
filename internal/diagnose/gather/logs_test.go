package gather

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// failing are Pods of a group whose containers have all failed.
func failing(nodeType, group string, count, containers int) []client.Object {
	var pods []client.Object
	for i := range count {
		pod := &corev1.Pod{ObjectMeta: controlled("RayCluster", fmt.Sprintf("%s-%02d", group, i), "uid-c")}
		pod.Labels = map[string]string{rayv1.LabelCluster: "c", rayv1.LabelNodeType: nodeType, rayv1.LabelGroup: group}
		for c := range containers {
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: fmt.Sprintf("c%d", c),
				State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}})
		}
		pods = append(pods, pod)
	}
	return pods
}

// TestFewLogsAreRead reads those of heads first and of each group a few, whatever comes of it.
func TestFewLogsAreRead(t *testing.T) {
	objects := append(failing(rayv1.NodeTypeWorker, "a", 9, 1), failing(rayv1.NodeTypeWorker, "b", 2, 1)...)
	objects = append(objects, failing(rayv1.NodeTypeHead, "z", 1, 2)...)
	from := source(t, nothing, append(objects, cluster())...)
	var asked []string
	from.Tail = func(ctx context.Context, _, pod, container string, _ bool) (string, error) {
		if end, bound := ctx.Deadline(); !bound || time.Until(end) > logTime {
			t.Errorf("%s may take until %v", pod, end)
		}
		asked = append(asked, pod+"/"+container)
		return "boom", nil
	}
	s := from.Of(t.Context(), cluster())
	want := []string{"z-00/c0", "z-00/c1", "a-00/c0", "a-01/c0", "a-02/c0", "b-00/c0", "b-01/c0"}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("asked for (-want +got): %s", diff)
	}
	if len(s.Logs) != len(want) || len(s.Gaps) > 0 {
		t.Errorf("logs %v, gaps %v", s.Logs, s.Gaps)
	}
}

func TestLogsThatCannotBeReadAreOneGap(t *testing.T) {
	from := source(t, nothing, append(failing(rayv1.NodeTypeHead, "z", 1, 30), cluster())...)
	tries := 0
	from.Tail = func(context.Context, string, string, string, bool) (string, error) {
		tries++
		return "", errors.New("the node is gone")
	}
	s := from.Of(t.Context(), cluster())
	if tries != maxLogs {
		t.Errorf("%d tries", tries)
	}
	if len(s.Gaps) != 1 || s.Gaps[0].What != "20 logs" || !strings.Contains(s.Gaps[0].Why, "container c0 of Pod z-00: the node is gone") {
		t.Errorf("gaps %v", s.Gaps)
	}
}

func TestLogsHaveAnEnd(t *testing.T) {
	from := source(t, nothing, append(failing(rayv1.NodeTypeHead, "z", 1, 30), cluster())...)
	ctx, cancel := context.WithCancel(t.Context())
	tries := 0
	from.Tail = func(ctx context.Context, _, _, _ string, _ bool) (string, error) {
		tries++
		cancel()
		return "", ctx.Err()
	}
	from.Of(ctx, cluster())
	if tries != 1 {
		t.Errorf("%d tries although the time is over", tries)
	}
}

// TestALogThatIsGoneMeanwhile: a container fails again between the reading of its status and that of its log.
func TestALogThatIsGoneMeanwhile(t *testing.T) {
	const gone = kubeletHasNone + " for containerd://1234"
	crashing := func(pod *corev1.Pod) {
		status := &pod.Status.ContainerStatuses[0]
		status.RestartCount, status.LastTerminationState = 3, status.State
		status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	}
	for name, tc := range map[string]struct {
		given func(*corev1.Pod)
		// before and now are the logs of the container before and of the present one.
		before, now string
		want        string
	}{
		"the log before is there":               {crashing, "boom", "", "boom"},
		"it is gone, and the next one is there": {crashing, gone, "boom", "boom"},
		"both are gone":                         {crashing, gone, gone, ""},
		"the only one is gone":                  {func(*corev1.Pod) {}, "not to be asked for", gone, ""},
	} {
		t.Run(name, func(t *testing.T) {
			pods := failing(rayv1.NodeTypeHead, "z", 1, 1)
			tc.given(pods[0].(*corev1.Pod))
			from := source(t, nothing, append(pods, cluster())...)
			from.Tail = func(_ context.Context, _, _, _ string, before bool) (string, error) {
				if before {
					return tc.before, nil
				}
				return tc.now, nil
			}
			s := from.Of(t.Context(), cluster())
			if got := s.Logs["z-00/c0"]; got != tc.want || len(s.Gaps) > 0 {
				t.Errorf("the log is %q, want %q; gaps %v", got, tc.want, s.Gaps)
			}
		})
	}
}
