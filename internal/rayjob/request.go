package rayjob

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
)

// submitRequest is the submission in Ray's terms. HTTPMode sends it as it is; the other modes carry the same content.
func submitRequest(job *rayv1.RayJob) (dashboard.SubmitRequest, error) {
	request := dashboard.SubmitRequest{
		Entrypoint:   job.Spec.Entrypoint,
		SubmissionID: job.Status.JobId,
		Metadata:     jobMetadata(job),
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

// jobMetadata is the user's metadata with the mark by which the job is known to be of this RayJob and this attempt.
func jobMetadata(job *rayv1.RayJob) map[string]string {
	metadata := maps.Clone(job.Spec.Metadata)
	if metadata == nil {
		metadata = map[string]string{}
	}
	metadata[rayv1.MetadataRayJobUID] = string(job.UID)
	metadata[rayv1.MetadataAttempt] = strconv.Itoa(int(job.Status.Attempt))
	return metadata
}

// runtimeEnvOf reads spec.runtimeEnvYAML. Numbers keep their digits.
func runtimeEnvOf(job *rayv1.RayJob) (map[string]any, error) {
	if strings.TrimSpace(job.Spec.RuntimeEnvYAML) == "" {
		return nil, nil
	}
	text, err := yaml.YAMLToJSON([]byte(job.Spec.RuntimeEnvYAML))
	if err != nil {
		return nil, fmt.Errorf("spec.runtimeEnvYAML must be a YAML mapping: %w", err)
	}
	var env map[string]any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&env); err != nil {
		return nil, fmt.Errorf("spec.runtimeEnvYAML must be a YAML mapping: %w", err)
	}
	return env, nil
}

// exact keeps the decimal that the user wrote: 0.1 must not become 0.10000000149.
func exact(f float32) float64 {
	d, err := strconv.ParseFloat(strconv.FormatFloat(float64(f), 'g', -1, 32), 64)
	if err != nil {
		return float64(f)
	}
	return d
}
