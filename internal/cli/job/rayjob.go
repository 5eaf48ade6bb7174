package job

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/blueprint"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
)

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
	pods := blueprint.Pods{Image: f.image}
	if !f.changed("image") {
		pods.Image = blueprint.Image(f.rayVersion)
	}
	head, err := node("head", f.headCPU, f.headMemory, f.headGPU, f.headNodeSelectors)
	if err != nil {
		return nil, err
	}
	worker, err := node("worker", f.workerCPU, f.workerMemory, f.workerGPU, f.workerNodeSelectors)
	if err != nil {
		return nil, err
	}
	workers := pods.Workers(blueprint.Group, worker)
	workers.Replicas, workers.MinReplicas, workers.MaxReplicas = &f.workerReplicas, &f.workerReplicas, &f.workerReplicas
	job := &rayv1.RayJob{
		TypeMeta:   metav1.TypeMeta{APIVersion: rayv1.GroupVersion.String(), Kind: string(kube.RayJob)},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: f.name},
		Spec: rayv1.RayJobSpec{
			SubmissionMode: rayv1.InteractiveMode,
			RayClusterSpec: &rayv1.RayClusterSpec{
				RayVersion:       f.rayVersion,
				HeadGroupSpec:    pods.Head(head),
				WorkerGroupSpecs: []rayv1.WorkerGroupSpec{workers},
			},
		},
	}
	if f.changed("ttl-seconds-after-finished") {
		job.Spec.ShutdownAfterJobFinishes, job.Spec.TTLSecondsAfterFinished = true, f.ttl
	}
	return job, nil
}

// node describes the head or each worker as the flags that begin with its name say.
func node(name, cpu, memory, gpu string, nodes map[string]string) (blueprint.Node, error) {
	n := blueprint.Node{NodeSelector: nodes, RayStartParams: map[string]string{}}
	for _, amount := range []struct {
		flag, text string
		into       *resource.Quantity
	}{{"cpu", cpu, &n.CPU}, {"memory", memory, &n.Memory}, {"gpu", gpu, &n.GPU}} {
		quantity, err := resource.ParseQuantity(amount.text)
		switch {
		case err != nil:
			return n, fmt.Errorf("--%s-%s %q is no quantity: %w", name, amount.flag, amount.text, err)
		case quantity.Sign() < 0:
			return n, fmt.Errorf("--%s-%s %q must not be negative", name, amount.flag, amount.text)
		}
		*amount.into = quantity
	}
	return n, nil
}
