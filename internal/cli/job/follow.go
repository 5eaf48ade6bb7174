package job

import (
	"context"
	"errors"
	"fmt"
	"io"

	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
)

// patience is how often in a row Ray may say that it does not know the job. A new head needs a moment to read its records.
const patience = 5

// cursor writes a log, of which the beginning may come more than once, once.
type cursor struct {
	out io.Writer
	// written is how much of the log is out, and skip how much of what comes next is out already, in bytes.
	written, skip int
}

// again says that the log comes from its beginning.
func (c *cursor) again() { c.skip = c.written }

// Write writes what is not out yet.
func (c *cursor) Write(text []byte) (int, error) {
	skipped := min(c.skip, len(text))
	c.skip -= skipped
	n, err := c.out.Write(text[skipped:])
	c.written += n
	return skipped + n, err
}

// follow prints the log of the job until the job has ended, and returns how it did. Where the growing log breaks off, the
// whole log is asked for, and then the growing one again.
func (r *run) follow(ctx context.Context) (*dashboard.JobDetails, error) {
	log := &cursor{out: r.env.Out}
	unknown := 0
	for {
		details, err := r.followOnce(ctx, log)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err == nil && details.Status.Terminal():
			return details, nil
		case errors.Is(err, dashboard.ErrUnauthorized):
			return nil, err
		case errors.Is(err, dashboard.ErrNotFound):
			unknown++
		case err == nil:
			unknown = 0
			r.progress.detail("The job is %s.", details.Status)
		default:
			r.progress.say("The connection to the job is lost, trying again: %v", err)
		}
		if err != nil {
			if told, tellErr := r.told(ctx, unknown); told != nil || tellErr != nil {
				return told, tellErr
			}
		}
		if err := kube.Sleep(ctx, r.pace.follow); err != nil {
			return nil, err
		}
	}
}

// followOnce prints the log as far as it can, and then asks how the job does.
func (r *run) followOnce(ctx context.Context, log *cursor) (*dashboard.JobDetails, error) {
	client, err := r.link.dashboard(ctx)
	if err != nil {
		return nil, err
	}
	id := r.plan.request.SubmissionID
	log.again()
	tailErr := r.tail(ctx, client, log)
	if tailErr != nil {
		r.progress.detail("The growing log broke off: %v", tailErr)
		if client, err = r.link.dashboard(ctx); err != nil {
			return nil, err
		}
	}
	details, err := client.GetJob(ctx, id)
	if err != nil {
		return nil, err
	}
	if tailErr == nil {
		return details, nil
	}
	// Asked for after the status: of a job that has ended, this is all.
	text, err := client.JobLogs(ctx, id)
	if err != nil {
		if details.Status.Terminal() {
			r.progress.say("Warning: the end of the log cannot be read: %v", err)
			return details, nil
		}
		return nil, err
	}
	log.again()
	if _, err := io.WriteString(log, text); err != nil {
		return nil, fmt.Errorf("print the log: %w", err)
	}
	return details, nil
}

// tail prints the growing log until it ends, breaks off, or is of no use any more.
func (r *run) tail(ctx context.Context, client *dashboard.Client, log io.Writer) error {
	return r.guarded(ctx, func(ctx context.Context) error {
		return client.TailJobLogs(ctx, r.plan.request.SubmissionID, log)
	})
}

// told returns how the job ended when only the RayJob can tell it any more: its cluster may be gone. Ray that does not know
// the job for long has lost it.
func (r *run) told(ctx context.Context, unknown int) (*dashboard.JobDetails, error) {
	job := r.plan.job.DeepCopy()
	if err := r.client.Get(ctx, client.ObjectKeyFromObject(job), job); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil, fmt.Errorf("RayJob %s/%s was deleted, and job %s with it", job.Namespace, job.Name, r.plan.request.SubmissionID)
		}
		return nil, nil
	}
	if text, over := ended(job); over {
		if status := dashboard.JobStatus(job.Status.JobStatus); job.Status.JobDeploymentStatus == rayv1.JobDeploymentStatusComplete && status.Terminal() {
			return &dashboard.JobDetails{Status: status, Message: job.Status.Message}, nil
		}
		return nil, fmt.Errorf("RayJob %s/%s is %s", job.Namespace, job.Name, text)
	}
	if unknown >= patience {
		return nil, fmt.Errorf("job %s is lost: Ray does not know it any more, because its head was replaced", r.plan.request.SubmissionID)
	}
	return nil, nil
}
