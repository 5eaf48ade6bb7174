package raycluster

import (
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/harness"
)

func countCases() []Case {
	return []Case{
		{Row: 9, Kind: same, Given: "replicas 5, maxReplicas 4", When: "the cluster is created", Then: "four workers, desired four", Run: func(e *env) {
			cluster := e.given(replicas(5))
			e.rest()
			e.haveWorkers(4)
			e.Expect(e.status(cluster).DesiredWorkerReplicas).To(Equal(int32(4)))
		}},
		{Row: 10, Kind: same, Given: "replicas 0, minReplicas 1", When: "the cluster is created", Then: "one worker", Run: func(e *env) {
			e.given(replicas(0), bounds(1, 4))
			e.rest()
			e.haveWorkers(1)
		}},
		{Row: 11, Kind: same, Given: "replicas not given, minReplicas 0", When: "the cluster is created", Then: "a head and no worker", Run: func(e *env) {
			e.given(func(c *rayv1.RayCluster) { c.Spec.WorkerGroupSpecs[0].Replicas = nil })
			e.head()
			e.rest()
			e.Expect(e.workers()).To(BeEmpty())
		}},
		{Row: 12, Kind: same, Given: "a ready cluster", When: "a worker is deleted and gone", Then: "a new one takes the free index", Run: func(e *env) {
			e.ready()
			e.operator.Stop() // so that it never sees the Pod terminate: until it is gone, its index is not free
			lost := e.workers()[0]
			e.Kill(e.t, &lost)
			e.start()
			e.isReplaced(lost)
			e.Expect(labelsOf(e.workers(), rayv1.LabelWorkerGroupReplicaIndex)).To(ConsistOf("0", "1"))
		}},
		{Row: 13, Kind: same, Given: "a ready cluster", When: "replicas goes from 2 to 3", Then: "one Pod more, with index 2", Run: func(e *env) {
			cluster := e.ready()
			before := uids(e.workers())
			e.change(cluster, replicas(3))
			workers := e.haveWorkers(3)
			e.Expect(uids(workers)).To(ContainElements(before))
			e.Expect(labelsOf(workers, rayv1.LabelWorkerGroupReplicaIndex)).To(ConsistOf("0", "1", "2"))
		}},
		{Row: 14, Kind: same, Given: "a ready cluster, its Pods held by a finalizer", When: "replicas goes from 2 to 1",
			Then: "one worker terminates, and no other Pod for as long as it takes", Run: func(e *env) {
				cluster := e.ready()
				e.holdAll(e.pods())
				e.change(cluster, replicas(1))
				e.Eventually(e.terminating).Should(HaveLen(1))
				e.rest()
				e.Expect(e.terminating()).To(And(HaveLen(1), HaveEach(HavePrefix("demo-a-worker-"))))
			}},
		{Row: 15, Kind: same, Given: "autoscaler on", When: "replicas goes from 2 to 1, no victim is named", Then: "no Pod is deleted", Run: func(e *env) {
			cluster := e.ready(autoscaler)
			e.change(cluster, replicas(1))
			e.rest()
			e.Expect(e.aliveWorkers()).To(HaveLen(2))
		}},
		{Row: 16, Kind: same, Given: "autoscaler on, operator with ENABLE_RANDOM_POD_DELETE", When: "replicas goes from 2 to 1", Then: "one worker is deleted", Run: func(e *env) {
			e.start(harness.Env("ENABLE_RANDOM_POD_DELETE", "true"))
			cluster := e.ready(autoscaler)
			e.change(cluster, replicas(1))
			e.haveWorkers(1)
		}},
		{Row: 17, Kind: same, Given: "autoscaler on", When: "replicas goes from 2 to 1 and a victim is named", Then: "the victim goes, the other stays, the spec is not written", Run: victimGoes},
		{Row: 18, Kind: same, When: "a victim is named that does not exist", Then: "no error, other work goes on", Run: func(e *env) {
			cluster := e.ready()
			e.change(cluster, func(c *rayv1.RayCluster) {
				replicas(3)(c)
				workersToDelete("demo-a-worker-gone0")(c)
			})
			e.haveWorkers(3)
			for _, event := range e.Events(e.t, cluster) {
				e.Expect(event.Type).To(Equal(corev1.EventTypeNormal), event.Note)
			}
		}},
		{Row: 19, Kind: better, Weak: []string{"W20"}, Theirs: "deletes any Pod of that name in the namespace", When: "a Pod of another cluster or of no cluster is named as a victim", Then: "it survives, and a Warning names it",
			How: "only Pods of this cluster and group are victims", Run: foreignVictimSurvives},
	}
}

func victimGoes(e *env) {
	cluster := e.ready(autoscaler)
	workers := e.workers()
	e.change(cluster, func(c *rayv1.RayCluster) {
		replicas(1)(c)
		workersToDelete(workers[0].Name)(c)
	})
	e.Eventually(func() []string { return harness.Names(e.workers()) }).Should(Equal([]string{workers[1].Name}))
	e.rest()
	e.Expect(harness.Names(e.workers())).To(Equal([]string{workers[1].Name}))
	e.Expect(e.read(cluster, name)).To(Succeed())
	e.Expect(cluster.Spec.WorkerGroupSpecs[0].ScaleStrategy.WorkersToDelete).To(Equal([]string{workers[0].Name}))
	for _, request := range e.operator.Traffic.All() {
		e.Expect(request.Resource == "rayclusters" && request.Verb != "get" && request.Verb != "list" && request.Verb != "watch").To(BeFalse(), "%+v", request)
	}
}

func foreignVictimSurvives(e *env) {
	plain := &corev1.Pod{Spec: harness.PodTemplate("plain").Spec}
	plain.Namespace, plain.Name = e.ns, "plain"
	e.make(plain)
	e.make(harness.NewCluster(e.ns, "other"))
	cluster := e.ready()
	var other corev1.Pod
	e.Eventually(func() []corev1.Pod { return e.Pods(e.t, e.ns, harness.WorkersOf("other")) }).Should(HaveLen(2))
	other = e.Pods(e.t, e.ns, harness.WorkersOf("other"))[0]
	e.change(cluster, workersToDelete(plain.Name, other.Name))
	e.rest()
	for _, pod := range []corev1.Pod{*plain, other} {
		now := &corev1.Pod{}
		e.Expect(e.read(now, pod.Name)).To(Succeed())
		e.Expect(now.DeletionTimestamp).To(BeNil())
	}
	e.Expect(e.aliveWorkers()).To(HaveLen(2))
	e.warned(cluster, other.Name)
}

func deletionCases() []Case {
	return []Case{
		{Row: 107, Kind: better, Weak: []string{"W11"}, Theirs: "may delete a further, healthy worker", Given: "a worker terminates after a scale-down, held by a finalizer", When: "the operator is restarted", Then: "no further worker is deleted",
			How: "counts come from the Pods themselves, not from memory", Run: func(e *env) {
				cluster := e.ready()
				e.holdAll(e.workers())
				e.change(cluster, replicas(1))
				e.Eventually(e.terminating).Should(HaveLen(1))
				e.operator.Stop()
				for _, pod := range e.aliveWorkers() {
					e.SetPod(e.t, &pod, harness.Unready) // so that it is worth less than the one that terminates
				}
				e.start()
				e.Edit(e.t, cluster, annotated("touched", "yes"))
				e.rest()
				e.Expect(e.terminating()).To(HaveLen(1))
				e.Expect(e.pods()).To(HaveLen(3))
			}},
		{Row: 108, Kind: better, Weak: []string{"W12"}, Theirs: "deletes a second, healthy worker", Given: "three workers, of which someone deletes one, held by a finalizer", When: "replicas goes from 3 to 2", Then: "no other worker is deleted",
			How: "a terminating Pod is neither capacity nor a victim", Run: func(e *env) {
				cluster := e.ready(replicas(3))
				lost := e.workers()[2]
				e.operator.Stop() // so that both changes are seen together
				e.Hold(e.t, &lost)
				e.Kill(e.t, &lost)
				for _, pod := range e.aliveWorkers() {
					e.SetPod(e.t, &pod, harness.Unready) // so that they are worth less than the one that terminates
				}
				e.Edit(e.t, cluster, replicas(2))
				e.start()
				e.rest()
				e.Expect(e.terminating()).To(Equal([]string{lost.Name}))
				e.Expect(e.aliveWorkers()).To(HaveLen(2))
			}},
		{Row: 109, Kind: better, Weak: []string{"W13"}, Theirs: "waits until the stuck Pod is gone", Given: "a worker is stuck terminating", When: "replicas goes from 2 to 5", Then: "new workers do not wait for it",
			How: "nothing waits for a terminating worker", Run: func(e *env) {
				cluster := e.ready(bounds(0, 5))
				stuck := e.workers()[0]
				e.Hold(e.t, &stuck)
				e.Kill(e.t, &stuck)
				e.change(cluster, replicas(5))
				e.haveWorkers(5)
				e.Expect(e.terminating()).To(Equal([]string{stuck.Name}))
			}},
		{Row: 110, Kind: better, Weak: []string{"W14"}, Theirs: "may wait for the next event, up to five minutes", When: "the head is deleted right after it was created", Then: "a new head within seconds",
			How: "no memory of a create stands in the way of the next one", Run: func(e *env) {
				e.given()
				first := e.head()
				e.Kill(e.t, &first)
				e.Eventually(func() []string { return harness.Names(e.heads()) }).Should(And(HaveLen(1), Not(ContainElement(first.Name))))
			}},
	}
}

func replacementCases() []Case {
	ended := func(phase corev1.PodPhase) func(*env) {
		return func(e *env) {
			cluster := e.ready(restartPolicy(corev1.RestartPolicyAlways))
			worker := e.workers()[0]
			e.SetPod(e.t, &worker, harness.Ended(phase, ""))
			e.isReplaced(worker)
			e.said(cluster, corev1.EventTypeNormal, "DeletedWorkerPod")
		}
	}
	return []Case{
		{Row: 20, Kind: same, Given: "restartPolicy Always", When: "a worker's phase is Failed", Then: "it is deleted and replaced", Run: ended(corev1.PodFailed)},
		{Row: 21, Kind: same, Given: "restartPolicy Always", When: "a worker's phase is Succeeded", Then: "it is deleted and replaced", Run: ended(corev1.PodSucceeded)},
		{Row: 22, Kind: same, Given: "restartPolicy Never", When: "the Ray container of a running worker has ended", Then: "it is deleted and replaced", Run: func(e *env) {
			e.ready(restartPolicy(corev1.RestartPolicyNever))
			worker := e.workers()[0]
			e.SetPod(e.t, &worker, harness.Exited("ray-worker", "Error", 1))
			e.isReplaced(worker)
		}},
		{Row: 23, Kind: same, Given: "restartPolicy Always", When: "the Ray container of a running worker has ended", Then: "it is left to the kubelet", Run: func(e *env) {
			e.ready(restartPolicy(corev1.RestartPolicyAlways))
			worker := e.workers()[0]
			e.SetPod(e.t, &worker, harness.Exited("ray-worker", "Error", 1))
			e.keeps(worker)
		}},
		{Row: 24, Kind: same, Given: "restartPolicy Never", When: "a sidecar of a running worker has ended", Then: "the worker stays", Run: func(e *env) {
			e.ready(restartPolicy(corev1.RestartPolicyNever), func(c *rayv1.RayCluster) {
				template := &c.Spec.WorkerGroupSpecs[0].Template
				template.Spec.Containers = append(template.Spec.Containers, corev1.Container{Name: "sidecar", Image: "img:1"})
			})
			worker := e.workers()[0]
			e.SetPod(e.t, &worker, harness.Exited("sidecar", "Completed", 0))
			e.keeps(worker)
		}},
		{Row: 25, Kind: same, When: "the head fails", Then: "it is deleted, HeadPodReady says HeadPodNotFound, and a head of another name follows", Run: failedHeadIsReplaced},
		{Row: 26, Kind: same, Given: "a ready cluster without fault tolerance", When: "the head is deleted", Then: "a new head; the workers are left to themselves", Run: func(e *env) {
			e.ready()
			head, workers := e.head(), uids(e.workers())
			e.Kill(e.t, &head)
			e.Eventually(func() []string { return harness.Names(e.heads()) }).Should(And(HaveLen(1), Not(ContainElement(head.Name))))
			e.rest()
			e.Expect(uids(e.aliveWorkers())).To(ConsistOf(workers))
		}},
		{Row: 27, Kind: same, Given: "annotation disable-provisioned-head-restart, provisioned", When: "the head is deleted", Then: "it stays away, the cluster remains", Run: func(e *env) {
			cluster := e.ready(annotated(rayv1.AnnotationDisableProvisionedHeadRestart, "true"))
			head := e.head()
			e.Kill(e.t, &head)
			e.rest()
			e.Expect(e.heads()).To(BeEmpty())
			e.Expect(e.read(cluster, name)).To(Succeed())
		}},
		{Row: 28, Kind: same, Given: "the same annotation, not provisioned yet", When: "the head is deleted", Then: "a new head", Run: func(e *env) {
			e.given(annotated(rayv1.AnnotationDisableProvisionedHeadRestart, "true"))
			head := e.head()
			e.Kill(e.t, &head)
			e.Eventually(func() []string { return harness.Names(e.heads()) }).Should(And(HaveLen(1), Not(ContainElement(head.Name))))
		}},
	}
}

// isReplaced waits until the Pod is gone and another one is there for it.
func (e *env) isReplaced(worker corev1.Pod) {
	e.t.Helper()
	e.Eventually(func() []string { return harness.Names(e.aliveWorkers()) }).Should(And(HaveLen(2), Not(ContainElement(worker.Name))))
}

func failedHeadIsReplaced(e *env) {
	cluster := e.ready()
	head := e.head()
	e.Hold(e.t, &head)
	e.SetPod(e.t, &head, harness.Ended(corev1.PodFailed, "Evicted"))
	e.Eventually(e.terminating).Should(Equal([]string{head.Name}))
	e.have(cluster, rayv1.ConditionHeadPodReady, "False", "HeadPodNotFound")
	e.rest()
	e.Expect(e.heads()).To(HaveLen(1), "no second head while the first one may still run")
	e.Release(e.t, ptr.To(e.heads()[0]))
	e.Eventually(func() []string { return harness.Names(e.heads()) }).Should(And(HaveLen(1), Not(ContainElement(head.Name))))
	e.said(cluster, corev1.EventTypeNormal, "DeletedHeadPod")
}
