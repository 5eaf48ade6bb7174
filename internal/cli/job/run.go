package job

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
)

// run is one submission.
type run struct {
	env      *kube.Env
	flags    *flags
	plan     *prepared
	client   client.WithWatch
	pace     pace
	progress *progress
	// uid is that of the RayJob that was made. Another one may have its name later.
	uid  types.UID
	link *link
}

// run makes the RayJob, waits for its cluster, submits the job and follows it to its end.
func (r *run) run(ctx context.Context) error {
	job := r.plan.job
	if err := r.create(ctx); err != nil {
		return err
	}
	cluster, err := r.awaitCluster(ctx)
	if err != nil {
		return err
	}
	if r.link, err = r.connect(ctx, cluster); err != nil {
		return r.leaving(err)
	}
	defer r.link.close()
	if err := r.upload(ctx); err != nil {
		return r.leaving(err)
	}
	if err := r.recordID(ctx); err != nil {
		return r.leaving(err)
	}
	if err := r.send(ctx); err != nil {
		return r.leaving(err)
	}
	id := r.plan.request.SubmissionID
	r.progress.say("Job %s is submitted.", id)
	if r.flags.noWait {
		r.progress.say("See how it goes with: %s logs -n %s rayjob/%s --source ray -f", r.env.Program, job.Namespace, job.Name)
		_, err := fmt.Fprintln(r.env.Out, id)
		return err
	}
	details, err := r.follow(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("no longer following job %s, which goes on: kubectl delete rayjob -n %s %s stops it", id, job.Namespace, job.Name)
		}
		return err
	}
	return r.result(details)
}

// create makes the RayJob.
func (r *run) create(ctx context.Context) error {
	job := r.plan.job
	err := r.client.Create(ctx, job, client.FieldOwner(kube.FieldManager))
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("there is a RayJob %q in namespace %q already: choose another name, or delete it", job.Name, job.Namespace)
	}
	if err != nil {
		return fmt.Errorf("create RayJob %s/%s: %w", job.Namespace, job.Name, err)
	}
	r.uid = job.UID
	r.progress.say("RayJob %s/%s is created.", job.Namespace, job.Name)
	return nil
}

// leaving says that the RayJob, and what it costs, stays behind.
func (r *run) leaving(err error) error {
	job := r.plan.job
	return fmt.Errorf("%w; RayJob %s/%s stays: kubectl delete rayjob -n %s %s deletes it", err, job.Namespace, job.Name, job.Namespace, job.Name)
}

// recordID writes the submission id into the RayJob before Ray is told, so that the operator watches the right job
// whatever becomes of this program.
func (r *run) recordID(ctx context.Context) error {
	job := r.plan.job
	if job.Spec.JobId == r.plan.request.SubmissionID {
		return nil
	}
	before := job.DeepCopy()
	job.Spec.JobId = r.plan.request.SubmissionID
	if err := r.client.Patch(ctx, job, client.MergeFrom(before), client.FieldOwner(kube.FieldManager)); err != nil {
		return fmt.Errorf("write the submission id into RayJob %s/%s: %w", job.Namespace, job.Name, err)
	}
	return nil
}

// result is the end of the program, given that of the job.
func (r *run) result(details *dashboard.JobDetails) error {
	id := r.plan.request.SubmissionID
	if details.Status == dashboard.JobSucceeded {
		r.progress.say("Job %s %s.", id, r.progress.paint(green, string(details.Status)))
		return nil
	}
	// The rest of a message is the log, which was printed.
	message, _, _ := strings.Cut(strings.TrimSpace(details.Message), "\n")
	if message == "" {
		message = "Ray gives no reason"
	}
	return kube.ExitError{Code: kube.ExitFailed, Err: fmt.Errorf("job %s %s: %s", id, r.progress.paint(red, string(details.Status)), message)}
}

// deleteTime is how long the deletion of a RayJob is tried for when the user has had enough.
const deleteTime = 10 * time.Second

// giveUp deletes the RayJob whose cluster does not become ready, so that it costs nothing any more.
func (r *run) giveUp(ctx context.Context, because error) error {
	job := r.plan.job
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deleteTime)
	defer cancel()
	if err := client.IgnoreNotFound(r.client.Delete(ctx, job, client.Preconditions{UID: &r.uid})); err != nil {
		return errors.Join(because, fmt.Errorf("delete RayJob %s/%s: %w", job.Namespace, job.Name, err))
	}
	return fmt.Errorf("%w; RayJob %s/%s was deleted", because, job.Namespace, job.Name)
}

// ended tells whether the operator says that the RayJob has ended, and how, in words.
func ended(job *rayv1.RayJob) (string, bool) {
	status := job.Status
	if !rayv1.IsJobDeploymentTerminal(status.JobDeploymentStatus) && status.JobDeploymentStatus != rayv1.JobDeploymentStatusValidationFailed {
		return "", false
	}
	text := string(status.JobDeploymentStatus)
	if status.Reason != "" {
		text += " (" + string(status.Reason) + ")"
	}
	if status.Message != "" {
		text += ": " + status.Message
	}
	return text, true
}
