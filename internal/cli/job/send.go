package job

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
)

// sendTime is how long an upload or a submission is tried for while the head is there, but gives no clear answer.
const sendTime = 2 * time.Minute

// upload brings the package of the working directory to Ray, unless Ray has it.
func (r *run) upload(ctx context.Context) error {
	p := r.plan.upload
	if p == nil {
		return nil
	}
	return r.insist(ctx, "upload the working directory", func(ctx context.Context, client *dashboard.Client) error {
		has, err := client.HasPackage(ctx, p.Name)
		if err != nil {
			return err
		}
		if has {
			r.progress.say("Ray has the working directory already (%s).", p.Name)
			return nil
		}
		file, err := os.Open(p.Path)
		if err != nil {
			return final{fmt.Errorf("read the package: %w", err)}
		}
		defer file.Close()
		r.progress.say("Uploading the working directory (%d KiB packed).", (p.Size+1023)>>10)
		moving, moved, rest := r.whileMoving(ctx)
		defer rest()
		err = client.UploadPackage(moving, p.Name, &upload{Reader: file, progress: r.progress, size: p.Size, moved: moved}, p.Size)
		if err != nil && errors.Is(context.Cause(moving), errStalled) {
			return fmt.Errorf("%w for %s", errStalled, r.pace.stall)
		}
		return err
	})
}

// errStalled says that an upload stood still.
var errStalled = errors.New("nothing of the upload has moved")

// whileMoving returns a context that ends when moved is not called for too long. Call rest at the end.
func (r *run) whileMoving(ctx context.Context) (moving context.Context, moved, rest func()) {
	moving, stop := context.WithCancelCause(ctx)
	timer := time.AfterFunc(r.pace.stall, func() { stop(errStalled) })
	moved = func() { timer.Reset(r.pace.stall) }
	rest = func() {
		timer.Stop()
		stop(nil)
	}
	return moving, moved, rest
}

// send submits the job. What is known to have arrived is not sent again, and Ray takes an id only once.
func (r *run) send(ctx context.Context) error {
	request := r.plan.request
	uid := string(r.plan.job.UID)
	if request.Metadata == nil {
		request.Metadata = map[string]string{}
	}
	request.Metadata[rayv1.MetadataRayJobUID] = uid
	return r.insist(ctx, "submit the job", func(ctx context.Context, client *dashboard.Client) error {
		_, err := client.SubmitJob(ctx, request)
		if !errors.Is(err, dashboard.ErrAlreadyExists) {
			return err
		}
		job, lookErr := client.GetJob(ctx, request.SubmissionID)
		if lookErr != nil {
			return lookErr
		}
		if job.Metadata[rayv1.MetadataRayJobUID] != uid {
			return final{fmt.Errorf("the cluster has another job with the id %s: choose another --submission-id", request.SubmissionID)}
		}
		return nil
	})
}

// final is an error that trying again does not mend.
type final struct{ error }

func (f final) Unwrap() error { return f.error }

// isFinal tells whether trying again does not mend an error. Of the answers that blame the question, only those are worth
// another attempt that ask for it.
func isFinal(err error) bool {
	var status *dashboard.StatusError
	if errors.As(err, &status) && status.Code >= 400 && status.Code < 500 {
		return status.Code != http.StatusRequestTimeout && status.Code != http.StatusTooManyRequests
	}
	return errors.As(err, &final{}) || errors.As(err, &overError{}) || errors.Is(err, dashboard.ErrRefused) || errors.Is(err, dashboard.ErrUnauthorized)
}

// insist does something with the dashboard until it has worked, cannot work, or has been tried for long enough.
func (r *run) insist(ctx context.Context, what string, do func(context.Context, *dashboard.Client) error) error {
	limited, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	var last error
	err := wait.PollUntilContextCancel(limited, r.pace.look, true, func(limited context.Context) (bool, error) {
		client, err := r.link.dashboard(limited)
		if err == nil {
			// An upload may take longer than there is time for new attempts.
			err = r.guarded(ctx, func(ctx context.Context) error { return do(ctx, client) })
		}
		switch {
		case err == nil:
			return true, nil
		case isFinal(err):
			return false, err
		}
		last = err
		r.progress.say("Trying again to %s: %v", what, err)
		return false, nil
	})
	switch {
	case err == nil:
		return nil
	case limited.Err() != nil && !isFinal(err):
		return fmt.Errorf("%s: %w", what, errors.Join(last, ctx.Err()))
	default:
		return fmt.Errorf("%s: %w", what, err)
	}
}
