package raycluster

import (
	"cmp"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// members are the Pods of one group, sorted by what they still count for.
type members struct {
	// live Pods are or may become capacity.
	live []*corev1.Pod
	// doomed Pods will never work again and are not being deleted yet.
	doomed []*corev1.Pod
	// terminating Pods are neither capacity nor victims, but still hold their slot.
	terminating []*corev1.Pod
}

// membersOf sorts the Pods of a group. The head's group name is "headgroup".
func membersOf(pods []*corev1.Pod, group string) members {
	var m members
	for _, pod := range pods {
		switch {
		case groupOf(pod) != group:
		case pod.DeletionTimestamp != nil:
			m.terminating = append(m.terminating, pod)
		case beyondRepair(pod):
			m.doomed = append(m.doomed, pod)
		default:
			m.live = append(m.live, pod)
		}
	}
	return m
}

func (m members) count() int { return len(m.live) + len(m.doomed) + len(m.terminating) }

// groupOf is the group that a Pod belongs to. A head belongs to the head's group whatever its group label says.
func groupOf(pod *corev1.Pod) string {
	if pod.Labels[rayv1.LabelNodeType] == rayv1.NodeTypeHead {
		return rayv1.HeadGroupName
	}
	return pod.Labels[rayv1.LabelGroup]
}

// ended tells whether the kubelet, or the collector of Pods whose node is gone, has said that all containers of a Pod have ended.
func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// beyondRepair tells whether the kubelet will never bring the Pod back to work: it has ended, or its Ray container
// has ended and the Pod's restart policy is Never.
func beyondRepair(pod *corev1.Pod) bool {
	switch pod.Status.Phase {
	case corev1.PodFailed, corev1.PodSucceeded:
		return true
	case corev1.PodRunning:
		return pod.Spec.RestartPolicy == corev1.RestartPolicyNever && rayContainerEnded(pod)
	default:
		return false
	}
}

func rayContainerEnded(pod *corev1.Pod) bool {
	status := rayStatus(pod)
	return status != nil && status.State.Terminated != nil
}

// byWorth orders Pods from the most to the least valuable: ready before running before scheduled before pending
// before ended, then the older, then the lower replica index, then the name, so that every planner picks the same victims.
func byWorth(a, b *corev1.Pod) int {
	if c := cmp.Compare(worth(b), worth(a)); c != 0 {
		return c
	}
	if c := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); c != 0 {
		return c
	}
	if c := cmp.Compare(indexOf(a, rayv1.LabelWorkerGroupReplicaIndex), indexOf(b, rayv1.LabelWorkerGroupReplicaIndex)); c != 0 {
		return c
	}
	return cmp.Compare(a.Name, b.Name)
}

func worth(pod *corev1.Pod) int {
	switch {
	case beyondRepair(pod):
		return -1
	case podReady(pod):
		return 3
	case pod.Status.Phase == corev1.PodRunning:
		return 2
	case pod.Spec.NodeName != "":
		return 1
	default:
		return 0
	}
}

// podReady tells whether the Pod runs and reports Ready.
func podReady(pod *corev1.Pod) bool {
	if pod.Status.Phase != corev1.PodRunning {
		return false
	}
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// indexOf reads a label that holds a number; it is -1 when the label is missing or no number.
func indexOf(pod *corev1.Pod, label string) int {
	index, err := strconv.Atoi(pod.Labels[label])
	if err != nil {
		return -1
	}
	return index
}

// incarnationOf is the incarnation number of a Pod, or 0 for one that was made by another operator.
func incarnationOf(pod *corev1.Pod) int64 {
	n, err := strconv.ParseInt(pod.Labels[rayv1.LabelIncarnation], 10, 64)
	if err != nil {
		return 0
	}
	return n
}
