package raycluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
)

const guard = "finalizers [" + rayv1.FinalizerGCSFTRedisCleanup + "]"

// inRedisAt is a cluster that keeps its state in Redis.
func inRedisAt(address string) func(*world) {
	return func(w *world) { redisAt(address)(w.Cluster) }
}

// withRedis is a running cluster that keeps its state in Redis.
func withRedis(edits ...func(*world)) *world {
	w := demo(append([]func(*world){inRedisAt("r:6379")}, edits...)...)
	for range 3 {
		w.pass(planNow)
	}
	w.makeReady(w.Pods...)
	w.pass(planNow)
	return w
}

// deletedAt lets a user delete the cluster.
func (w *world) deletedAt(when time.Time) {
	w.Cluster = w.Cluster.DeepCopy()
	w.Cluster.DeletionTimestamp = ptr.To(metav1.NewTime(when))
}

// withoutPods is what is left when all Pods have gone.
func (w *world) withoutPods() { w.Pods = nil }

// job is the Job that empties Redis.
func (w *world) job() *batchv1.Job {
	job, _ := w.standing(kindJob, "demo-redis-cleanup").(*batchv1.Job)
	return job
}

func (w *world) jobIs(kind batchv1.JobConditionType) {
	w.job().Status.Conditions = []batchv1.JobCondition{{Type: kind, Status: corev1.ConditionTrue}}
}

func TestTheFinalizerComesBeforeTheHead(t *testing.T) {
	for name, tc := range map[string]struct {
		given *world
		want  [][]string // of each pass
	}{
		"Redis by the options (CL-071)": {given: demo(inRedisAt("r:6379")),
			want: [][]string{{"apply demo-head-svc", "create a/0", "create a/1"}, {guard}, {"create head"}}},
		"Redis by the annotation (CL-078)": {
			given: demo(func(w *world) {
				annotations(rayv1.AnnotationFTEnabled, "true")(w.Cluster)
				headEnv(envRedisAddress, "r:6379")(w.Cluster)
			}),
			want: [][]string{{"apply demo-head-svc", "create a/0", "create a/1"}, {guard}, {"create head"}}},
		"Redis, with the clean-up switched off": {given: demo(inRedisAt("r:6379"), func(w *world) { w.settings.RedisCleanup = false }),
			want: [][]string{{"apply demo-head-svc", "create a/0", "create a/1"}, {"create head"}}},
		"Redis that is to be kept": {given: demo(inRedisAt("r:6379"), func(w *world) { annotations(rayv1.AnnotationRedisStorage, "Retain")(w.Cluster) }),
			want: [][]string{{"apply demo-head-svc", "create a/0", "create a/1"}, {"create head"}}},
		"Redis inside of the head's Pod": {given: demo(inRedisAt("127.0.0.1:6380")),
			want: [][]string{{"apply demo-head-svc", "create a/0", "create a/1"}, {"create head"}}},
		"no Redis": {given: demo(), want: [][]string{{"apply demo-head-svc", "create head", "create a/0", "create a/1"}, nil}},
		"a finalizer of an earlier operator, and no Redis": {
			given: demo(func(w *world) { w.Cluster.Finalizers = []string{"mine/x", rayv1.FinalizerGCSFTRedisCleanup} }),
			want:  [][]string{{"apply demo-head-svc", "create head", "create a/0", "create a/1"}, {"finalizers [mine/x]"}}},
	} {
		t.Run(name, func(t *testing.T) {
			var got [][]string
			for range tc.want {
				plan := Plan(tc.given.Snapshot, tc.given.settings, planNow)
				if again := guarded(tc.given.Cluster) != (len(toEmpty(tc.given.Cluster, tc.given.settings)) > 0); again && plan.LookAgain == 0 {
					t.Error("nobody looks again, and neither a status nor a finalizer wakes anybody")
				}
				got = append(got, tc.given.pass(planNow))
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("passes (-want +got):\n%s", d)
			}
		})
	}
}

func TestPlanOfADeletion(t *testing.T) {
	later := planNow.Add(time.Minute)
	deletedNow := func(w *world) { w.deletedAt(later) }
	ready := func(w *world) {
		w.deletedAt(later)
		w.withoutPods()
		w.pass(later)
	}
	for name, tc := range map[string]struct {
		given   *world
		when    func(*world)
		after   time.Duration // since the deletion
		want    []string
		reasons []string // of events
		note    string   // what the event says
	}{
		"the Pods go first": {given: withRedis(), when: deletedNow, want: []string{"delete a/0", "delete a/1", "delete head"}},
		"a head that is terminating is waited for": {given: withRedis(), when: func(w *world) {
			w.deletedAt(later)
			w.pass(later)
		}},
		"when the head is gone Redis is emptied, although a worker is still there (CL-072)": {given: withRedis(), when: func(w *world) {
			w.deletedAt(later)
			w.pass(later)
			w.Pods = slices.DeleteFunc(w.Pods, func(pod *corev1.Pod) bool { return slotName(pod) == "head" })
		}, want: []string{"create demo-redis-cleanup"}},
		"a Job that runs is waited for": {given: withRedis(), when: ready},
		"when it is done the cluster may go": {given: withRedis(), when: func(w *world) { ready(w); w.jobIs(batchv1.JobComplete) },
			want: []string{"finalizers []"}},
		"a failed Job is told (CL-075)": {given: withRedis(), when: func(w *world) { ready(w); w.jobIs(batchv1.JobFailed) },
			want: []string{"finalizers []"}, reasons: []string{"RedisCleanupFailed"}, note: "storage namespace u-1 at Redis r:6379"},
		"a Job that never ends is not waited for longer than the limit (CL-073)": {given: withRedis(), when: ready, after: 5 * time.Minute,
			want: []string{"finalizers []"}, reasons: []string{"ForceDeletedStuckCluster"}, note: "Job demo-redis-cleanup has not ended; what may remain: storage namespace u-1"},
		"nor longer than the user allows": {given: withRedis(func(w *world) { annotations(rayv1.AnnotationGCSFTDeletionTimeout, "1")(w.Cluster) }), when: ready,
			after: time.Second, want: []string{"finalizers []"}, reasons: []string{"ForceDeletedStuckCluster"}, note: "u-1"},
		"the limit covers a head that is stuck (CL-074)": {given: withRedis(), when: deletedNow, after: 5 * time.Minute,
			want: []string{"finalizers []"}, reasons: []string{"ForceDeletedStuckCluster"}, note: "the head Pod is still there"},
		"a limit that makes no sense counts as none": {
			given: withRedis(func(w *world) { annotations(rayv1.AnnotationGCSFTDeletionTimeout, "-3")(w.Cluster) }), when: ready, after: 4 * time.Minute},
		"fault tolerance was taken back before (CL-076)": {given: withRedis(), when: func(w *world) {
			w.Cluster.Spec.GcsFaultToleranceOptions = nil
			w.pass(later)
			w.deletedAt(later)
			w.withoutPods()
		}, want: []string{"create demo-redis-cleanup"}},
		"the spec makes no sense any more (CL-077)": {given: withRedis(), when: func(w *world) {
			w.Cluster.Spec.WorkerGroupSpecs[0].MinReplicas = ptr.To[int32](9)
			w.deletedAt(later)
			w.withoutPods()
		}, want: []string{"create demo-redis-cleanup"}},
		"the clean-up was switched off meanwhile": {given: withRedis(), when: func(w *world) { w.settings.RedisCleanup = false; w.deletedAt(later) },
			want: []string{"finalizers []"}},
		"the keys are to be kept": {given: withRedis(), when: func(w *world) {
			annotations(rayv1.AnnotationRedisStorage, rayv1.RedisStorageRetain)(w.Cluster)
			w.deletedAt(later)
		}, want: []string{"finalizers []"}},
		"the namespace goes": {given: withRedis(), when: func(w *world) {
			w.deletedAt(later)
			w.withoutPods()
			w.Holds = map[string]action.Hold{"Job/demo-redis-cleanup": {NamespaceEnds: true, Until: later.Add(time.Second)}}
		}, want: []string{"finalizers []"}, reasons: []string{"RedisCleanupFailed"}, note: "the namespace is being deleted"},
		"the Job is refused": {given: withRedis(), when: func(w *world) {
			w.deletedAt(later)
			w.withoutPods()
			w.Holds = map[string]action.Hold{"Job/demo-redis-cleanup": {Message: "exceeded quota", Until: later.Add(time.Second)}}
		}},
		"the Job is refused for too long": {given: withRedis(), when: func(w *world) {
			w.deletedAt(later)
			w.withoutPods()
			w.Holds = map[string]action.Hold{"Job/demo-redis-cleanup": {Message: "exceeded quota", Until: later.Add(time.Hour)}}
		}, after: 5 * time.Minute, want: []string{"finalizers []"}, reasons: []string{"ForceDeletedStuckCluster"}, note: "exceeded quota"},
		"a Job of someone else has the name": {given: withRedis(), when: func(w *world) {
			w.deletedAt(later)
			w.withoutPods()
			w.Named[objectKey(kindJob, "demo-redis-cleanup")] = &batchv1.Job{TypeMeta: metav1.TypeMeta{Kind: kindJob}, ObjectMeta: metav1.ObjectMeta{Name: "demo-redis-cleanup"},
				Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}}}
		}, after: 5 * time.Minute, want: []string{"finalizers []"}, reasons: []string{"ForceDeletedStuckCluster"}, note: "belongs to someone else"},
		"another controller's finalizer stays": {given: withRedis(func(w *world) { w.Cluster.Finalizers = []string{"mine/x"} }),
			when: func(w *world) { ready(w); w.jobIs(batchv1.JobComplete) }, want: []string{"finalizers [mine/x]"}},
		"a cluster without the finalizer needs nothing": {given: demo(), when: deletedNow},
	} {
		t.Run(name, func(t *testing.T) {
			tc.when(tc.given)
			now := later.Add(tc.after)
			plan := Plan(tc.given.Snapshot, tc.given.settings, now)
			var reasons []string
			for _, event := range plan.Events {
				reasons = append(reasons, event.Reason)
				if !strings.Contains(event.Note, tc.note) {
					t.Errorf("the event says %q, want %q in it", event.Note, tc.note)
				}
			}
			if d := cmp.Diff(tc.reasons, reasons); d != "" {
				t.Errorf("events (-want +got):\n%s", d)
			}
			if guarded(tc.given.Cluster) && !slices.ContainsFunc(plan.Actions, isRelease) && plan.LookAgain == 0 {
				t.Error("nobody looks again when the limit is over")
			}
			for key, hold := range tc.given.Holds {
				if left := hold.Until.Sub(now); tc.want == nil && plan.LookAgain > left {
					t.Errorf("the next look is in %s, and %s may be tried again in %s", plan.LookAgain, key, left)
				}
			}
			if d := cmp.Diff(tc.want, tc.given.pass(now)); d != "" {
				t.Errorf("actions (-want +got):\n%s", d)
			}
		})
	}
}

func isRelease(a action.Action) bool { _, is := a.(action.Finalizers); return is }

func TestAForegroundDeletionDoesNotTakeTheCleanUpWithIt(t *testing.T) {
	w := withRedis()
	w.Cluster.Finalizers = append(w.Cluster.Finalizers, metav1.FinalizerDeleteDependents)
	w.deletedAt(planNow)
	w.withoutPods()
	w.pass(planNow)
	job := w.job()
	if job == nil || metav1.GetControllerOf(job) != nil {
		t.Fatalf("the Job is %+v, want one without an owner", job)
	}
	if ptr.Deref(job.Spec.TTLSecondsAfterFinished, 0) == 0 {
		t.Error("nothing takes the Job away")
	}
	w.Owned = nil
	w.Named = map[string]client.Object{objectKey(kindJob, job.Name): job}
	job.CreationTimestamp = metav1.NewTime(planNow.Add(-time.Minute))
	if got := w.pass(planNow); got != nil {
		t.Errorf("for a Job of an earlier cluster of this name %v is done", got)
	}
	job.CreationTimestamp = metav1.NewTime(planNow.Add(time.Second))
	w.jobIs(batchv1.JobComplete)
	if d := cmp.Diff([]string{fmt.Sprintf("finalizers [%s]", metav1.FinalizerDeleteDependents)}, w.pass(planNow)); d != "" {
		t.Errorf("after its end (-want +got):\n%s", d)
	}
}

// TestADeletionAlwaysEnds draws what can stand in the way of a deletion: after the limit the cluster may go.
func TestADeletionAlwaysEnds(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := withRedis()
		w.deletedAt(planNow)
		if rapid.Bool().Draw(r, "no Pods") {
			w.withoutPods()
		}
		for range rapid.IntRange(0, 3).Draw(r, "passes") {
			w.pass(planNow)
		}
		if job := w.job(); job != nil {
			switch rapid.IntRange(0, 3).Draw(r, "job") {
			case 1:
				w.jobIs(batchv1.JobSuspended)
			case 2:
				job.OwnerReferences = nil
			case 3:
				w.Owned = nil
			}
		}
		if rapid.Bool().Draw(r, "refused") {
			w.Holds = map[string]action.Hold{"Job/demo-redis-cleanup": {Until: planNow.Add(time.Hour), Collision: rapid.Bool().Draw(r, "collides")}}
		}
		if rapid.Bool().Draw(r, "no options") {
			w.Cluster.Spec.GcsFaultToleranceOptions = nil
		}
		w.pass(planNow.Add(deletionTimeout))
		if guarded(w.Cluster) {
			r.Error("the cluster is still kept after the limit")
		}
	})
}
