package rayjob

import (
	"net/http"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/harness"
)

// collisionCases are about objects of others under names of ours.
func collisionCases() []Case {
	return []Case{
		{Row: 74, Kind: better, Weak: []string{"RJ-W8"}, Theirs: "the other one's Job is adopted; Failed 30 s later",
			Given: "a Job of the RayJob's name that another RayJob owns", When: "the RayJob starts", Then: "the Job is left alone; the job goes on when it is gone",
			How: "condition Stalled with the reason NameCollision, and an event", Run: func(e *env) {
				owner := e.foreignOwner()
				meetsForeignJob(e, func(j *batchv1.Job) {
					j.OwnerReferences = []metav1.OwnerReference{owner}
					j.Labels = map[string]string{rayv1.LabelCreatedBy: rayv1.CreatedByOperator}
				})
			}},
		{Row: 75, Kind: better, Weak: []string{"RJ-W8"}, Theirs: "tries to create the Job for ever",
			Given: "a Job of the RayJob's name without labels and owner", When: "the RayJob starts", Then: "the Job is left alone; a condition says so; no endless tries",
			How: "condition Stalled with the reason NameCollision, and an event", Run: func(e *env) { meetsForeignJob(e, func(*batchv1.Job) {}) }},
		{Row: 76, Kind: better, Weak: []string{"RJ-W8"}, Theirs: "the other one's Service is made to lead to the cluster",
			Given: "a Service of somebody else under the name of the job's head Service", When: "the job runs", Then: "the Service is left alone; an event; the job runs to its end",
			How: "ownership is checked", Run: foreignService},
	}
}

// meetsForeignJob has a Job stand where the submitter is to be, and then go.
func meetsForeignJob(e *env, edit func(*batchv1.Job)) {
	foreign := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: e.ns, Name: name}}
	foreign.Spec.Template = harness.PodTemplate("mine")
	foreign.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	edit(foreign)
	e.make(foreign)
	job := e.given()
	e.Expect(e.have(job, rayv1.ConditionStalled, metav1.ConditionTrue, rayv1.ReasonNameCollision)).To(ContainSubstring("Job"))
	e.said(job, corev1.EventTypeWarning, rayv1.ReasonNameCollision)
	ray := e.ray(job)
	e.asked(ray, 4)
	now := &batchv1.Job{}
	e.Expect(e.read(now, name)).To(Succeed())
	e.Expect([]any{now.UID, now.ResourceVersion}).To(Equal([]any{foreign.UID, foreign.ResourceVersion}))
	e.Expect(refusedCreates(e, "jobs")).To(BeNumerically("<=", 5))
	e.refresh(job)
	e.counts(job, 0, 0)

	e.Expect(e.Delete(e.t.Context(), foreign, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
	e.soon(func() any {
		err := e.read(now, name)
		return err == nil && metav1.IsControlledBy(now, job)
	}).Should(BeTrue(), "no submitter is made")
	e.runs(job)
	e.have(job, rayv1.ConditionStalled, metav1.ConditionFalse, "")
}

// refusedCreates counts the creates that the API server refused because the name was taken.
func refusedCreates(e *env, resource string) int {
	count := 0
	for _, request := range e.operator.Traffic.All() {
		if request.Verb == "create" && request.Resource == resource && request.Code == http.StatusConflict {
			count++
		}
	}
	return count
}

func foreignService(e *env) {
	foreign := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: e.ns, Name: name + "-head-svc"}, Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": "mine"}, Ports: []corev1.ServicePort{{Port: 80}}}}
	e.make(foreign)
	job := e.succeeded()
	e.warned(job, foreign.Name)
	now := &corev1.Service{}
	e.Expect(e.Get(e.t.Context(), types.NamespacedName{Namespace: e.ns, Name: foreign.Name}, now)).To(Succeed())
	e.Expect([]any{now.UID, now.ResourceVersion}).To(Equal([]any{foreign.UID, foreign.ResourceVersion}))
	e.counts(job, 1, 0)
}
