package rayjob

import (
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// This file draws specs for property tests: what the API server can hold, whether it makes sense or not.

func drawText(t *rapid.T, label string) string {
	return rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "a", "null", "{}", `{"a": 1}`, "a: b", "- a", "\x00", "a\x00b"})).Draw(t, label)
}

func drawNumber(t *rapid.T, label string) *int32 {
	return rapid.Ptr(rapid.Int32Range(-2, 30), true).Draw(t, label)
}

func drawMap(t *rapid.T, label string) map[string]string {
	keys := rapid.SampledFrom([]string{rayv1.LabelCluster, "team", "\x00", ""})
	return rapid.OneOf(rapid.Just(map[string]string(nil)), rapid.MapOfN(keys, rapid.String(), 0, 2)).Draw(t, label)
}

func drawTemplate(t *rapid.T, label string) corev1.PodTemplateSpec {
	template := corev1.PodTemplateSpec{}
	for range rapid.IntRange(0, 2).Draw(t, label+" containers") {
		template.Spec.Containers = append(template.Spec.Containers,
			corev1.Container{Name: drawText(t, label), Command: rapid.SliceOfN(rapid.String(), 0, 1).Draw(t, label+" command")})
	}
	template.Spec.RestartPolicy = rapid.SampledFrom([]corev1.RestartPolicy{"", corev1.RestartPolicyAlways, corev1.RestartPolicyNever, "Foo"}).Draw(t, label+" restarts")
	return template
}

func drawCluster(t *rapid.T) *rayv1.RayClusterSpec {
	if !rapid.Bool().Draw(t, "a cluster") {
		return nil
	}
	cluster := &rayv1.RayClusterSpec{EnableInTreeAutoscaling: rapid.Ptr(rapid.Bool(), true).Draw(t, "autoscaling")}
	cluster.HeadGroupSpec.Template = drawTemplate(t, "head")
	cluster.RayVersion = drawText(t, "version")
	for range rapid.IntRange(0, 2).Draw(t, "groups") {
		cluster.WorkerGroupSpecs = append(cluster.WorkerGroupSpecs, rayv1.WorkerGroupSpec{
			GroupName: drawText(t, "group"), MinReplicas: drawNumber(t, "least"), MaxReplicas: drawNumber(t, "most"), Template: drawTemplate(t, "worker")})
	}
	return cluster
}

func drawPolicy(t *rapid.T) rayv1.DeletionPolicyType {
	return rapid.SampledFrom([]rayv1.DeletionPolicyType{rayv1.DeleteCluster, rayv1.DeleteWorkers, rayv1.DeleteSelf, rayv1.DeleteNone, "", "Foo"}).Draw(t, "policy")
}

func drawStrategy(t *rapid.T) *rayv1.DeletionStrategy {
	if !rapid.Bool().Draw(t, "a strategy") {
		return nil
	}
	side := func(label string) *rayv1.DeletionPolicy {
		switch rapid.IntRange(0, 3).Draw(t, label) {
		case 0:
			policy := drawPolicy(t)
			return &rayv1.DeletionPolicy{Policy: &policy}
		case 1:
			return &rayv1.DeletionPolicy{}
		default:
			return nil
		}
	}
	strategy := &rayv1.DeletionStrategy{OnSuccess: side("on success"), OnFailure: side("on failure")}
	statuses := rapid.SampledFrom([]rayv1.JobStatus{rayv1.JobStatusSucceeded, rayv1.JobStatusFailed, rayv1.JobStatusStopped, ""})
	phases := rapid.SampledFrom([]rayv1.JobDeploymentStatus{rayv1.JobDeploymentStatusFailed, rayv1.JobDeploymentStatusComplete, ""})
	for range rapid.IntRange(0, 5).Draw(t, "rules") {
		strategy.DeletionRules = append(strategy.DeletionRules, rayv1.DeletionRule{Policy: drawPolicy(t), Condition: rayv1.DeletionCondition{
			JobStatus:           rapid.Ptr(statuses, true).Draw(t, "status"),
			JobDeploymentStatus: rapid.Ptr(phases, true).Draw(t, "phase"),
			TTLSeconds:          rapid.Int32Range(-1, 30).Draw(t, "ttl"),
		}})
	}
	return strategy
}

func drawSpec(t *rapid.T) rayv1.RayJobSpec {
	spec := rayv1.RayJobSpec{
		Entrypoint:      drawText(t, "entrypoint"),
		RayClusterSpec:  drawCluster(t),
		ClusterSelector: drawMap(t, "selector"),
		SubmissionMode: rapid.SampledFrom([]rayv1.JobSubmissionMode{
			"", rayv1.K8sJobMode, rayv1.HTTPMode, rayv1.InteractiveMode, rayv1.SidecarMode, "Foo"}).Draw(t, "mode"),
		JobId:                     drawText(t, "id"),
		Metadata:                  drawMap(t, "metadata"),
		RuntimeEnvYAML:            drawText(t, "runtime environment"),
		EntrypointResources:       drawText(t, "resources"),
		Suspend:                   rapid.Bool().Draw(t, "suspend"),
		BackoffLimit:              drawNumber(t, "retries"),
		ActiveDeadlineSeconds:     drawNumber(t, "deadline"),
		PreRunningDeadlineSeconds: drawNumber(t, "deadline for the start"),
		ShutdownAfterJobFinishes:  rapid.Bool().Draw(t, "shutdown"),
		TTLSecondsAfterFinished:   rapid.Int32Range(-1, 30).Draw(t, "delay"),
		DeletionStrategy:          drawStrategy(t),
	}
	if rapid.Bool().Draw(t, "a template") {
		template := drawTemplate(t, "submitter")
		spec.SubmitterPodTemplate = &template
	}
	if rapid.Bool().Draw(t, "a submitter's configuration") {
		spec.SubmitterConfig = &rayv1.SubmitterConfig{BackoffLimit: drawNumber(t, "submitter's retries")}
	}
	return spec
}
