package rayjob

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
	"github.com/heliostat-io/heliostat/internal/raycluster"
)

const (
	// submitterContainer is the name that clients look for when they want the job's log.
	submitterContainer = "ray-job-submitter"
	// defaultSubmitterRetries is the Job's backoffLimit when spec.submitterConfig does not say otherwise.
	defaultSubmitterRetries = 2
)

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

func submitterTemplate(job *rayv1.RayJob, cluster *rayv1.RayCluster, settings Settings) (*corev1.PodTemplateSpec, error) {
	template := job.Spec.SubmitterPodTemplate.DeepCopy()
	if template == nil {
		if cluster == nil || len(cluster.Spec.HeadGroupSpec.Template.Spec.Containers) == 0 {
			return nil, errors.New("the submitter's image is that of the head, and the cluster has no head container")
		}
		template = defaultSubmitter(cluster.Spec.HeadGroupSpec.Template.Spec.Containers[0].Image)
	}
	if len(template.Spec.Containers) == 0 {
		return nil, errors.New("spec.submitterPodTemplate.spec.containers is empty; the first container submits the job")
	}
	template.Labels = submitterLabels(template.Labels, job)
	container := &template.Spec.Containers[0]
	if len(container.Command) == 0 {
		script, err := submitScript(job)
		if err != nil {
			return nil, err
		}
		container.Command = []string{"/bin/bash", "-ce", "--"}
		if settings.LoginShell {
			container.Command[1] = "-cel"
		}
		container.Args = []string{script}
	}
	container.Env = append(container.Env,
		corev1.EnvVar{Name: "PYTHONUNBUFFERED", Value: "1"},
		corev1.EnvVar{Name: "RAY_DASHBOARD_ADDRESS", Value: job.Status.DashboardURL},
		corev1.EnvVar{Name: "RAY_JOB_SUBMISSION_ID", Value: job.Status.JobId},
	)
	if cluster != nil {
		if auth := raycluster.AuthOf(cluster); auth.Token {
			auth.Set(container, nil)
			auth.AddVolume(&template.Spec)
		}
	}
	return template, nil
}

func defaultSubmitter(image string) *corev1.PodTemplateSpec {
	return &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{{
			Name:  submitterContainer,
			Image: image,
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"cpu": resource.MustParse("500m"), "memory": resource.MustParse("200Mi")},
				Limits:   corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")},
			},
		}},
	}}
}

// healthCheck succeeds when the dashboard says that it can reach the GCS.
const healthCheck = `python -c "import sys, urllib.request; ` +
	`sys.exit(b'success' not in urllib.request.urlopen('%s/api/gcs_healthz', timeout=10).read())"`

// submitScript waits for the dashboard, submits unless Ray has the job already, and follows the log.
func submitScript(job *rayv1.RayJob) (string, error) {
	address := "http://" + job.Status.DashboardURL
	id := job.Status.JobId
	flags, err := submitFlags(job)
	if err != nil {
		return "", err
	}
	words := []string{
		"until", fmt.Sprintf(healthCheck, address), ">/dev/null 2>&1", ";", "do",
		"echo", `"Waiting for the Ray dashboard at ` + address + ` ..."`, ";", "sleep 2", ";", "done", ";",
		"if ! ray job status --address", address, id, ">/dev/null 2>&1", ";", "then",
		"ray job submit --address", address, "--no-wait",
	}
	words = append(words, flags...)
	words = append(words, "--", strings.TrimSpace(job.Spec.Entrypoint), ";", "fi", ";",
		"ray job logs --address", address, "--follow", id)
	return strings.Join(words, " "), nil
}

func submitFlags(job *rayv1.RayJob) ([]string, error) {
	var flags []string
	spec := &job.Spec
	runtimeEnv, err := runtimeEnvOf(job)
	if err != nil {
		return nil, err
	}
	if len(runtimeEnv) > 0 {
		text, err := json.Marshal(runtimeEnv)
		if err != nil {
			return nil, fmt.Errorf("spec.runtimeEnvYAML cannot be written as JSON: %w", err)
		}
		flags = append(flags, "--runtime-env-json", doubleQuoted(string(text)))
	}
	if len(spec.Metadata) > 0 {
		text, err := json.Marshal(spec.Metadata)
		if err != nil {
			return nil, fmt.Errorf("spec.metadata cannot be written as JSON: %w", err)
		}
		flags = append(flags, "--metadata-json", doubleQuoted(string(text)))
	}
	flags = append(flags, "--submission-id", job.Status.JobId)
	if spec.EntrypointNumCpus > 0 {
		flags = append(flags, "--entrypoint-num-cpus", fmt.Sprintf("%f", spec.EntrypointNumCpus))
	}
	if spec.EntrypointNumGpus > 0 {
		flags = append(flags, "--entrypoint-num-gpus", fmt.Sprintf("%f", spec.EntrypointNumGpus))
	}
	if spec.EntrypointResources != "" {
		flags = append(flags, "--entrypoint-resources", doubleQuoted(spec.EntrypointResources))
	}
	return flags, nil
}

// doubleQuoted is one word for bash in which nothing is expanded.
func doubleQuoted(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`, "`", "\\`").Replace(text) + `"`
}

func runtimeEnvOf(job *rayv1.RayJob) (map[string]any, error) {
	if strings.TrimSpace(job.Spec.RuntimeEnvYAML) == "" {
		return nil, nil
	}
	var env map[string]any
	if err := yaml.Unmarshal([]byte(job.Spec.RuntimeEnvYAML), &env); err != nil {
		return nil, fmt.Errorf("spec.runtimeEnvYAML must be a YAML mapping: %w", err)
	}
	return env, nil
}

// submitRequest is the submission of HTTPMode.
func submitRequest(job *rayv1.RayJob) (dashboard.SubmitRequest, error) {
	request := dashboard.SubmitRequest{
		Entrypoint:   strings.TrimSpace(job.Spec.Entrypoint),
		SubmissionID: job.Status.JobId,
		Metadata:     job.Spec.Metadata,
	}
	var err error
	if request.RuntimeEnv, err = runtimeEnvOf(job); err != nil {
		return request, err
	}
	if job.Spec.EntrypointNumCpus > 0 {
		request.EntrypointNumCPUs = ptr.To(exact(job.Spec.EntrypointNumCpus))
	}
	if job.Spec.EntrypointNumGpus > 0 {
		request.EntrypointNumGPUs = ptr.To(exact(job.Spec.EntrypointNumGpus))
	}
	if job.Spec.EntrypointResources != "" {
		if err := json.Unmarshal([]byte(job.Spec.EntrypointResources), &request.EntrypointResources); err != nil {
			return request, fmt.Errorf("spec.entrypointResources must be a JSON object of names to numbers: %w", err)
		}
	}
	return request, nil
}

// exact keeps the decimal that the user wrote: 0.1 must not become 0.10000000149.
func exact(f float32) float64 {
	d, err := strconv.ParseFloat(strconv.FormatFloat(float64(f), 'g', -1, 32), 64)
	if err != nil {
		return float64(f)
	}
	return d
}

func refused(err error) bool { return errors.Is(err, dashboard.ErrRefused) }
