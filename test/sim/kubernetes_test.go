package sim

import (
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type object = client.Object

// gcPause is the time between two rounds of the garbage collector.
const gcPause = 2 * time.Second

// deed is something that a part of the world other than the operator can do now.
type deed struct {
	what string
	do   func()
}

// deeds returns what scheduler, kubelet, Job controller, garbage collector and Ray can do now, in a fixed order.
func (w *world) deeds() []deed {
	var deeds []deed
	add := func(d *deed) {
		if d != nil {
			deeds = append(deeds, *d)
		}
	}
	for _, stored := range w.server.List("Pod") {
		add(w.kubelet(stored.(*corev1.Pod)))
		add(w.submitter(stored.(*corev1.Pod)))
		add(w.cleaner(stored.(*corev1.Pod)))
	}
	for _, stored := range w.server.List("Job") {
		add(w.jobController(stored.(*batchv1.Job)))
	}
	for _, job := range w.rayJobs {
		if w.canProgress(job) {
			deeds = append(deeds, deed{"Ray works", func() { w.progress(job) }})
		}
	}
	if w.scenario.ofServices {
		for _, d := range append(w.serveDeeds(), w.endpointDeeds()...) {
			add(d)
		}
	}
	if orphans := w.server.Orphans(); len(orphans) > 0 && w.mono >= w.collected+gcPause {
		deeds = append(deeds, deed{"garbage collection", func() {
			w.collected = w.mono
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
	case pod.DeletionTimestamp != nil && len(pod.Finalizers) > 0:
		return nil
	case pod.DeletionTimestamp != nil && w.cutOff[pod.UID]:
		return nil
	case pod.DeletionTimestamp != nil:
		return &deed{"kubelet has stopped " + pod.Name, func() { w.must(w.server.Remove("kubelet", pod, true)) }}
	case pod.Spec.NodeName == "":
		return change(bind, func(p *corev1.Pod) { p.Spec.NodeName = "node" })
	case pod.Status.Phase == corev1.PodPending && w.secretsThere(pod):
		return change("start", func(p *corev1.Pod) {
			w.ips++
			w.writesToRedis(p)
			p.Status.Phase, p.Status.PodIP = corev1.PodRunning, fmt.Sprintf("10.0.%d.%d", w.ips/250, w.ips%250+1)
			for _, container := range p.Spec.Containers {
				p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: container.Name, State: running()})
			}
		})
	case serves(pod):
		return w.probed(pod)
	case pod.Status.Phase == corev1.PodRunning && rayContainer(pod).State.Running != nil && !rayContainer(pod).Ready && submitterIn(pod) != 0:
		return change("ready", func(p *corev1.Pod) {
			all := corev1.ConditionTrue
			for i := range p.Status.ContainerStatuses {
				status := &p.Status.ContainerStatuses[i]
				status.Ready = status.State.Running != nil
				if !status.Ready {
					all = corev1.ConditionFalse
				}
			}
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: all, LastTransitionTime: metav1.NewTime(w.now())}}
		})
	}
	return nil
}

// probed is what the kubelet does next with a Pod of a cluster for Serve: it starts Ray in it, and follows its probe.
func (w *world) probed(pod *corev1.Pod) *deed {
	container := rayContainer(pod)
	if pod.Status.Phase != corev1.PodRunning || container.State.Running == nil || answers(pod) && container.Ready == w.probe(pod) {
		return nil
	}
	return &deed{"the probe of " + pod.Name, func() {
		w.must(w.server.Change("kubelet", pod, "status", func(o object) {
			p := o.(*corev1.Pod)
			status := &p.Status.ContainerStatuses[0]
			status.Started, status.Ready = ptr.To(true), w.probe(p)
			all := corev1.ConditionFalse
			if status.Ready {
				all = corev1.ConditionTrue
			}
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: all, LastTransitionTime: metav1.NewTime(w.now())}}
		}))
	}}
}

func running() corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
}

// restart lets the container in which Ray runs start anew in a Pod that stays, or end for good where the Pod says so.
func (w *world) restart(pod *corev1.Pod) {
	w.must(w.server.Change("kubelet", pod, "status", func(o object) {
		p := o.(*corev1.Pod)
		status := &p.Status.ContainerStatuses[0]
		status.Ready, status.Started = false, nil
		if p.Spec.RestartPolicy == corev1.RestartPolicyNever {
			status.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137}}
		} else {
			status.RestartCount++
		}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady"}}
	}))
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
