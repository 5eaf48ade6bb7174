package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/leadership"
	"github.com/heliostat-io/heliostat/internal/operator"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
	"github.com/heliostat-io/heliostat/internal/ray/poll"
	"github.com/heliostat-io/heliostat/internal/raycluster"
	"github.com/heliostat-io/heliostat/internal/rayjob"
)

// errKilled is what a killed operator gets instead of a write.
var errKilled = errors.New("the operator was killed before this write")

// world is the model: what the API server stores, and what kubelet, Job controller and Ray know.
type world struct {
	t       *testing.T
	api     client.Client
	clock   *clocktesting.FakePassiveClock
	written int
	// created counts the creates of each object by kind and name; a second one under the same name is an offence.
	created map[string]int
	uids    int
	// jobs are what Ray knows, by submission id.
	jobs map[string]*dashboard.JobDetails
	// submitted counts the submissions under each id.
	submitted map[string]int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	scheme, err := operator.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, clock: clocktesting.NewFakePassiveClock(time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)),
		created: map[string]int{}, jobs: map[string]*dashboard.JobDetails{}, submitted: map[string]int{}}
	builder := fake.NewClientBuilder().WithScheme(scheme)
	for _, owned := range append(raycluster.OwnedObjects(raycluster.DefaultSettings()), &corev1.Pod{}) {
		builder = builder.WithIndex(owned, raycluster.OwnerUIDIndex, raycluster.IndexOwnerUID)
	}
	w.api = builder.
		WithStatusSubresource(&rayv1.RayCluster{}, &rayv1.RayJob{}, &batchv1.Job{}, &corev1.Pod{}).
		WithIndex(&corev1.Event{}, raycluster.EventPodIndex, raycluster.IndexEventPod).
		WithInterceptorFuncs(interceptor.Funcs{Create: w.create}).
		Build()
	return w
}

// create gives each object the UID and the creation time that a real API server would.
func (w *world) create(ctx context.Context, api client.WithWatch, object client.Object, options ...client.CreateOption) error {
	w.uids++
	object.SetUID(types.UID(fmt.Sprintf("uid-%d", w.uids)))
	object.SetCreationTimestamp(metav1.NewTime(w.clock.Now()))
	if err := api.Create(ctx, object, options...); err != nil {
		return err
	}
	w.created[fmt.Sprintf("%T %s", object, object.GetName())]++
	return nil
}

// killer is the gate of an operator that dies before a certain write.
type killer struct {
	world *world
	at    int
}

func (k killer) Current() (leadership.Term, bool) { return leadership.Term{}, true }

func (k killer) Enter(ctx context.Context) (context.Context, func(), error) {
	if k.at >= 0 && k.world.written >= k.at {
		return nil, nil, errKilled
	}
	k.world.written++
	return ctx, func() {}, nil
}

// process is one life of the operator: what it holds in memory dies with it.
type process struct {
	clusters *raycluster.Reconciler
	jobs     *rayjob.Reconciler
}

func (w *world) start(killAt int) process {
	gate := killer{world: w, at: killAt}
	executor := &action.Executor{Client: w.api, Live: w.api, Gate: gate, Events: events.NewFakeRecorder(10_000), Parallel: 1,
		Ray: action.NewRay(action.RayOptions{Gate: gate, Clock: w.clock})}
	return process{
		clusters: &raycluster.Reconciler{Reader: w.api, Executor: executor, Gate: gate, Holds: action.NewHolds(), Streaks: raycluster.NewStreaks(), Specs: raycluster.NewSpecs(),
			Settings: raycluster.DefaultSettings(), Clock: w.clock},
		jobs: &rayjob.Reconciler{Reader: w.api, Executor: executor, Gate: gate, Holds: action.NewHolds(), Poller: asker{w},
			Settings: rayjob.Settings{ClusterDomain: "cluster.local", StatusCheckTimeout: time.Hour}, Clock: w.clock},
	}
}

// asker answers what the poller would have learnt.
type asker struct{ world *world }

func (asker) Track(poll.Target) {}
func (asker) Forget(poll.Key)   {}

func (a asker) Observation(key poll.Key) (poll.Observation, bool) {
	job := &rayv1.RayJob{}
	if err := a.world.api.Get(context.Background(), key.NamespacedName, job); err != nil {
		return poll.Observation{}, false
	}
	observation := poll.Observation{Target: poll.Target{OwnerUID: job.UID, SubmissionID: job.Status.JobId},
		Answered: a.world.clock.Now(), JobFound: poll.Missing}
	if details := a.world.jobs[job.Status.JobId]; details != nil {
		observation.JobFound, observation.Job = poll.Found, details
	}
	return observation, true
}

// pass lets the process look at every object once. A killed process stops where it is.
func (w *world) pass(p process) {
	ctx := context.Background()
	jobs, clusters := &rayv1.RayJobList{}, &rayv1.RayClusterList{}
	w.must(w.api.List(ctx, jobs))
	w.must(w.api.List(ctx, clusters))
	for i := range jobs.Items {
		_, err := p.jobs.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&jobs.Items[i])})
		w.mustUnlessKilled(err)
	}
	for i := range clusters.Items {
		_, err := p.clusters.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&clusters.Items[i])})
		w.mustUnlessKilled(err)
	}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) mustUnlessKilled(err error) {
	w.t.Helper()
	if !errors.Is(err, errKilled) {
		w.must(err)
	}
}

// turn lets the rest of the world move on: Pods become ready, Jobs run, Ray works, garbage is collected.
func (w *world) turn() {
	w.clock.SetTime(w.clock.Now().Add(2 * time.Second))
	w.collectGarbage()
	w.runPods()
	w.runSubmitters()
	w.runRay()
}

func (w *world) runPods() {
	for _, pod := range w.pods() {
		if pod.Status.Phase == corev1.PodRunning || pod.DeletionTimestamp != nil {
			continue
		}
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1",
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
		w.must(w.api.Status().Update(context.Background(), &pod))
	}
}

// runSubmitters has each submitter Job submit once, as its script would.
func (w *world) runSubmitters() {
	submitters := &batchv1.JobList{}
	w.must(w.api.List(context.Background(), submitters))
	for _, submitter := range submitters.Items {
		if len(submitter.Status.Conditions) > 0 {
			continue
		}
		id := ""
		for _, env := range submitter.Spec.Template.Spec.Containers[0].Env {
			if env.Name == "RAY_JOB_SUBMISSION_ID" {
				id = env.Value
			}
		}
		if w.jobs[id] == nil {
			w.submitted[id]++
			w.jobs[id] = &dashboard.JobDetails{SubmissionID: id, Status: dashboard.JobPending, StartTime: w.clock.Now()}
			continue
		}
		if w.jobs[id].Status.Terminal() {
			submitter.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(w.clock.Now())}}
			w.must(w.api.Status().Update(context.Background(), &submitter))
		}
	}
}

func (w *world) runRay() {
	for _, job := range w.jobs {
		switch job.Status {
		case dashboard.JobPending:
			job.Status = dashboard.JobRunning
		case dashboard.JobRunning:
			job.Status, job.EndTime = dashboard.JobSucceeded, w.clock.Now()
		}
	}
}

// collectGarbage deletes what belongs to an owner that is gone.
func (w *world) collectGarbage() {
	ctx := context.Background()
	alive := map[types.UID]bool{}
	lists := []client.ObjectList{&rayv1.RayJobList{}, &rayv1.RayClusterList{}, &corev1.PodList{}, &corev1.ServiceList{}, &batchv1.JobList{}}
	var all []client.Object
	for _, list := range lists {
		w.must(w.api.List(ctx, list))
		w.must(meta.EachListItem(list, func(item runtime.Object) error {
			object := item.(client.Object)
			alive[object.GetUID()] = true
			all = append(all, object)
			return nil
		}))
	}
	for _, object := range all {
		owner := metav1.GetControllerOf(object)
		if owner != nil && !alive[owner.UID] {
			w.must(client.IgnoreNotFound(w.api.Delete(ctx, object)))
		}
	}
}

func (w *world) pods() []corev1.Pod {
	pods := &corev1.PodList{}
	w.must(w.api.List(context.Background(), pods))
	return pods.Items
}

// roles counts the Pods of each role: "head" and each worker group.
func (w *world) roles() map[string]int {
	roles := map[string]int{}
	for _, pod := range w.pods() {
		if pod.DeletionTimestamp == nil {
			roles[pod.Labels[rayv1.LabelGroup]]++
		}
	}
	return roles
}

// createdTwice names what was created more than once under the same name.
func (w *world) createdTwice() []string {
	return slices.Sorted(maps.Keys(maps.Collect(func(yield func(string, int) bool) {
		for name, count := range w.created {
			if count > 1 && !yield(name, count) {
				return
			}
		}
	})))
}
