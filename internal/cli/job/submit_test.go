package job

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/podtest"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
)

const jobLog = "first line\nsecond line\nlast line\n"

func TestAJobRunsToItsEnd(t *testing.T) {
	cases := map[string]struct {
		script     []fakedashboard.Step
		breaks     int
		wantCode   int
		wantErrOut string
	}{
		"given it succeeds, then so does the command": {
			script: fakedashboard.Steps("SUCCEEDED"), wantErrOut: "Job raysubmit_mine SUCCEEDED.",
		},
		"given it fails, then the command says why, without the log": {
			script: fakedashboard.Steps("FAILED"), wantCode: 1, wantErrOut: "Error: job raysubmit_mine FAILED: Job entrypoint command failed with exit code 1",
		},
		"given it is stopped, then the command fails": {
			script: fakedashboard.Steps("STOPPED"), wantCode: 1, wantErrOut: "job raysubmit_mine STOPPED: Job was intentionally stopped.",
		},
		"given the log breaks off, then it is printed once and whole": {
			script: fakedashboard.Steps("PENDING", "RUNNING", "RUNNING", "SUCCEEDED"), breaks: 2, wantErrOut: "SUCCEEDED",
		},
		"given the log never grows, then it is asked for": {
			script: fakedashboard.Steps("RUNNING", "SUCCEEDED"), breaks: 100, wantErrOut: "SUCCEEDED",
		},
	}
	for name, tc := range cases {
		for way, connect := range map[string]func(*world, *testing.T) []string{
			"by its address":         func(w *world, _ *testing.T) []string { return []string{"--address", w.ray.server.URL} },
			"through the API server": func(w *world, t *testing.T) []string { w.reachable(t); return nil },
		} {
			t.Run(name+", "+way, func(t *testing.T) {
				ray := newFakeRay(t, jobLog)
				ray.breaks = tc.breaks
				ray.Script("raysubmit_mine", tc.script...)
				w := newWorld(t, ray)
				args := append(connect(w, t), "--name", "j", "--submission-id", "raysubmit_mine", "--working-dir", sources(t), "--", "python", "main.py")
				if code := w.Run(t, fastSubmit, args...); code != tc.wantCode {
					t.Errorf("exit code %d: %s", code, w.ErrOut)
				}
				if w.Out.String() != jobLog {
					t.Errorf("the log was printed as %q", w.Out)
				}
				if !strings.Contains(w.ErrOut.String(), tc.wantErrOut) {
					t.Errorf("told %q, want %q", w.ErrOut, tc.wantErrOut)
				}
			})
		}
	}
}

func TestWhatIsSubmitted(t *testing.T) {
	ray := newFakeRay(t, "")
	w := newWorld(t, ray)
	code := w.submit(t, "--no-wait", "--name", "j", "--working-dir", sources(t), "--runtime-env-json", `{"env_vars": {"A": "1"}}`,
		"--metadata-json", `{"team": "a"}`, "--entrypoint-num-cpus", "0.1", "--entrypoint-num-gpus", "2", "--entrypoint-resources", `{"tpu": 1}`,
		"--headers", `{"X-Team": "a"}`, "--", "python", "main.py", "two words")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, w.ErrOut)
	}
	id := strings.TrimSpace(w.Out.String())
	got, ok := ray.Job(id)
	if !ok {
		t.Fatalf("Ray has no job %q", id)
	}
	if len(ray.packages) != 1 {
		t.Fatalf("%d packages were uploaded", len(ray.packages))
	}
	for name := range ray.packages {
		want := map[string]any{"env_vars": map[string]any{"A": "1"}, "working_dir": "gcs://" + name}
		if diff := cmp.Diff(want, got.RuntimeEnv); diff != "" {
			t.Errorf("runtime environment (-want +got):\n%s", diff)
		}
	}
	if diff := cmp.Diff(map[string]string{"team": "a", rayv1.MetadataRayJobUID: "uid-1"}, got.Metadata); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	if got.Entrypoint != `python main.py "two words"` || *got.NumCPUs != 0.1 || *got.NumGPUs != 2 || got.Resources["tpu"] != 1 {
		t.Errorf("submitted %+v", got)
	}
	if ray.header.Get("X-Team") != "a" {
		t.Error("the headers were not sent")
	}
	jobs := w.jobs(t)
	if len(jobs) != 1 || jobs[0].Spec.JobId != id || jobs[0].Spec.SubmissionMode != rayv1.InteractiveMode {
		t.Errorf("the RayJob does not know of the job: %+v", jobs)
	}
}

func TestAPackageThatRayHasIsNotSentAgain(t *testing.T) {
	ray := newFakeRay(t, "")
	dir := sources(t)
	for _, name := range []string{"one", "two"} {
		w := newWorld(t, ray)
		if code := w.submit(t, "--no-wait", "--name", name, "--working-dir", dir, "--", "python", "main.py"); code != 0 {
			t.Fatalf("exit code %d: %s", code, w.ErrOut)
		}
		if again := strings.Contains(w.ErrOut.String(), "already"); again != (name == "two") {
			t.Errorf("job %s: told %q", name, w.ErrOut)
		}
	}
	if len(ray.packages) != 1 {
		t.Errorf("Ray has %d packages", len(ray.packages))
	}
}

func TestASubmissionWithoutAnAnswerIsNotRepeated(t *testing.T) {
	cases := map[string]fakedashboard.Fault{
		"given Ray took it and the answer was lost": {Endpoint: fakedashboard.EndpointSubmit, Code: 502, Body: "bad gateway", TakesEffect: true, Times: 1},
		"given the head could not take it yet":      fakedashboard.NoAgent(1),
	}
	for name, fault := range cases {
		t.Run(name, func(t *testing.T) {
			ray := newFakeRay(t, jobLog)
			ray.Inject(fault)
			w := newWorld(t, ray)
			if code := w.submit(t, "--name", "j", "--submission-id", "mine", "--working-dir", sources(t), "--", "python", "main.py"); code != 0 {
				t.Errorf("exit code %d: %s", code, w.ErrOut)
			}
			if got := ray.Submissions("mine"); got != 1 || ray.Attempts("mine") != 2 {
				t.Errorf("the job was accepted %d times in %d attempts", got, ray.Attempts("mine"))
			}
		})
	}
}

func TestAnIDThatIsTakenIsSaid(t *testing.T) {
	ray := newFakeRay(t, "")
	ray.PutJob(fakedashboard.Job{SubmissionID: "mine", Step: fakedashboard.Step{Status: "RUNNING"}})
	w := newWorld(t, ray)
	code := w.submit(t, "--name", "j", "--submission-id", "mine", "--working-dir", sources(t), "--", "python", "main.py")
	if code != 1 || !strings.Contains(w.ErrOut.String(), "choose another --submission-id") || !strings.Contains(w.ErrOut.String(), "kubectl delete rayjob -n default j") {
		t.Errorf("exit code %d: %s", code, w.ErrOut)
	}
}

func TestTheTokenOfTheClusterIsSent(t *testing.T) {
	ray := newFakeRay(t, jobLog)
	ray.RequireToken("secret")
	token := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "j-x2345"}, Data: map[string][]byte{"auth_token": []byte("secret")}}
	w := newWorld(t, ray, token)
	w.operate = func(ctx context.Context, c client.Client, job *rayv1.RayJob) error {
		job.Spec.RayClusterSpec.AuthOptions = &rayv1.AuthOptions{Mode: rayv1.AuthModeToken}
		return makeReady(ctx, c, job)
	}
	if code := w.submit(t, "--name", "j", "--working-dir", sources(t), "--", "python", "main.py"); code != 0 {
		t.Errorf("exit code %d: %s", code, w.ErrOut)
	}
	if got := ray.header.Get("Authorization"); got != "Bearer secret" {
		t.Errorf("Authorization was %q", got)
	}
}

func TestAClusterThatIsNotReadyInTimeIsGivenUp(t *testing.T) {
	w := newWorld(t, newFakeRay(t, ""))
	w.operate = func(ctx context.Context, c client.Client, job *rayv1.RayJob) error {
		ray := cluster(job)
		ray.Status.State = ""
		ray.Status.Conditions = []metav1.Condition{{Type: rayv1.ConditionPodsHealthy, Status: metav1.ConditionFalse, Reason: "ErrImagePull", Message: "no image x"}}
		if err := c.Create(ctx, ray); err != nil {
			return err
		}
		job.Status.RayClusterName, job.Status.JobDeploymentStatus = ray.Name, rayv1.JobDeploymentStatusInitializing
		return c.Status().Update(ctx, job)
	}
	code := w.submit(t, "--cluster-timeout", "50ms", "--name", "j", "--working-dir", sources(t), "--", "python", "main.py")
	told := w.ErrOut.String()
	if code != 1 || !strings.Contains(told, "not ready within 50ms") || !strings.Contains(told, "ErrImagePull: no image x; RayJob default/j was deleted") {
		t.Errorf("exit code %d: %s", code, told)
	}
	if strings.Count(told, "Waiting for") != 1 {
		t.Errorf("the same was said more than once: %s", told)
	}
	if jobs := w.jobs(t); len(jobs) != 0 {
		t.Error("the RayJob is still there")
	}
	if len(w.deleted) != 1 || w.deleted[0].Preconditions == nil || ptr.Deref(w.deleted[0].Preconditions.UID, "") != "uid-1" {
		t.Errorf("a RayJob of the same name could have been deleted: %+v", w.deleted)
	}
}

func TestWhatTheAPIServerSaysWhileTheClusterIsAwaited(t *testing.T) {
	kind := schema.GroupResource{Group: "ray.io", Resource: "objects"}
	cases := map[string]struct {
		object   client.Object
		err      error
		wantCode int
		want     string
	}{
		"given the RayJob must not be read, then that is the end": {
			&rayv1.RayJob{}, apierrors.NewForbidden(kind, "j", errors.New("no")), 1, "read RayJob default/j: objects.ray.io \"j\" is forbidden: no; RayJob default/j stays"},
		"given the RayCluster must not be read, then that is the end": {
			&rayv1.RayCluster{}, apierrors.NewForbidden(kind, "c", errors.New("no")), 1, "read RayCluster default/j-x2345: objects.ray.io \"c\" is forbidden: no; RayJob default/j stays"},
		"given the login has expired, then that is the end": {
			&rayv1.RayCluster{}, apierrors.NewUnauthorized("log in"), 1, "log in; RayJob default/j stays"},
		"given the API server is busy, then that is said and waited for": {
			&rayv1.RayCluster{}, apierrors.NewServiceUnavailable("busy"), 0, "Waiting for the API server, to read RayCluster j-x2345: busy"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newFakeRay(t, jobLog))
			refused := 0
			w.refuse = func(object client.Object) error {
				if reflect.TypeOf(object) != reflect.TypeOf(tc.object) || refused > 0 {
					return nil
				}
				refused++
				return tc.err
			}
			code := w.submit(t, "--name", "j", "--working-dir", sources(t), "--", "python", "main.py")
			if code != tc.wantCode || !strings.Contains(w.ErrOut.String(), tc.want) {
				t.Errorf("exit code %d: %s", code, w.ErrOut)
			}
			if jobs := w.jobs(t); len(jobs) != 1 {
				t.Error("the RayJob was deleted")
			}
		})
	}
}

func TestTheTimeInAQueueDoesNotCount(t *testing.T) {
	w := newWorld(t, newFakeRay(t, jobLog))
	w.operate = func(ctx context.Context, c client.Client, job *rayv1.RayJob) error {
		job.Spec.Suspend = true
		return c.Update(ctx, job)
	}
	looks := 0
	w.looked = func(ctx context.Context, c client.Client) {
		// By then many times the time-out has passed.
		if looks++; looks != 100 {
			return
		}
		job := &rayv1.RayJob{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "j"}, job); err != nil {
			t.Error(err)
		}
		job.Spec.Suspend = false
		if err := errors.Join(c.Update(ctx, job), makeReady(ctx, c, job)); err != nil {
			t.Error(err)
		}
	}
	code := w.submit(t, "--cluster-timeout", "20ms", "--name", "j", "--working-dir", sources(t), "--", "python", "main.py")
	if code != 0 || !strings.Contains(w.ErrOut.String(), "Waiting for RayJob j to be resumed") {
		t.Errorf("exit code %d: %s", code, w.ErrOut)
	}
}

func TestARayJobThatEndsEarlyIsSaid(t *testing.T) {
	w := newWorld(t, newFakeRay(t, ""))
	w.operate = func(ctx context.Context, c client.Client, job *rayv1.RayJob) error {
		job.Status.JobDeploymentStatus, job.Status.Reason, job.Status.Message = rayv1.JobDeploymentStatusValidationFailed, rayv1.ValidationFailed, "bad spec"
		return c.Status().Update(ctx, job)
	}
	code := w.submit(t, "--name", "j", "--working-dir", sources(t), "--", "python", "main.py")
	if code != 1 || !strings.Contains(w.ErrOut.String(), "ValidationFailed (ValidationFailed): bad spec") {
		t.Errorf("exit code %d: %s", code, w.ErrOut)
	}
}

func TestAJobThatRayHasLostIsSaid(t *testing.T) {
	ray := newFakeRay(t, jobLog)
	ray.Script("mine", fakedashboard.Step{Status: "RUNNING"})
	ray.Inject(fakedashboard.Fault{Endpoint: fakedashboard.EndpointGet, Code: 404, Body: "Job mine does not exist"})
	w := newWorld(t, ray)
	code := w.submit(t, "--name", "j", "--submission-id", "mine", "--working-dir", sources(t), "--", "python", "main.py")
	if code != 1 || !strings.Contains(w.ErrOut.String(), "job mine is lost") {
		t.Errorf("exit code %d: %s", code, w.ErrOut)
	}
}

func TestARayJobOfThatNameIsSaid(t *testing.T) {
	w := newWorld(t, newFakeRay(t, ""), &rayv1.RayJob{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "j"}})
	code := w.submit(t, "--name", "j", "--working-dir", sources(t), "--", "python", "main.py")
	if code != 1 || !strings.Contains(w.ErrOut.String(), `a RayJob "j" in namespace "default" already`) {
		t.Errorf("exit code %d: %s", code, w.ErrOut)
	}
}

func TestAHeadThatIsReplacedBehindTheConnectionIsNoticed(t *testing.T) {
	ray := newFakeRay(t, jobLog)
	ray.hangs = 1
	w := newWorld(t, ray)
	server := w.reachable(t)
	replaced := false
	w.looked = func(ctx context.Context, c client.Client) {
		if replaced || !ray.hangsNow() {
			return
		}
		replaced = true
		head := &corev1.Pod{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "the-head"}, head); err != nil {
			t.Error(err)
		}
		next := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "next-head", UID: "next", Labels: head.Labels}, Status: head.Status}
		server.Set(client.ObjectKey{Namespace: "default", Name: "next-head"}, podtest.Pod{Ports: map[int32]string{8265: ray.server.Listener.Addr().String()}})
		if err := errors.Join(c.Delete(ctx, head), c.Create(ctx, next)); err != nil {
			t.Error(err)
		}
	}
	code := w.Run(t, fastSubmit, "--name", "j", "--working-dir", sources(t), "--", "python", "main.py")
	if code != 0 || w.Out.String() != jobLog || !strings.Contains(w.ErrOut.String(), "The head was replaced.") {
		t.Errorf("exit code %d: %s%s", code, w.Out, w.ErrOut)
	}
}

func TestTheEndOfARayJobEndsALogThatHangs(t *testing.T) {
	ray := newFakeRay(t, jobLog)
	ray.hangs = 1
	ray.Script("mine", fakedashboard.Step{Status: "SUCCEEDED"})
	w := newWorld(t, ray)
	over := false
	w.looked = func(ctx context.Context, c client.Client) {
		if over || !ray.hangsNow() {
			return
		}
		over = true
		job := &rayv1.RayJob{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "j"}, job); err != nil {
			t.Error(err)
		}
		job.Status.JobDeploymentStatus, job.Status.JobStatus = rayv1.JobDeploymentStatusComplete, rayv1.JobStatusSucceeded
		if err := c.Status().Update(ctx, job); err != nil {
			t.Error(err)
		}
	}
	code := w.submit(t, "--name", "j", "--submission-id", "mine", "--working-dir", sources(t), "--", "python", "main.py")
	if code != 0 || w.Out.String() != jobLog {
		t.Errorf("exit code %d: %s%s", code, w.Out, w.ErrOut)
	}
}
