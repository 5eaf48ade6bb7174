package wait

import (
	"context"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/clitest"
)

func cluster(conditions ...metav1.Condition) *rayv1.RayCluster {
	return &rayv1.RayCluster{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "default", Generation: 2},
		Status: rayv1.RayClusterStatus{Conditions: conditions, ObservedGeneration: 2}}
}

func condition(kind string, status metav1.ConditionStatus, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: "R", Message: message, ObservedGeneration: 2}
}

func job(phase rayv1.JobDeploymentStatus, status rayv1.JobStatus) *rayv1.RayJob {
	return &rayv1.RayJob{ObjectMeta: metav1.ObjectMeta{Name: "j", Namespace: "default"},
		Status: rayv1.RayJobStatus{JobDeploymentStatus: phase, JobStatus: status}}
}

// TestWait shows the exit code for each way in which waiting ends at the first look.
func TestWait(t *testing.T) {
	stale := cluster(condition("Ready", "True", ""))
	stale.Generation = 3
	theirs := &rayv1.RayCluster{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "default", Generation: 3},
		Status: rayv1.RayClusterStatus{State: "ready", ObservedGeneration: 2}}
	for name, tc := range map[string]struct {
		object client.Object
		args   []string
		code   int
		says   string
	}{
		"a cluster that is ready":                   {cluster(condition("Ready", "True", "")), []string{"c"}, 0, "RayCluster default/c is Ready"},
		"one that KubeRay runs":                     {&rayv1.RayCluster{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "default"}, Status: rayv1.RayClusterStatus{State: "ready"}}, []string{"c"}, 0, "is Ready"},
		"one that KubeRay runs, edited since":       {theirs, []string{"c"}, 0, "is Ready"},
		"one look":                                  {cluster(condition("Ready", "True", "")), []string{"c", "--timeout=0"}, 0, "is Ready"},
		"one look at what is not ready":             {cluster(), []string{"c", "--timeout=0"}, 124, "still Starting"},
		"a job whose name alone is given":           {job("Complete", "SUCCEEDED"), []string{"j", "--for=complete"}, 0, "RayJob default/j is Complete"},
		"one that is not":                           {cluster(condition("Ready", "False", "no head")), []string{"c", "--timeout=10ms"}, 124, "after 10ms RayCluster default/c is still Starting: no head"},
		"one whose status is older than it":         {stale, []string{"c", "--timeout=10ms"}, 124, "still Ready"},
		"one that is stalled":                       {cluster(condition("Ready", "False", ""), condition("Stalled", "True", "no image")), []string{"c"}, 1, "is Stalled: no image, and will not become"},
		"a condition":                               {cluster(condition("HeadPodReady", "True", "")), []string{"c", "--for=condition=HeadPodReady"}, 0, "default/c"},
		"a condition that must be false":            {cluster(condition("HeadPodReady", "False", "")), []string{"c", "--for=condition=HeadPodReady=False"}, 0, "default/c"},
		"a job that has succeeded":                  {job("Complete", "SUCCEEDED"), []string{"job/j", "--for=complete"}, 0, "RayJob default/j is Complete"},
		"a job that has failed":                     {job("Failed", "FAILED"), []string{"job/j", "--for=complete"}, 1, "is Failed"},
		"a job that was stopped":                    {job("Complete", "STOPPED"), []string{"job/j", "--for=complete"}, 1, "is Complete"},
		"a job that is meant to fail":               {job("Failed", "FAILED"), []string{"job/j", "--for=failed"}, 0, "is Failed"},
		"a job that is meant to fail, and does not": {job("Complete", "SUCCEEDED"), []string{"job/j", "--for=failed"}, 1, "is Complete"},
		"a job that runs":                           {job("Running", "RUNNING"), []string{"job/j"}, 0, "is Running"},
		"a job whose spec makes no sense":           {job("ValidationFailed", ""), []string{"job/j", "--for=complete"}, 1, "is ValidationFailed"},
		"an object that is gone, as it is to be":    {nil, []string{"c", "--for=deleted"}, 0, "is gone"},
		"an object that is not gone":                {cluster(), []string{"c", "--for=deleted", "--timeout=10ms"}, 124, "still Starting"},
		"an object that was never there":            {nil, []string{"c"}, 2, "no RayCluster"},
		"a cluster cannot complete":                 {cluster(), []string{"c", "--for=complete"}, 2, "--for=complete is for a RayJob, not for a RayCluster"},
		"a goal that nobody knows":                  {cluster(), []string{"c", "--for=beauty"}, 2, "--for=beauty is unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			if tc.object != nil {
				objects = append(objects, tc.object)
			}
			k := clitest.New(objects...)
			code := k.Run(t, New, tc.args...)
			if said := k.Out.String() + k.ErrOut.String(); code != tc.code || !strings.Contains(said, tc.says) {
				t.Errorf("exit code %d, want %d; it said %q, want %q", code, tc.code, said, tc.says)
			}
		})
	}
}

// TestWaitSeesChanges lets the object change while the command waits.
func TestWaitSeesChanges(t *testing.T) {
	for name, tc := range map[string]struct {
		args   []string
		change func(*clitest.Kube, *rayv1.RayCluster) error
		code   int
	}{
		"it becomes ready": {[]string{"c"}, func(k *clitest.Kube, c *rayv1.RayCluster) error {
			c.Status.Conditions = []metav1.Condition{condition("Ready", "True", "")}
			return k.Status().Update(t.Context(), c)
		}, 0},
		"it becomes stalled": {[]string{"c"}, func(k *clitest.Kube, c *rayv1.RayCluster) error {
			c.Status.Conditions = []metav1.Condition{condition("Ready", "False", ""), condition("Stalled", "True", "")}
			return k.Status().Update(t.Context(), c)
		}, 1},
		"it goes": {[]string{"c", "--for=deleted"}, func(k *clitest.Kube, c *rayv1.RayCluster) error { return k.Delete(t.Context(), c) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster(condition("Ready", "False", ""))
			k := clitest.New(c)
			// It changes as soon as the command watches, which may be before or after the command looks: it must see it either way.
			watches, changed := make(chan struct{}), make(chan error, 1)
			var once sync.Once
			watched := interceptor.NewClient(k.WithWatch, interceptor.Funcs{
				Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
					w, err := c.Watch(ctx, list, options...)
					once.Do(func() { close(watches) })
					return w, err
				},
			})
			k.Env.Client = func() (client.WithWatch, error) { return watched, nil }
			go func() {
				<-watches
				if err := k.Get(t.Context(), client.ObjectKeyFromObject(c), c); err != nil {
					changed <- err
					return
				}
				changed <- tc.change(k, c)
			}()
			code := k.Run(t, New, tc.args...)
			if err := <-changed; err != nil {
				t.Fatal(err)
			}
			if code != tc.code {
				t.Errorf("exit code %d, want %d: %s", code, tc.code, k.ErrOut)
			}
		})
	}
}

// TestNotBeingAbleToLookIsNotGone: a script that waits for a deletion must not go on because of a right that is missing.
func TestNotBeingAbleToLookIsNotGone(t *testing.T) {
	k := clitest.New()
	refusing := interceptor.NewClient(k.WithWatch, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return apierrors.NewForbidden(schema.GroupResource{Group: "ray.io", Resource: "rayclusters"}, "c", nil)
		},
	})
	k.Env.Client = func() (client.WithWatch, error) { return refusing, nil }
	if code := k.Run(t, New, "c", "--for=deleted"); code != 2 || !strings.Contains(k.ErrOut.String(), "forbidden") {
		t.Errorf("exit code %d, want 2: %s", code, k.ErrOut)
	}
}
