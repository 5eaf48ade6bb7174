package wait

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
	"github.com/heliostat-io/heliostat/internal/cli/state"
)

// verdict is what one look says about a goal.
type verdict int

const (
	// notYet means that the goal may still be reached.
	notYet verdict = iota
	reached
	// never means that the goal is not reached unless somebody changes something.
	never
)

// goal judges an object, which is nil when it is gone.
type goal func(object client.Object) verdict

// goalOf reads what --for says.
func goalOf(kind kube.Kind, word string) (goal, error) {
	switch lower := strings.ToLower(word); {
	case lower == "ready":
		return ready, nil
	case lower == "deleted" || lower == "delete":
		return deleted, nil
	case kind == kube.RayJob && lower == "complete":
		return ended(rayv1.JobStatusSucceeded), nil
	case kind == kube.RayJob && lower == "failed":
		return ended(rayv1.JobStatusFailed), nil
	case strings.HasPrefix(lower, "condition="):
		return conditioned(word[len("condition="):])
	case lower == "complete" || lower == "failed":
		return nil, fmt.Errorf("--for=%s is for a RayJob, not for a %s", word, kind)
	default:
		return nil, fmt.Errorf("--for=%s is unknown: it must be ready, complete, failed, deleted or condition=TYPE[=STATUS]", word)
	}
}

func deleted(object client.Object) verdict {
	if object == nil {
		return reached
	}
	return notYet
}

// ready is for a RayJob that its job runs, or has ended well.
func ready(object client.Object) verdict {
	if object == nil {
		return never
	}
	if job, ok := object.(*rayv1.RayJob); ok {
		return jobRuns(job)
	}
	// KubeRay does not always note the generation that it has seen, so only a condition that names one is held to it.
	if c := meta.FindStatusCondition(state.Conditions(object), rayv1.ConditionReady); c != nil && !current(c, object) {
		return notYet
	}
	switch state.Of(object).Word {
	case state.Ready:
		return reached
	case state.Stalled, state.Deleting:
		return never
	default:
		return notYet
	}
}

func jobRuns(job *rayv1.RayJob) verdict {
	switch {
	case job.Status.JobStatus == rayv1.JobStatusRunning, job.Status.JobStatus == rayv1.JobStatusSucceeded:
		return reached
	case over(job), job.DeletionTimestamp != nil:
		return never
	default:
		return notYet
	}
}

// over tells whether a RayJob will not change any more by itself.
func over(job *rayv1.RayJob) bool {
	return rayv1.IsJobDeploymentTerminal(job.Status.JobDeploymentStatus) ||
		job.Status.JobDeploymentStatus == rayv1.JobDeploymentStatusValidationFailed
}

// ended waits for the end of a RayJob, and wants it to be a given one.
func ended(want rayv1.JobStatus) goal {
	return func(object client.Object) verdict {
		job, ok := object.(*rayv1.RayJob)
		switch {
		case !ok:
			return never
		case !over(job):
			return notYet
		}
		succeeded := job.Status.JobDeploymentStatus == rayv1.JobDeploymentStatusComplete && job.Status.JobStatus == rayv1.JobStatusSucceeded
		failed := job.Status.JobDeploymentStatus != rayv1.JobDeploymentStatusComplete
		if want == rayv1.JobStatusSucceeded && succeeded || want == rayv1.JobStatusFailed && failed {
			return reached
		}
		return never
	}
}

// conditioned waits for a condition, as `kubectl wait` does.
func conditioned(text string) (goal, error) {
	kind, status, given := strings.Cut(text, "=")
	if !given {
		status = string(metav1.ConditionTrue)
	}
	if kind == "" {
		return nil, fmt.Errorf("--for=condition=%s names no condition", text)
	}
	return func(object client.Object) verdict {
		if object == nil {
			return never
		}
		c := meta.FindStatusCondition(state.Conditions(object), kind)
		if c != nil && strings.EqualFold(string(c.Status), status) && current(c, object) {
			return reached
		}
		return notYet
	}, nil
}

// current tells whether a condition speaks of the present spec. One that does not say is believed.
func current(c *metav1.Condition, object client.Object) bool {
	return c.ObservedGeneration == 0 || c.ObservedGeneration >= object.GetGeneration()
}
