package harness

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// FinishJob plays the Job controller: the Job becomes Complete or Failed now.
func (c Cluster) FinishJob(t testing.TB, job *batchv1.Job, condition batchv1.JobConditionType) {
	t.Helper()
	now := metav1.Now()
	is := func(kind batchv1.JobConditionType, reason, message string) {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue,
			Reason: reason, Message: message, LastProbeTime: now, LastTransitionTime: now})
	}
	job.Status.StartTime = &now
	switch condition {
	case batchv1.JobComplete:
		job.Status.Succeeded, job.Status.CompletionTime = 1, &now
		is(batchv1.JobSuccessCriteriaMet, batchv1.JobReasonCompletionsReached, "Reached expected number of succeeded pods")
		is(condition, batchv1.JobReasonCompletionsReached, "Reached expected number of succeeded pods")
	case batchv1.JobFailed:
		job.Status.Failed = 1
		is(batchv1.JobFailureTarget, batchv1.JobReasonBackoffLimitExceeded, "Job has reached the specified backoff limit")
		is(condition, batchv1.JobReasonBackoffLimitExceeded, "Job has reached the specified backoff limit")
	default:
		t.Fatalf("a Job does not end as %s", condition)
	}
	if err := c.Status().Update(t.Context(), job); err != nil {
		t.Fatalf("finish Job %s: %v", job.Name, err)
	}
}

// JobPod plays the Job controller: it makes a Pod of the Job's template.
func (c Cluster) JobPod(t testing.TB, job *batchv1.Job) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: job.Namespace, GenerateName: job.Name + "-", Labels: job.Spec.Template.Labels,
		Annotations:     job.Spec.Template.Annotations,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))},
	}, Spec: job.Spec.Template.Spec}
	if err := c.Create(t.Context(), pod); err != nil {
		t.Fatalf("create a Pod of Job %s: %v", job.Name, err)
	}
	return pod
}

// PodsOf returns the Pods that are controlled by the object, terminating ones included.
func (c Cluster) PodsOf(t testing.TB, owner client.Object) []corev1.Pod {
	t.Helper()
	var owned []corev1.Pod
	for _, pod := range c.Pods(t, owner.GetNamespace(), nil) {
		if metav1.IsControlledBy(&pod, owner) {
			owned = append(owned, pod)
		}
	}
	return owned
}
