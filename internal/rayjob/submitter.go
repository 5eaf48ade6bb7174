package rayjob

import (
	"errors"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/ray"
	"github.com/heliostat-io/heliostat/internal/raycluster"
)

// defaultSubmitterRetries is the Job's backoffLimit when spec.submitterConfig does not say otherwise.
const defaultSubmitterRetries = 2

// submitterJob is the Kubernetes Job that submits to Ray and then prints the job's log.
func submitterJob(job *rayv1.RayJob, cluster *rayv1.RayCluster, settings Settings) (*batchv1.Job, error) {
	template, err := submitterTemplate(job, cluster, settings)
	if err != nil {
		return nil, err
	}
	retries := int32(defaultSubmitterRetries)
	if c := job.Spec.SubmitterConfig; c != nil && c.BackoffLimit != nil {
		retries = *c.BackoffLimit
	}
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       job.Namespace,
			Name:            job.Name,
			Labels:          submitterLabels(nil, job),
			OwnerReferences: []metav1.OwnerReference{ownerReference(job)},
		},
		Spec: batchv1.JobSpec{BackoffLimit: &retries, Template: *template},
	}, nil
}

func submitterLabels(labels map[string]string, job *rayv1.RayJob) map[string]string {
	labels = withOrigin(labels, job)
	labels[rayv1.LabelCreatedBy] = rayv1.CreatedByOperator
	return labels
}

// submitterTemplate is the Pod of the submitter: the user's own, or one with the image of the head. Its first container
// submits.
func submitterTemplate(job *rayv1.RayJob, cluster *rayv1.RayCluster, settings Settings) (*corev1.PodTemplateSpec, error) {
	template := job.Spec.SubmitterPodTemplate.DeepCopy()
	if template == nil {
		if cluster == nil || len(cluster.Spec.HeadGroupSpec.Template.Spec.Containers) == 0 {
			return nil, errors.New("the submitter's image is that of the head, and the cluster has no head container")
		}
		image := cluster.Spec.HeadGroupSpec.Template.Spec.Containers[0].Image
		template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{submitterContainer(image)}}}
	}
	if len(template.Spec.Containers) == 0 {
		return nil, errors.New("spec.submitterPodTemplate.spec.containers is empty; the first container submits the job")
	}
	if template.Spec.RestartPolicy == "" {
		// Pods default to Always, which a Job refuses.
		template.Spec.RestartPolicy = corev1.RestartPolicyNever
	}
	template.Labels = submitterLabels(template.Labels, job)
	template.Labels[rayv1.LabelNodeType] = rayv1.NodeTypeSubmitter
	container := &template.Spec.Containers[0]
	if len(container.Command) == 0 {
		script, err := submitScript(job)
		if err != nil {
			return nil, err
		}
		runScript(container, script, settings)
	}
	addSubmitterEnv(container, job, job.Status.DashboardURL)
	if cluster != nil {
		authenticate(container, &template.Spec, cluster)
	}
	return template, nil
}

// submitterContainer is the container that submits, yet without what it runs.
func submitterContainer(image string) corev1.Container {
	return corev1.Container{
		Name:  ray.SubmitterContainer,
		Image: image,
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("500m"), "memory": resource.MustParse("200Mi")},
			Limits:   corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")},
		},
	}
}

// addSubmitterEnv appends the variables by which a user's own command can find the dashboard and the job.
func addSubmitterEnv(container *corev1.Container, job *rayv1.RayJob, dashboard string) {
	container.Env = append(container.Env,
		corev1.EnvVar{Name: "PYTHONUNBUFFERED", Value: "1"},
		corev1.EnvVar{Name: "RAY_DASHBOARD_ADDRESS", Value: dashboard},
		corev1.EnvVar{Name: "RAY_JOB_SUBMISSION_ID", Value: job.Status.JobId},
	)
}

// authenticate gives a submitter the token that the cluster asks for, if it asks for one.
func authenticate(container *corev1.Container, pod *corev1.PodSpec, cluster *rayv1.RayCluster) {
	auth := raycluster.AuthOf(cluster)
	if !auth.Token {
		return
	}
	auth.Set(container, nil)
	auth.AddVolume(pod)
}
