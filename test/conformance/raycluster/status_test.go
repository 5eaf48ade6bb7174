package raycluster

import (
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/harness"
)

func statusCases() []Case {
	return []Case{
		{Row: 5, Kind: same, When: "all Pods are ready", Then: "state ready, Provisioned and HeadPodReady True", Run: readyIsTold},
		{Row: 6, Kind: same, When: "Pods are only pending", Then: "state empty, Provisioned False, not suspending and not suspended", Run: pendingIsTold},
		{Row: 7, Kind: same, Given: "a ready cluster", When: "its status is read", Then: "counts, head, its address and endpoints are there", Run: statusIsFull},
		{Row: 8, Kind: same, When: "one of two running workers is not ready", Then: "two available, one ready", Run: func(e *env) {
			cluster := e.given()
			harnessReady(e, e.head())
			workers := e.haveWorkers(2)
			e.SetPod(e.t, &workers[0], harness.Ready)
			e.SetPod(e.t, &workers[1], harness.Unready)
			e.Eventually(func() []int32 {
				s := e.status(cluster)
				return []int32{s.AvailableWorkerReplicas, s.ReadyWorkerReplicas}
			}).Should(Equal([]int32{2, 1}))
		}},
		{Row: 33, Kind: better, Weak: []string{"W43"}, Theirs: "state stays ready even without a Pod", Given: "a ready cluster", When: "all Pods fail", Then: "state is no longer ready, and condition Ready is False",
			How: "state is derived on every pass and withdrawn", Run: func(e *env) {
				cluster := e.ready()
				for _, pod := range e.pods() {
					e.SetPod(e.t, &pod, harness.Ended(corev1.PodFailed, "Evicted"))
				}
				e.Eventually(func() rayv1.ClusterState { return e.status(cluster).State }).Should(Equal(rayv1.ClusterStateNew))
				e.have(cluster, conditionReady, metav1.ConditionFalse, "")
			}},
		{Row: 34, Kind: same, When: "the head's image cannot be pulled", Then: "HeadPodReady False with the container's reason and name", Run: func(e *env) {
			cluster := e.given()
			head := e.head()
			e.SetPod(e.t, &head, harness.Waiting("ray-head", "ImagePullBackOff", "no such image"))
			e.Expect(e.have(cluster, rayv1.ConditionHeadPodReady, metav1.ConditionFalse, "ImagePullBackOff")).
				To(And(ContainSubstring("ray-head"), ContainSubstring("no such image")))
		}},
		{Row: 105, Kind: better, Weak: []string{"W46"}, Theirs: "neither is written as long as nothing else changes", Given: "a ready cluster", When: "the head asks for other resources", Then: "observedGeneration and desiredCPU follow",
			How: "each field of the status is written when it changed, also alone", Run: func(e *env) {
				cluster := e.ready()
				e.change(cluster, func(c *rayv1.RayCluster) {
					harness.AskFor(&c.Spec.HeadGroupSpec.Template, map[corev1.ResourceName]string{corev1.ResourceCPU: "3"})
				})
				// Each worker takes 200m for the container that waits for the GCS.
				e.desires(e.status(cluster).DesiredCPU, "3400m")
			}},
		{Row: 106, Kind: better, Weak: []string{"W47"}, Theirs: "counts seven workers", Given: "replicas 7 but maxReplicas 2, a CPU each", When: "the cluster is created", Then: "desiredCPU counts two workers",
			How: "resources are those of the Pods that are wanted after the bounds", Run: func(e *env) {
				cluster := e.ready(replicas(7), bounds(0, 2), func(c *rayv1.RayCluster) {
					harness.AskFor(&c.Spec.WorkerGroupSpecs[0].Template, map[corev1.ResourceName]string{corev1.ResourceCPU: "1"})
				})
				e.desires(e.status(cluster).DesiredCPU, "2")
			}},
		{Row: 127, Kind: same, Given: "a group with three GPUs a Pod", When: "the cluster is ready", Then: "desiredGPU is three for each replica", Run: func(e *env) {
			cluster := e.ready(func(c *rayv1.RayCluster) {
				c.Spec.WorkerGroupSpecs[0].Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("3")}
			})
			e.desires(e.status(cluster).DesiredGPU, "6")
		}},
		{Row: 128, Kind: same, Given: "an operator with metrics", When: "the cluster is ready", Then: "the three families about clusters are served", Run: metricsAreServed},
		{Row: 104, Kind: same, Given: "a ready cluster", When: "nothing changes", Then: "nothing is written", Run: func(e *env) {
			// The period after which everything is looked at again is one second here.
			e.start(harness.Env("RAYCLUSTER_DEFAULT_REQUEUE_SECONDS_ENV", "1"))
			cluster := e.ready()
			e.rest()
			before := e.operator.Traffic.Writes()
			e.Edit(e.t, cluster, annotated("touched", "yes"))
			e.Consistently(e.operator.Traffic.Writes, "8s", "1s").Should(Equal(before))
		}},
	}
}

// desires compares an amount in the status.
func (e *env) desires(amount resource.Quantity, want string) {
	e.t.Helper()
	e.Expect(amount.String()).To(Equal(want))
}

func harnessReady(e *env, pod corev1.Pod) { e.SetPod(e.t, &pod, harness.Ready) }

func readyIsTold(e *env) {
	cluster := e.ready()
	e.have(cluster, rayv1.ConditionRayClusterProvisioned, metav1.ConditionTrue, "AllPodRunningAndReadyFirstTime")
	e.have(cluster, rayv1.ConditionHeadPodReady, metav1.ConditionTrue, "HeadPodRunningAndReady")
	e.have(cluster, conditionReady, metav1.ConditionTrue, "")
	e.Expect(cluster.Status.StateTransitionTimes).To(HaveKey(rayv1.ClusterStateReady))
}

func pendingIsTold(e *env) {
	cluster := e.given()
	e.head()
	e.haveWorkers(2)
	e.have(cluster, rayv1.ConditionRayClusterProvisioned, metav1.ConditionFalse, "RayClusterPodsProvisioning")
	e.have(cluster, rayv1.ConditionRayClusterSuspending, metav1.ConditionFalse, "")
	e.have(cluster, rayv1.ConditionRayClusterSuspended, metav1.ConditionFalse, "")
	e.Expect(cluster.Status.State).To(Equal(rayv1.ClusterStateNew))
}

func statusIsFull(e *env) {
	cluster := e.ready()
	e.rest()
	head := e.head()
	status := e.status(cluster)
	e.Expect([]int32{status.DesiredWorkerReplicas, status.AvailableWorkerReplicas, status.ReadyWorkerReplicas, status.MinWorkerReplicas, status.MaxWorkerReplicas}).
		To(Equal([]int32{2, 2, 2, 0, 4}))
	e.Expect(status.Head).To(Equal(rayv1.HeadInfo{PodName: head.Name, PodIP: head.Status.PodIP, ServiceName: "demo-head-svc", ServiceIP: head.Status.PodIP}))
	e.Expect(status.Endpoints).To(Equal(map[string]string{"client": "10001", "dashboard": "8265", "gcs-server": "6379", "metrics": "8080", "serve": "8000"}))
}

func metricsAreServed(e *env) {
	e.start(harness.Args("--enable-metrics"))
	e.ready()
	e.Eventually(func() []string {
		families, err := e.operator.Metrics.Gather()
		e.Expect(err).ToNot(HaveOccurred())
		var names []string
		for _, family := range families {
			names = append(names, family.GetName())
		}
		return names
	}).Should(ContainElements("kuberay_cluster_provisioned_duration_seconds", "kuberay_cluster_info", "kuberay_cluster_condition_provisioned"))
}
