package rayjob

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/ray"
)

// addSidecar makes the head of a job's own cluster submit the job from within its Pod. Neither the container nor a head that
// was seen to have started is started a second time. A head that starts and goes unseen is made again, and submits again, to a
// Ray that knows nothing of the first time.
func addSidecar(cluster *rayv1.RayCluster, job *rayv1.RayJob, settings Settings) error {
	head := &cluster.Spec.HeadGroupSpec
	pod := &head.Template.Spec
	if len(pod.Containers) == 0 {
		return errors.New("spec.rayClusterSpec.headGroupSpec.template.spec.containers is empty; the submitter has the image of the first one")
	}
	port := dashboardPort(head)
	script, err := sidecarScript(job, port)
	if err != nil {
		return err
	}
	submitter := submitterContainer(pod.Containers[0].Image)
	// What the namespace demands of the head's containers it demands of this one as well.
	submitter.SecurityContext = pod.Containers[0].SecurityContext.DeepCopy()
	runScript(&submitter, script, settings)
	addSubmitterEnv(&submitter, job, fmt.Sprintf("127.0.0.1:%d", port))
	authenticate(&submitter, pod, cluster)
	pod.Containers = append(pod.Containers, submitter)
	pod.RestartPolicy = corev1.RestartPolicyNever
	if cluster.Annotations == nil {
		cluster.Annotations = map[string]string{}
	}
	cluster.Annotations[rayv1.AnnotationDisableProvisionedHeadRestart] = "true"
	return nil
}

// dashboardPort is where the dashboard listens within the head's Pod.
func dashboardPort(head *rayv1.HeadGroupSpec) int32 {
	for _, port := range head.Template.Spec.Containers[0].Ports {
		if port.Name == ray.PortNameDashboard {
			return port.ContainerPort
		}
	}
	return ray.DashboardPort(head.RayStartParams)
}
