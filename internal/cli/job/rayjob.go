package job

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
	"github.com/heliostat-io/heliostat/internal/ray"
)

// workerGroup is the name of the only group of a cluster that flags describe.
const workerGroup = "default-group"

// resourceGPU is what containers ask for to have a GPU.
const resourceGPU = "nvidia.com/gpu"

// rayJob returns the RayJob to create: the one in the file, or the one that the flags describe.
func rayJob(env *kube.Env, f *flags) (*rayv1.RayJob, error) {
	namespace, err := env.Namespace()
	if err != nil {
		return nil, err
	}
	if f.filename == "" {
		return fromFlags(f, namespace)
	}
	job, err := fromFile(f.filename)
	if err != nil {
		return nil, err
	}
	if f.name != "" {
		job.Name, job.GenerateName = f.name, ""
	}
	if job.Name == "" && job.GenerateName == "" {
		return nil, fmt.Errorf("the RayJob in %s has no name: give it one with --name", f.filename)
	}
	switch asked := ptr.Deref(env.Flags.Namespace, ""); {
	case job.Namespace == "":
		job.Namespace = namespace
	case asked != "" && asked != job.Namespace:
		return nil, fmt.Errorf("the RayJob in %s is for the namespace %q, but --namespace is %q", f.filename, job.Namespace, asked)
	}
	return job, nil
}

// fromFile reads the only RayJob of a file and checks that it waits for a job from outside.
func fromFile(path string) (*rayv1.RayJob, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the RayJob: %w", err)
	}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	var job *rayv1.RayJob
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read the RayJob in %s: %w", path, err)
		}
		if len(bytes.TrimSpace(document)) == 0 {
			continue
		}
		if job != nil {
			return nil, fmt.Errorf("%s holds more than one object: it must hold one RayJob", path)
		}
		job = &rayv1.RayJob{}
		if err := yaml.UnmarshalStrict(document, job); err != nil {
			return nil, fmt.Errorf("read the RayJob in %s: %w", path, err)
		}
	}
	switch {
	case job == nil:
		return nil, fmt.Errorf("%s is empty: it must hold a RayJob", path)
	case job.Kind != string(kube.RayJob) || job.APIVersion != rayv1.GroupVersion.String():
		return nil, fmt.Errorf("%s holds a %s of %s: it must hold a RayJob of %s", path, job.Kind, job.APIVersion, rayv1.GroupVersion)
	case job.Spec.SubmissionMode != rayv1.InteractiveMode:
		return nil, fmt.Errorf("the RayJob in %s has the submissionMode %q: it must be %q, so that it waits for the job that is submitted from here",
			path, job.Spec.SubmissionMode, rayv1.InteractiveMode)
	case ptr.Deref(job.Spec.BackoffLimit, 0) > 0:
		return nil, fmt.Errorf("the RayJob in %s has a backoffLimit: it must be 0, for a job that is submitted from here cannot be repeated", path)
	}
	job.Status = rayv1.RayJobStatus{}
	return job, nil
}

// fromFlags describes a RayJob with one worker group.
func fromFlags(f *flags, namespace string) (*rayv1.RayJob, error) {
	image := f.image
	if !f.changed("image") {
		image = imageOf + f.rayVersion
	}
	head, err := template(image, "ray-head", shape{f.headCPU, f.headMemory, f.headGPU}, "head", f.headNodeSelectors)
	if err != nil {
		return nil, err
	}
	head.Spec.Containers[0].Ports = []corev1.ContainerPort{
		{Name: ray.PortNameGCS, ContainerPort: ray.DefaultGCSPort},
		{Name: ray.PortNameDashboard, ContainerPort: ray.DefaultDashboardPort},
		{Name: ray.PortNameClient, ContainerPort: ray.DefaultClientPort},
	}
	worker, err := template(image, "ray-worker", shape{f.workerCPU, f.workerMemory, f.workerGPU}, "worker", f.workerNodeSelectors)
	if err != nil {
		return nil, err
	}
	job := &rayv1.RayJob{
		TypeMeta:   metav1.TypeMeta{APIVersion: rayv1.GroupVersion.String(), Kind: string(kube.RayJob)},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: f.name},
		Spec: rayv1.RayJobSpec{
			SubmissionMode: rayv1.InteractiveMode,
			RayClusterSpec: &rayv1.RayClusterSpec{
				RayVersion:    f.rayVersion,
				HeadGroupSpec: rayv1.HeadGroupSpec{RayStartParams: map[string]string{}, Template: head},
				WorkerGroupSpecs: []rayv1.WorkerGroupSpec{{
					GroupName: workerGroup, Replicas: ptr.To(f.workerReplicas), MinReplicas: ptr.To(f.workerReplicas),
					MaxReplicas: ptr.To(f.workerReplicas), RayStartParams: map[string]string{}, Template: worker,
				}},
			},
		},
	}
	if f.changed("ttl-seconds-after-finished") {
		job.Spec.ShutdownAfterJobFinishes, job.Spec.TTLSecondsAfterFinished = true, f.ttl
	}
	return job, nil
}

// shape is how large a Pod is.
type shape struct{ cpu, memory, gpu string }

// template is the Pod template of a group. CPUs are asked for, but not limited (spec/ecosystem.md, section 2.2).
func template(image, container string, s shape, flag string, nodes map[string]string) (corev1.PodTemplateSpec, error) {
	requests, limits := corev1.ResourceList{}, corev1.ResourceList{}
	for _, r := range []struct {
		name  corev1.ResourceName
		value string
		flag  string
	}{{corev1.ResourceCPU, s.cpu, "cpu"}, {corev1.ResourceMemory, s.memory, "memory"}, {resourceGPU, s.gpu, "gpu"}} {
		quantity, err := resource.ParseQuantity(r.value)
		if err != nil {
			return corev1.PodTemplateSpec{}, fmt.Errorf("--%s-%s %q is no quantity: %w", flag, r.flag, r.value, err)
		}
		if r.name == resourceGPU && quantity.IsZero() {
			continue
		}
		requests[r.name] = quantity
		if r.name != corev1.ResourceCPU {
			limits[r.name] = quantity
		}
	}
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		NodeSelector: nodes,
		Containers: []corev1.Container{{
			Name: container, Image: image,
			Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits},
		}},
	}}, nil
}
