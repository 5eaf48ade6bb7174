package rayservice

import (
	"strings"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
	"github.com/heliostat-io/heliostat/test/harness"
)

// named gives the RayService another name.
func named(name string) edit { return func(s *rayv1.RayService) { s.Name = name } }

// noWorkers leaves the cluster with its head alone.
func noWorkers(s *rayv1.RayService) { s.Spec.RayClusterConfig.WorkerGroupSpecs = nil }

// annotated sets an annotation of the RayService.
func annotated(key, value string) edit {
	return func(s *rayv1.RayService) { metav1.SetMetaDataAnnotation(&s.ObjectMeta, key, value) }
}

// strategy sets upgradeStrategy.type.
func strategy(kind rayv1.RayServiceUpgradeType) edit {
	return func(s *rayv1.RayService) { s.Spec.UpgradeStrategy = &rayv1.RayServiceUpgradeStrategy{Type: &kind} }
}

// deletionDelay sets rayClusterDeletionDelaySeconds.
func deletionDelay(seconds int32) edit {
	return func(s *rayv1.RayService) { s.Spec.RayClusterDeletionDelaySeconds = &seconds }
}

// image sets that of the head, so that another cluster is wanted.
func image(image string) edit {
	return func(s *rayv1.RayService) {
		s.Spec.RayClusterConfig.HeadGroupSpec.Template.Spec.Containers[0].Image = image
	}
}

// replicas sets those of the one deployment in the config of Serve.
func replicas(number string) edit {
	return func(s *rayv1.RayService) {
		s.Spec.ServeConfigV2 = strings.Replace(harness.SampleServeConfig, "num_replicas: 1", "num_replicas: "+number, 1)
	}
}

// group appends a worker group of one worker.
func group(name string) edit {
	return func(s *rayv1.RayService) {
		s.Spec.RayClusterConfig.WorkerGroupSpecs = append(s.Spec.RayClusterConfig.WorkerGroupSpecs, harness.WorkerGroup(name, 1))
	}
}

// autoscaled switches the autoscaler on.
func autoscaled(s *rayv1.RayService) { s.Spec.RayClusterConfig.EnableInTreeAutoscaling = ptr.To(true) }

// suspended sets or takes back the wish that the service be suspended.
func suspended(suspended bool) edit { return func(s *rayv1.RayService) { s.Spec.Suspend = suspended } }

// headPorts declares ports of the head, and the usual one of the dashboard.
func headPorts(ports ...corev1.ContainerPort) edit {
	return func(s *rayv1.RayService) {
		s.Spec.RayClusterConfig.HeadGroupSpec.Template.Spec.Containers[0].Ports =
			append([]corev1.ContainerPort{{Name: "dashboard", ContainerPort: 8265}, {Name: "gcs-server", ContainerPort: 6379}}, ports...)
	}
}

// staysDeploying keeps applications from running until they are told to.
func staysDeploying(ray *fakedashboard.Dashboard) {
	ray.SetDefaultServeScript(fakedashboard.ServeSteps("DEPLOYING")...)
}

// runs has the application of a cluster run, once Serve has it.
func (e *env) runs(cluster string) {
	e.t.Helper()
	ray := e.ray(cluster)
	e.soon(func() any { return ray.ServeApplications() }).Should(ContainElement("app"))
	ray.SetServeStep("app", fakedashboard.ServeStep{Status: "RUNNING"})
}

// upgrading makes a service that serves, and changes it so that another cluster is prepared, whose application does not
// run yet.
func (e *env) upgrading(edits ...edit) (service *rayv1.RayService, before, next *rayv1.RayCluster) {
	e.t.Helper()
	service = e.ready(edits...)
	before = e.active(service)
	next = e.upgrade(service, image("img:2"))
	return service, before, next
}

// upgrade changes a service that serves, and waits until another cluster is prepared. Its application will not run until
// told to.
func (e *env) upgrade(service *rayv1.RayService, edits ...edit) *rayv1.RayCluster {
	e.t.Helper()
	e.newRays(staysDeploying)
	e.changeSeen(service, edits...)
	return e.pending(service)
}

// allPods are those of a cluster that are not on their way out.
func (e *env) allPods(cluster string) []corev1.Pod {
	e.t.Helper()
	heads, workers := e.Pods(e.t, e.ns, harness.HeadOf(cluster)), e.Pods(e.t, e.ns, harness.WorkersOf(cluster))
	return harness.Alive(append(heads, workers...))
}

// loseEndpoints has all proxies of the active cluster fail, and waits until nothing takes requests any more.
func (e *env) loseEndpoints(service *rayv1.RayService) {
	e.t.Helper()
	for _, pod := range e.allPods(service.Status.ActiveServiceStatus.RayClusterName) {
		e.nodes.Proxy(&pod).SetHealthy(false)
	}
	e.have(service, "Ready", metav1.ConditionFalse, "ZeroServeEndpoints")
	e.Expect(service.Status.NumServeEndpoints).To(BeZero())
}
