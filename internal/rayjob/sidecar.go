package rayjob

import (
	"cmp"
	"errors"
	"fmt"
	"path"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/ray"
)

const (
	// admissionVolume shows the sidecar the annotation AnnotationSubmitTo of its Pod, as file admissionFile.
	admissionVolume = "heliostat-admission"
	admissionDir    = "/var/run/heliostat.io"
	admissionFile   = admissionDir + "/session"
	// anySession lets the sidecar submit to a Ray that does not tell its session.
	anySession = "any"
)

// addSidecar makes the head of a job's own cluster submit the job from within its Pod. The container is not started a second
// time, and submits nothing before the operator lets it in; see planner.letIn.
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
	submitter.VolumeMounts = append(submitter.VolumeMounts, corev1.VolumeMount{Name: admissionVolume, MountPath: admissionDir, ReadOnly: true})
	pod.Volumes = append(pod.Volumes, admission())
	pod.Containers = append(pod.Containers, submitter)
	pod.RestartPolicy = corev1.RestartPolicyNever
	if cluster.Annotations == nil {
		cluster.Annotations = map[string]string{}
	}
	cluster.Annotations[rayv1.AnnotationDisableProvisionedHeadRestart] = "true"
	return nil
}

// admission is the volume in which the kubelet shows the annotation by which the sidecar is let in.
func admission() corev1.Volume {
	field := corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: fmt.Sprintf("metadata.annotations['%s']", rayv1.AnnotationSubmitTo)}
	file := corev1.DownwardAPIVolumeFile{Path: path.Base(admissionFile), FieldRef: &field}
	return corev1.Volume{Name: admissionVolume, VolumeSource: corev1.VolumeSource{
		DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{file}, DefaultMode: ptr.To(corev1.DownwardAPIVolumeSourceDefaultMode)}}}
}

// letIn lets the sidecar of the head that is on record submit. It waits for the session to stand on its Pod, so a head that
// comes and goes before it was recorded has submitted nothing, and may be replaced.
func (p *planner) letIn() {
	head, session := p.s.Head, cmp.Or(p.st.Submission.SessionName, anySession)
	waits := p.sidecarStarted() && !p.submitterEnd().ended
	if !waits || head.UID != p.st.Submission.HeadPodUID || head.DeletionTimestamp != nil || head.Annotations[rayv1.AnnotationSubmitTo] == session {
		return
	}
	admitted := head.DeepCopy()
	metav1.SetMetaDataAnnotation(&admitted.ObjectMeta, rayv1.AnnotationSubmitTo, session)
	p.do(action.Update{Object: admitted, Base: head, Why: "the head that takes the job is on record",
		Failed: action.Warning("FailedToAdmitSubmitter", "Update", "cannot let container "+ray.SubmitterContainer+" of the head Pod submit")})
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
