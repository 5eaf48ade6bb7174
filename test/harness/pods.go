package harness

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// hold is a finalizer that keeps a Pod terminating.
const hold = "test.heliostat.io/hold"

// HeadOf selects the head Pods of a RayCluster.
func HeadOf(cluster string) client.MatchingLabels {
	return client.MatchingLabels{rayv1.LabelCluster: cluster, rayv1.LabelNodeType: rayv1.NodeTypeHead}
}

// WorkersOf selects the worker Pods of a RayCluster.
func WorkersOf(cluster string) client.MatchingLabels {
	return client.MatchingLabels{rayv1.LabelCluster: cluster, rayv1.LabelNodeType: rayv1.NodeTypeWorker}
}

// Pods returns the Pods of the namespace that the selector takes, terminating ones included, the oldest first.
func (c Cluster) Pods(t testing.TB, namespace string, selector client.MatchingLabels) []corev1.Pod {
	t.Helper()
	pods := &corev1.PodList{}
	if err := c.List(t.Context(), pods, client.InNamespace(namespace), selector); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return pods.Items
}

// Alive leaves the terminating Pods out.
func Alive(pods []corev1.Pod) []corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })
}

// Names returns the names of the Pods.
func Names(pods []corev1.Pod) []string {
	names := make([]string, 0, len(pods))
	for _, pod := range pods {
		names = append(names, pod.Name)
	}
	return names
}

// Kubelet makes the new Pods of the namespace run and be ready. Those whose status a test has set are left alone.
func (c Cluster) Kubelet(t testing.TB, namespace string) {
	t.Helper()
	for _, pod := range c.Pods(t, namespace, nil) {
		if pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodPending && len(pod.Status.Conditions) == 0 {
			c.SetPod(t, &pod, Ready)
		}
	}
}

// SetPod changes the status of a Pod, as the kubelet would. A Pod that is gone meanwhile is left alone.
func (c Cluster) SetPod(t testing.TB, pod *corev1.Pod, change ...func(*corev1.Pod)) {
	t.Helper()
	base := pod.DeepCopy()
	for _, apply := range change {
		apply(pod)
	}
	if err := c.Status().Patch(t.Context(), pod, client.MergeFrom(base)); client.IgnoreNotFound(err) != nil {
		t.Errorf("set the status of Pod %s: %v", pod.Name, err)
	}
}

// Ready makes a Pod run and be ready, under an address of its own.
func Ready(pod *corev1.Pod) {
	hash := fnv.New32a()
	hash.Write([]byte(pod.UID))
	sum := hash.Sum32()
	ip := fmt.Sprintf("10.%d.%d.%d", sum>>16&0xff, sum>>8&0xff, sum&0xff)
	pod.Status.Phase, pod.Status.PodIP, pod.Status.PodIPs = corev1.PodRunning, ip, []corev1.PodIP{{IP: ip}}
	setCondition(pod, corev1.PodReady, corev1.ConditionTrue, "", "")
	pod.Status.ContainerStatuses = nil
	for _, container := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, Ready: true,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		})
	}
}

// Unready makes a Pod run and not be ready.
func Unready(pod *corev1.Pod) {
	Ready(pod)
	setCondition(pod, corev1.PodReady, corev1.ConditionFalse, rayv1.ReasonContainersNotReady, "containers with unready status")
}

// Ended gives a Pod a final phase, and a reason such as Evicted.
func Ended(phase corev1.PodPhase, reason string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Phase, pod.Status.Reason = phase, reason
		setCondition(pod, corev1.PodReady, corev1.ConditionFalse, "PodFailed", "")
	}
}

// Waiting makes a container wait with a reason such as ImagePullBackOff.
func Waiting(container, reason, message string) func(*corev1.Pod) {
	return containerIs(container, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}})
}

// Exited makes a container of a running Pod end with an exit code.
func Exited(container, reason string, code int32) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		Ready(pod)
		containerIs(container, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: reason, ExitCode: code}})(pod)
	}
}

// containerIs gives one container a state and makes the Pod unready.
func containerIs(container string, state corev1.ContainerState) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		i := slices.IndexFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Name == container })
		if i < 0 {
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: container})
			i = len(pod.Status.ContainerStatuses) - 1
		}
		pod.Status.ContainerStatuses[i].State, pod.Status.ContainerStatuses[i].Ready = state, false
		setCondition(pod, corev1.PodReady, corev1.ConditionFalse, rayv1.ReasonContainersNotReady,
			"containers with unready status: ["+container+"]")
	}
}

// Unschedulable keeps a Pod pending with the scheduler's text.
func Unschedulable(message string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		setCondition(pod, corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonUnschedulable, message)
	}
}

func setCondition(pod *corev1.Pod, kind corev1.PodConditionType, status corev1.ConditionStatus, reason, message string) {
	pod.Status.Conditions = slices.DeleteFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
		Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.Now(),
	})
}

// Kill deletes a Pod and has it gone at once, unless it is held.
func (c Cluster) Kill(t testing.TB, pod *corev1.Pod) {
	t.Helper()
	if err := c.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
}

// Hold keeps a Pod terminating once it is deleted, as a lost node does.
func (c Cluster) Hold(t testing.TB, pod *corev1.Pod) {
	t.Helper()
	c.setFinalizers(t, pod, []string{hold})
}

// Release lets a held Pod go.
func (c Cluster) Release(t testing.TB, pod *corev1.Pod) {
	t.Helper()
	c.setFinalizers(t, pod, nil)
}

func (c Cluster) setFinalizers(t testing.TB, pod *corev1.Pod, finalizers []string) {
	t.Helper()
	base := pod.DeepCopy()
	pod.Finalizers = finalizers
	if err := c.Patch(t.Context(), pod, client.MergeFrom(base)); client.IgnoreNotFound(err) != nil {
		t.Fatalf("set the finalizers of Pod %s: %v", pod.Name, err)
	}
}
