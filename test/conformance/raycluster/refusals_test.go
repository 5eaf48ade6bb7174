package raycluster

import (
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

func refusalCases() []Case {
	return []Case{
		{Row: 29, Kind: same, Given: "a quota without room", When: "the cluster is created", Then: "ReplicaFailure/FailedCreateHeadPod with the API server's words, and a Warning", Run: func(e *env) {
			e.LimitPods(e.t, e.ns, 0)
			cluster := e.given()
			e.Expect(e.have(cluster, rayv1.ConditionReplicaFailure, metav1.ConditionTrue, "FailedCreateHeadPod")).To(ContainSubstring("exceeded quota"))
			e.Expect(e.said(cluster, corev1.EventTypeWarning, "FailedToCreateHeadPod")).To(ContainSubstring("exceeded quota"))
		}},
		{Row: 30, Kind: same, Given: "workers that the API server refuses", When: "the limit is lifted", Then: "ReplicaFailure/FailedCreateWorkerPod until then, and the workers come", Run: func(e *env) {
			cluster := e.refusedWorkers()
			e.liftLimits()
			e.haveWorkers(2)
			e.have(cluster, rayv1.ConditionReplicaFailure, "", "")
		}},
		{Row: 31, Kind: better, Weak: []string{"W44"}, Theirs: "Provisioned turns True when the Pods that exist are ready", Given: "workers that the API server refuses", When: "the head is ready", Then: "Provisioned stays False",
			How: "the wanted number of Pods has to be ready, not just those that exist", Run: func(e *env) {
				cluster := e.refusedWorkers()
				harnessReady(e, e.head())
				e.have(cluster, rayv1.ConditionHeadPodReady, metav1.ConditionTrue, "")
				e.Expect(e.Condition(e.t, cluster, rayv1.ConditionRayClusterProvisioned).Status).To(Equal(metav1.ConditionFalse))
				e.Expect(e.Condition(e.t, cluster, conditionReady).Status).To(Equal(metav1.ConditionFalse))
				e.Expect(cluster.Status.State).To(Equal(rayv1.ClusterStateNew))
			}},
		{Row: 32, Kind: better, Weak: []string{"W31"}, Theirs: "a refused group stops all later ones", Given: "two groups, the first one refused", When: "the cluster is created", Then: "the second one has its workers",
			How: "groups do not wait for each other", Run: func(e *env) {
				e.LimitCPUs(e.t, e.ns)
				cluster := e.given(greedy, otherGroup("b", 2))
				e.haveWorkers(2, "b")
				e.have(cluster, rayv1.ConditionReplicaFailure, metav1.ConditionTrue, "FailedCreateWorkerPod")
				e.Expect(e.workers("a")).To(BeEmpty())
			}},
		{Row: 45, Kind: better, Weak: []string{"W30"}, Theirs: "the missing port keeps all Pods from being made", Given: "annotation enable-serve-service, a head without a port for Serve", When: "the cluster is created", Then: "Pods, no such Service, and an event that names the missing port",
			How: "Pods do not wait for other objects; condition Valid says what is missing", Run: func(e *env) {
				cluster := e.given(annotated(rayv1.AnnotationEnableServeService, "true"), headPort("gcs-server", 6379))
				e.head()
				e.haveWorkers(2)
				e.warned(cluster, `"serve"`)
				e.Expect(e.Condition(e.t, cluster, rayv1.ConditionValid).Message).To(ContainSubstring(`"serve"`))
				e.Expect(e.read(&corev1.Service{}, "demo-serve-svc")).ToNot(Succeed())
			}},
	}
}

// refusedWorkers is a cluster whose workers the API server refuses.
func (e *env) refusedWorkers() *rayv1.RayCluster {
	e.t.Helper()
	e.LimitCPUs(e.t, e.ns)
	cluster := e.given(greedy)
	e.Expect(e.have(cluster, rayv1.ConditionReplicaFailure, metav1.ConditionTrue, "FailedCreateWorkerPod")).
		To(ContainSubstring("maximum cpu usage per Container"))
	return cluster
}

func (e *env) liftLimits() {
	e.t.Helper()
	limits := &corev1.LimitRange{}
	e.Expect(e.read(limits, "cpus")).To(Succeed())
	e.Lift(e.t, limits)
}
