package gather

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/diagnose"
	"github.com/heliostat-io/heliostat/internal/ray"
)

// Bounds of the reading of logs. Each log is a request to a node, which may be gone; a hundred workers that fail alike say the same.
const (
	maxLogs          = 20
	maxLogsOfGroup   = 3
	logTime          = 5 * time.Second
	logTimeOfThemAll = 20 * time.Second
)

// logs reads the ends of the logs of containers in trouble: those of heads first, and of each group of Pods a few.
func (g *gatherer) logs(ctx context.Context) {
	if g.Tail == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, logTimeOfThemAll)
	defer cancel()
	g.snapshot.Logs = map[string]string{}
	tries, failures, first := 0, 0, ""
	triesOf := map[groupKey]int{}
	for _, pod := range headsFirst(g.snapshot.Pods) {
		wanted := g.speakers(pod)
		if len(wanted) == 0 || triesOf[groupOf(pod)] >= maxLogsOfGroup {
			continue
		}
		triesOf[groupOf(pod)]++
		for _, status := range wanted {
			if tries >= maxLogs || ctx.Err() != nil {
				break
			}
			tries++
			if err := g.log(ctx, pod, status); err != nil {
				failures++
				first = cmp.Or(first, fmt.Sprintf("container %s of Pod %s: %v", status.Name, pod.Name, err))
			}
		}
	}
	g.logGap(failures, first)
}

// logGap tells of all logs that could not be read in one sentence: they mostly fail for one reason.
func (g *gatherer) logGap(failures int, first string) {
	switch failures {
	case 0:
	case 1:
		g.snapshot.Gaps = append(g.snapshot.Gaps, diagnose.Gap{What: "1 log", Why: first})
	default:
		g.snapshot.Gaps = append(g.snapshot.Gaps, diagnose.Gap{What: fmt.Sprintf("%d logs", failures), Why: "the first is " + first})
	}
}

// groupKey is one group of Pods of one cluster. The Pods of submitters are a group, too.
type groupKey struct{ cluster, group string }

func groupOf(pod *corev1.Pod) groupKey {
	return groupKey{pod.Labels[rayv1.LabelCluster], pod.Labels[rayv1.LabelGroup]}
}

func headsFirst(pods []*corev1.Pod) []*corev1.Pod {
	later := func(pod *corev1.Pod) int {
		if pod.Labels[rayv1.LabelNodeType] == rayv1.NodeTypeHead {
			return 0
		}
		return 1
	}
	return slices.SortedStableFunc(slices.Values(pods), func(a, b *corev1.Pod) int { return cmp.Compare(later(a), later(b)) })
}

// speakers are the containers of a Pod whose logs may say something.
func (g *gatherer) speakers(pod *corev1.Pod) []corev1.ContainerStatus {
	all := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
	return slices.DeleteFunc(all, func(c corev1.ContainerStatus) bool {
		stuck := c.State.Running != nil && !c.Ready && g.snapshot.Now.Sub(c.State.Running.StartedAt.Time) > time.Minute
		// That the autoscaler says nothing at all is a finding, too.
		return !ended(c) && !again(c) && !stuck && c.Name != ray.AutoscalerContainer
	})
}

func ended(c corev1.ContainerStatus) bool {
	return c.State.Terminated != nil && c.State.Terminated.ExitCode != 0
}

func again(c corev1.ContainerStatus) bool { return c.RestartCount > 0 && !c.Ready }

// log reads the end of the log that tells why a container ended: that of the container before, where it was started again. Its
// kubelet throws that away when the next one has ended, and tells of the change only a moment later; that next log then says why.
func (g *gatherer) log(ctx context.Context, pod *corev1.Pod, c corev1.ContainerStatus) error {
	ctx, cancel := context.WithTimeout(ctx, logTime)
	defer cancel()
	before := again(c) && !ended(c)
	text, err := g.Tail(ctx, pod.Namespace, pod.Name, c.Name, before)
	if err == nil && before && strings.HasPrefix(text, kubeletHasNone) {
		text, err = g.Tail(ctx, pod.Namespace, pod.Name, c.Name, false)
	}
	if err != nil {
		return err
	}
	if strings.HasPrefix(text, kubeletHasNone) {
		return nil
	}
	g.snapshot.Logs[diagnose.LogKey(pod.Name, c.Name)] = text
	return nil
}

// kubeletHasNone is how a kubelet says, in place of a log, that the container is gone already.
const kubeletHasNone = "unable to retrieve container logs"
