package raycluster

import (
	"slices"
	"strings"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/harness"
)

func nameWithDot(e *env) {
	e.refusedOrSaid(e.raw(harness.NewCluster(e.ns, "demo.one")), "demo.one must consist of", invalidMetadata, "metadata.name")
}

func longJobName(e *env) {
	e.start()
	job := harness.NewJob(e.ns, rayv1.HTTPMode)
	job.Name = strings.Repeat("a", 49)
	job.Labels = map[string]string{"kueue.x-k8s.io/queue-name": "q"}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(job)
	e.Expect(err).ToNot(HaveOccurred())
	object := &unstructured.Unstructured{Object: content}
	object.SetAPIVersion("ray.io/v1")
	object.SetKind(rayv1.KindRayJob)
	e.refused(object.DeepCopy(), "49 characters")

	// As one that is older than the rule.
	object.SetAPIVersion("ray.io/v1alpha1")
	cluster := []string{"spec", "rayClusterSpec"}
	e.Expect(unstructured.SetNestedMap(object.Object, map[string]any{}, append(cluster, "headGroupSpec", "rayStartParams")...)).To(Succeed())
	unstructured.RemoveNestedField(object.Object, append(cluster, "workerGroupSpecs")...)
	delete(object.Object, "status")
	e.make(object)
	e.Eventually(func() string {
		e.Expect(e.read(job, job.Name)).To(Succeed())
		return string(job.Status.JobDeploymentStatus) + ": " + job.Status.Message
	}).Should(And(HavePrefix("ValidationFailed: "), ContainSubstring("metadata.name"), ContainSubstring("47")))
	e.rest()
	before := e.operator.Traffic.Writes()
	e.Consistently(e.operator.Traffic.Writes, "5s", "1s").Should(Equal(before))
}

// lagging is how far the operator's caches are behind.
const lagging = 400 * time.Millisecond

func scalesDownByOne(e *env) {
	e.start(harness.Transport(harness.DelayWatches(lagging)))
	cluster := e.ready(replicas(10), bounds(0, 10))
	made := e.operator.Traffic.Count("create", "pods")
	for want := int32(9); want >= 7; want-- {
		before := uids(e.workers())
		e.change(cluster, replicas(want))
		after := uids(e.haveWorkers(int(want)))
		e.Expect(before).To(ContainElements(after))
		// A request is counted when it is answered, which may be after the Pod is seen to be gone.
		deletes := func() int { return e.operator.Traffic.Count("delete", "pods") }
		e.Eventually(deletes).Should(Equal(10 - int(want)))
	}
	e.rest()
	e.Expect(e.aliveWorkers()).To(HaveLen(7))
	e.Expect(e.operator.Traffic.Count("create", "pods")).To(Equal(made))
}

func dropsTheMiddleGroup(e *env) {
	cluster := e.ready(otherGroup("b", 2), otherGroup("c", 1))
	kept := append(uids(e.workers("a")), uids(e.workers("c"))...)
	e.change(cluster, func(c *rayv1.RayCluster) { c.Spec.WorkerGroupSpecs = slices.Delete(c.Spec.WorkerGroupSpecs, 1, 2) })
	e.Eventually(func() []corev1.Pod { return e.workers("b") }).Should(BeEmpty())
	e.BecomesReady(e.t, cluster)
	e.change(cluster, func(c *rayv1.RayCluster) { slices.Reverse(c.Spec.WorkerGroupSpecs) })
	e.rest()
	e.Expect(uids(e.aliveWorkers())).To(ConsistOf(kept))
}

func evictedHead(e *env) {
	cluster := e.ready(func(c *rayv1.RayCluster) {
		c.Spec.HeadGroupSpec.Template.Spec.RestartPolicy = corev1.RestartPolicyAlways
	})
	head := e.head()
	e.SetPod(e.t, &head, harness.Ended(corev1.PodFailed, "Evicted"))
	e.Eventually(func() []string { return harness.Names(e.heads()) }).Should(And(HaveLen(1), Not(ContainElement(head.Name))))
	e.said(cluster, corev1.EventTypeNormal, "DeletedHeadPod")
	e.rest()
	e.Expect(e.heads()).To(HaveLen(1))
}

func headThatEndsAtOnce(e *env) {
	cluster := e.given(func(c *rayv1.RayCluster) {
		c.Spec.HeadGroupSpec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
		c.Spec.WorkerGroupSpecs = nil
	})
	e.head()
	seen := map[string]bool{}
	endAll := func() int {
		for _, head := range harness.Alive(e.heads()) {
			if !seen[head.Name] {
				seen[head.Name] = true
				e.SetPod(e.t, &head, harness.Exited("ray-head", "Error", 127))
			}
		}
		return len(seen)
	}
	e.Consistently(endAll, "18s", "200ms").Should(BeNumerically("<=", 3), "after 5 and 10 more seconds at the earliest")
	e.Eventually(endAll).Should(BeNumerically(">=", 2), "and it is replaced")
	e.Eventually(func() []string { return e.conditionMessages(cluster) }).Should(ContainElement(ContainSubstring("127")))
	e.Expect(cluster.Status.State).To(Equal(rayv1.ClusterStateNew))
}

func neverTwoHeads(e *env) {
	e.start(harness.Transport(harness.DelayWatches(lagging)))
	e.ready()
	for range 3 {
		lost := e.head()
		e.Kill(e.t, &lost)
		e.Consistently(func() int { return len(harness.Alive(e.heads())) }, "2s", "50ms").Should(BeNumerically("<=", 1))
		e.Expect(e.head().UID).ToNot(Equal(lost.UID))
	}
}

func countsHosts(e *env) {
	cluster := e.ready(replicas(3), hosts(2), func(c *rayv1.RayCluster) {
		harness.AskFor(&c.Spec.WorkerGroupSpecs[0].Template, map[corev1.ResourceName]string{
			corev1.ResourceCPU: "2", corev1.ResourceMemory: "3Gi", "nvidia.com/gpu": "1"})
	})
	e.rest()
	status := e.status(cluster)
	e.Expect([]int32{status.DesiredWorkerReplicas, status.ReadyWorkerReplicas}).To(Equal([]int32{6, 6}))
	e.desires(status.DesiredCPU, "12")
	e.desires(status.DesiredMemory, "18Gi")
	e.desires(status.DesiredGPU, "6")
}

func countsAllGPUs(e *env) {
	for i, gpu := range []corev1.ResourceName{"nvidia.com/mig-2g.20gb", "amd.com/gpu"} {
		cluster := e.given(replicas(3), named([]string{"one", "two"}[i]), func(c *rayv1.RayCluster) {
			c.Spec.WorkerGroupSpecs[0].Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{gpu: resource.MustParse("2")}
		})
		e.Eventually(func() string {
			amount := e.status(cluster).DesiredGPU
			return amount.String()
		}).Should(Equal("6"), string(gpu))
	}
}

func unschedulableHead(e *env) {
	cluster := e.given()
	head := e.head()
	const text = "0/3 nodes are available: 3 Insufficient cpu."
	e.SetPod(e.t, &head, harness.Unschedulable(text))
	e.Eventually(func() []string { return e.conditionMessages(cluster) }).Should(ContainElement(ContainSubstring(text)))
	e.Expect(e.have(cluster, conditionPodsHealthy, metav1.ConditionFalse, "")).To(ContainSubstring(text))
	e.rest()
	e.Expect(e.status(cluster).State).To(Equal(rayv1.ClusterStateNew))
}

func labelWithSpace(e *env) {
	cluster := e.given(func(c *rayv1.RayCluster) {
		c.Spec.WorkerGroupSpecs[0].Template.Labels = map[string]string{"team": "data science"}
	})
	e.Expect(e.said(cluster, corev1.EventTypeWarning, "FailedToCreateWorkerPod")).To(ContainSubstring("data science"))
	e.Expect(e.have(cluster, rayv1.ConditionReplicaFailure, metav1.ConditionTrue, "FailedCreateWorkerPod")).To(ContainSubstring("data science"))
	before := e.operator.Traffic.Writes()
	e.Consistently(func() int { return e.operator.Traffic.Writes() - before }, "10s", "1s").Should(BeNumerically("<=", 30))
	e.Expect(e.workers()).To(BeEmpty())
}

func everyContainerHasLimits(e *env) {
	hard := corev1.ResourceList{corev1.ResourceLimitsCPU: resource.MustParse("1000"), corev1.ResourceLimitsMemory: resource.MustParse("1000Gi")}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: e.ns, Name: "limits"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}
	e.make(quota)
	// There is no controller that would write this.
	quota.Status = corev1.ResourceQuotaStatus{Hard: hard, Used: corev1.ResourceList{
		corev1.ResourceLimitsCPU: resource.MustParse("0"), corev1.ResourceLimitsMemory: resource.MustParse("0")}}
	e.Expect(e.Status().Update(e.t.Context(), quota)).To(Succeed())

	e.ready(autoscaler, func(c *rayv1.RayCluster) {
		for _, template := range []*corev1.PodTemplateSpec{&c.Spec.HeadGroupSpec.Template, &c.Spec.WorkerGroupSpecs[0].Template} {
			harness.AskFor(template, map[corev1.ResourceName]string{corev1.ResourceCPU: "4", corev1.ResourceMemory: "8Gi", "nvidia.com/gpu": "1"})
		}
	})
	for _, pod := range e.pods() {
		for i, container := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
			e.Expect(container.Resources.Limits).To(And(HaveKey(corev1.ResourceCPU), HaveKey(corev1.ResourceMemory)), container.Name)
			if i > 0 {
				e.Expect(container.Resources.Limits).ToNot(HaveKey(corev1.ResourceName("nvidia.com/gpu")), container.Name)
			}
		}
	}
}

func clusterIPService() harness.Option {
	return harness.Env("ENABLE_RAY_HEAD_CLUSTER_IP_SERVICE", "true")
}

func otherDomain(e *env) {
	e.start(harness.Env("CLUSTER_DOMAIN", "corp.internal"))
	e.given()
	worker := e.haveWorkers(2)[0]
	found := false
	for _, container := range slices.Concat(worker.Spec.Containers, worker.Spec.InitContainers) {
		text := commandOf(container)
		for _, variable := range container.Env {
			text += " " + variable.Value
		}
		e.Expect(text).ToNot(ContainSubstring("cluster.local"), container.Name)
		found = found || strings.Contains(text, "demo-head-svc."+e.ns+".svc.corp.internal")
	}
	e.Expect(found).To(BeTrue(), "no address in the domain")
}

func waitHasMemory(e *env) {
	e.given(func(c *rayv1.RayCluster) {
		harness.AskFor(&c.Spec.WorkerGroupSpecs[0].Template, map[corev1.ResourceName]string{corev1.ResourceCPU: "4", corev1.ResourceMemory: "8Gi"})
	})
	for _, container := range e.haveWorkers(2)[0].Spec.InitContainers {
		limit := container.Resources.Limits.Memory()
		e.Expect(limit.Cmp(resource.MustParse("256Mi"))).To(Equal(1), "%s has %s, in which a slow image runs out of memory", container.Name, limit)
	}
}

func probesAreShort(e *env) {
	own := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}},
		TimeoutSeconds: 7, PeriodSeconds: 11, SuccessThreshold: 1, FailureThreshold: 3}
	e.given(func(c *rayv1.RayCluster) {
		c.Spec.WorkerGroupSpecs[0].Template.Spec.Containers[0].ReadinessProbe = own.DeepCopy()
	})
	head, worker := e.head().Spec.Containers[0], e.haveWorkers(2)[0].Spec.Containers[0]
	for _, probe := range []*corev1.Probe{head.LivenessProbe, head.ReadinessProbe, worker.LivenessProbe} {
		e.Expect(probe.Exec).To(BeNil(), "a command is run")
		e.Expect(probe.HTTPGet).ToNot(BeNil())
	}
	e.Expect(worker.ReadinessProbe).To(Equal(own))
}
