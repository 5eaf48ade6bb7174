package sim

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type object = client.Object

// deed is something that a part of the world other than the operator can do now.
type deed struct {
	what string
	do   func()
}

// deeds returns what scheduler, kubelet, Job controller, garbage collector and Ray can do now, in a fixed order.
func (w *world) deeds() []deed {
	var deeds []deed
	for _, stored := range w.server.List("Pod") {
		if d := w.kubelet(stored.(*corev1.Pod)); d != nil {
			deeds = append(deeds, *d)
		}
	}
	for _, stored := range w.server.List("Job") {
		if d := w.submitter(stored.(*batchv1.Job)); d != nil {
			deeds = append(deeds, *d)
		}
	}
	for _, job := range w.rayJobs {
		if w.canProgress(job) {
			deeds = append(deeds, deed{"Ray works", func() { w.progress(job) }})
		}
	}
	if orphans := w.server.Orphans(); len(orphans) > 0 {
		deeds = append(deeds, deed{"garbage collection", func() {
			for _, orphan := range orphans {
				w.must(w.server.Remove("garbage collector", orphan, false))
			}
		}})
	}
	return deeds
}

// kubelet is what scheduler or kubelet do next with a Pod.
func (w *world) kubelet(pod *corev1.Pod) *deed {
	change := func(what string, change func(*corev1.Pod)) *deed {
		return &deed{what + " " + pod.Name, func() {
			w.must(w.server.Change("kubelet", pod, subresourceOf(what), func(o object) { change(o.(*corev1.Pod)) }))
		}}
	}
	switch {
	case pod.DeletionTimestamp != nil:
		return &deed{"kubelet has stopped " + pod.Name, func() { w.must(w.server.Remove("kubelet", pod, true)) }}
	case pod.Spec.NodeName == "":
		return change(bind, func(p *corev1.Pod) { p.Spec.NodeName = "node" })
	case pod.Status.Phase == corev1.PodPending && w.secretsThere(pod):
		return change("start", func(p *corev1.Pod) {
			w.ips++
			p.Status.Phase, p.Status.PodIP = corev1.PodRunning, fmt.Sprintf("10.0.%d.%d", w.ips/250, w.ips%250+1)
		})
	case pod.Status.Phase == corev1.PodRunning && len(pod.Status.Conditions) == 0:
		return change("ready", func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		})
	}
	return nil
}

// bind is the one change to a Pod that is not one of its status.
const bind = "bind"

func subresourceOf(what string) string {
	if what == bind {
		return ""
	}
	return "status"
}

// secretsThere tells whether the Secrets exist without which the kubelet does not start the containers of a Pod.
func (w *world) secretsThere(pod *corev1.Pod) bool {
	return !slices.ContainsFunc(pod.Spec.Containers[0].Env, func(env corev1.EnvVar) bool {
		return env.ValueFrom != nil && env.ValueFrom.SecretKeyRef != nil &&
			w.server.Get("Secret", types.NamespacedName{Namespace: pod.Namespace, Name: env.ValueFrom.SecretKeyRef.Name}) == nil
	})
}

// submitter is what the Pod of a submitter Job does next: it submits once, unless Ray knows the job, and ends with it.
func (w *world) submitter(job *batchv1.Job) *deed {
	if len(job.Status.Conditions) > 0 || job.DeletionTimestamp != nil {
		return nil
	}
	env := func(name string) string {
		for _, env := range job.Spec.Template.Spec.Containers[0].Env {
			if env.Name == name {
				return env.Value
			}
		}
		return ""
	}
	id := env("RAY_JOB_SUBMISSION_ID")
	head := w.headAt(env("RAY_DASHBOARD_ADDRESS"))
	if head == nil {
		return nil
	}
	known := w.jobOn(head, id)
	switch {
	case known == nil && w.submitted[id] == 0:
		return &deed{"submitter submits", func() { w.startJob(head, id) }}
	case known != nil && known.Status.Terminal():
		return &deed{"submitter ends", func() {
			w.must(w.server.Change("job controller", job, "status", func(o object) {
				o.(*batchv1.Job).Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue,
					LastTransitionTime: metav1.NewTime(w.now())}}
			}))
		}}
	}
	return nil
}
