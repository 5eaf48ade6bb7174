package job

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
)

// neverAnswers takes a request and says nothing until the other side has gone.
func neverAnswers(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

func TestAnUploadEndsWithItsCluster(t *testing.T) {
	cases := map[string]struct {
		end  func(ctx context.Context, c client.Client, job *rayv1.RayJob) error
		want string
	}{
		"given the RayCluster is deleted, then the upload ends": {
			func(ctx context.Context, c client.Client, job *rayv1.RayJob) error {
				return client.IgnoreNotFound(c.Delete(ctx, &rayv1.RayCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: job.Status.RayClusterName}}))
			}, "upload the working directory: RayCluster default/j-x2345 was deleted"},
		"given the RayJob has failed, then the upload ends": {
			func(ctx context.Context, c client.Client, job *rayv1.RayJob) error {
				job.Status.JobDeploymentStatus = rayv1.JobDeploymentStatusFailed
				return c.Status().Update(ctx, job)
			}, "upload the working directory: RayJob default/j is Failed"},
		"given the RayJob is deleted, then the upload ends": {
			func(ctx context.Context, c client.Client, job *rayv1.RayJob) error {
				return client.IgnoreNotFound(c.Delete(ctx, job))
			},
			"upload the working directory: RayJob default/j was deleted"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ray := newFakeRay(t, jobLog)
			uploading := make(chan struct{})
			ray.keep = func(w http.ResponseWriter, r *http.Request) {
				close(uploading)
				neverAnswers(w, r)
			}
			w := newWorld(t, ray)
			w.looked = func(ctx context.Context, c client.Client) {
				select {
				case <-uploading:
				default:
					return
				}
				job := &rayv1.RayJob{}
				if err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "j"}, job); err != nil {
					return // deleted
				}
				if err := tc.end(ctx, c, job); err != nil {
					t.Error(err)
				}
			}
			code := w.submit(t, "--name", "j", "--working-dir", sources(t), "--", "python", "main.py")
			if code != 1 || !strings.Contains(w.ErrOut.String(), tc.want) {
				t.Errorf("exit code %d: %s", code, w.ErrOut)
			}
		})
	}
}

func TestAnUploadThatStandsStillIsTriedAgain(t *testing.T) {
	ray := newFakeRay(t, jobLog)
	attempts := 0
	ray.keep = func(w http.ResponseWriter, r *http.Request) {
		if attempts++; attempts == 1 {
			neverAnswers(w, r)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
	}
	w := newWorld(t, ray)
	hasty := fast()
	hasty.stall = 200 * time.Millisecond
	submit := func(env *kube.Env) *cobra.Command { return newSubmit(env, hasty) }
	code := w.Run(t, submit, "--address", ray.server.URL, "--name", "j", "--working-dir", sources(t), "--", "python", "main.py")
	if code != 0 || !strings.Contains(w.ErrOut.String(), "Trying again to upload the working directory: nothing of the upload has moved for 200ms") {
		t.Errorf("exit code %d: %s", code, w.ErrOut)
	}
}

func TestWhichAnswersAreFinal(t *testing.T) {
	cases := map[string]struct {
		code         int
		wantCode     int
		wantAttempts int
	}{
		"given the question is at fault, then it is not asked again": {http.StatusUnprocessableEntity, 1, 1},
		"given it is too large, then it is not asked again":          {http.StatusRequestEntityTooLarge, 1, 1},
		"given Ray was too slow, then it is asked again":             {http.StatusRequestTimeout, 0, 2},
		"given Ray is too busy, then it is asked again":              {http.StatusTooManyRequests, 0, 2},
		"given Ray is at fault, then it is asked again":              {http.StatusBadGateway, 0, 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ray := newFakeRay(t, jobLog)
			ray.Inject(fakedashboard.Fault{Endpoint: fakedashboard.EndpointSubmit, Code: tc.code, Body: "no", Times: 1})
			w := newWorld(t, ray)
			code := w.submit(t, "--name", "j", "--submission-id", "mine", "--working-dir", sources(t), "--", "python", "main.py")
			if code != tc.wantCode || ray.Attempts("mine") != tc.wantAttempts {
				t.Errorf("exit code %d after %d attempts: %s", code, ray.Attempts("mine"), w.ErrOut)
			}
		})
	}
}
