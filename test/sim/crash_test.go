package sim

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// rounds is how many turns of the world a scenario may take to settle.
const rounds = 60

// quietTurns is how many turns without a write count as settled: the model's Ray and Jobs need a few to move on.
const quietTurns = 6

// scenario is something that a user does, and how the world must be in the end.
type scenario struct {
	// begin puts the first objects there.
	begin func(w *world)
	// changes are made one after another, each after the world has settled.
	changes []func(w *world)
	// check looks at the end.
	check func(t *testing.T, w *world)
}

func scenarios() map[string]scenario {
	return map[string]scenario{
		"a cluster is made, grows, loses Pods, shrinks": {
			begin: func(w *world) { w.must(w.api.Create(context.Background(), demoCluster())) },
			changes: []func(*world){
				func(w *world) { w.scale(4) },
				func(w *world) { w.losePods("headgroup") },
				func(w *world) { w.losePods("a") },
				func(w *world) { w.scale(1) },
			},
			check: func(t *testing.T, w *world) {
				if diff := cmp.Diff(map[string]int{"headgroup": 1, "a": 1}, w.roles()); diff != "" {
					t.Errorf("Pods (-want +got):\n%s", diff)
				}
				cluster := w.cluster()
				if cluster.Status.State != rayv1.ClusterStateReady || cluster.Status.ObservedGeneration != cluster.Generation {
					t.Errorf("state %q at generation %d of %d", cluster.Status.State, cluster.Status.ObservedGeneration, cluster.Generation)
				}
			},
		},
		"a cluster is suspended and resumed": {
			begin: func(w *world) { w.must(w.api.Create(context.Background(), demoCluster())) },
			changes: []func(*world){
				func(w *world) { w.edit(func(c *rayv1.RayCluster) { c.Spec.Suspend = ptr.To(true) }) },
				func(w *world) { w.edit(func(c *rayv1.RayCluster) { c.Spec.Suspend = nil }) },
			},
			check: func(t *testing.T, w *world) {
				if diff := cmp.Diff(map[string]int{"headgroup": 1, "a": 2}, w.roles()); diff != "" {
					t.Errorf("Pods (-want +got):\n%s", diff)
				}
			},
		},
		"a job runs to its end and its cluster goes": {
			begin: func(w *world) { w.must(w.api.Create(context.Background(), demoJob())) },
			check: func(t *testing.T, w *world) {
				job := &rayv1.RayJob{}
				w.must(w.api.Get(context.Background(), types.NamespacedName{Namespace: "ns", Name: "train"}, job))
				if job.Status.JobDeploymentStatus != rayv1.JobDeploymentStatusComplete || job.Status.JobStatus != rayv1.JobStatusSucceeded {
					t.Errorf("the job ended as %s/%s: %s", job.Status.JobDeploymentStatus, job.Status.JobStatus, job.Status.Message)
				}
				if ptr.Deref(job.Status.Succeeded, 0) != 1 || ptr.Deref(job.Status.Failed, 0) != 0 {
					t.Errorf("succeeded %d, failed %d; want 1 and 0", ptr.Deref(job.Status.Succeeded, 0), ptr.Deref(job.Status.Failed, 0))
				}
				if len(w.submitted) != 1 || w.submitted[job.Status.JobId] != 1 {
					t.Errorf("submissions %v, want exactly one under %s", w.submitted, job.Status.JobId)
				}
				clusters := &rayv1.RayClusterList{}
				w.must(w.api.List(context.Background(), clusters))
				if len(clusters.Items) > 0 || len(w.pods()) > 0 {
					t.Errorf("%d clusters and %d Pods are left", len(clusters.Items), len(w.pods()))
				}
			},
		},
	}
}

// TestCrashBetweenAnyTwoWrites kills the operator before write k, for every k of a run without a fault, starts a new
// one with empty memory, and expects the same end, nothing made twice, and then silence.
func TestCrashBetweenAnyTwoWrites(t *testing.T) {
	for name, s := range scenarios() {
		t.Run(name, func(t *testing.T) {
			writes := run(t, s, -1)
			t.Logf("%d writes without a fault", writes)
			if writes < 5 {
				t.Fatalf("only %d writes: the scenario does not do what it says", writes)
			}
			for k := range writes {
				t.Run(fmt.Sprintf("killed before write %d", k), func(t *testing.T) { run(t, s, k) })
			}
		})
	}
}

// run plays a scenario, with the first operator killed before write killAt (never if negative), and returns how many
// writes were made.
func run(t *testing.T, s scenario, killAt int) int {
	w := newWorld(t)
	s.begin(w)
	p := w.start(killAt)
	settle := func() {
		quiet := 0
		for range rounds {
			before := w.written
			w.pass(p)
			if w.written == before {
				quiet++
			} else {
				quiet = 0
			}
			if quiet > quietTurns {
				return
			}
			if killAt >= 0 && w.written >= killAt {
				killAt = -1
				p = w.start(-1)
			}
			w.turn()
		}
		t.Errorf("the world did not settle within %d turns", rounds)
	}
	settle()
	for _, change := range s.changes {
		change(w)
		settle()
	}
	before := w.written
	w.pass(p)
	if w.written != before {
		t.Errorf("the world is settled, yet a further pass wrote %d times", w.written-before)
	}
	if twice := w.createdTwice(); len(twice) > 0 {
		t.Errorf("created more than once under one name: %v", twice)
	}
	s.check(t, w)
	return before
}

func template(name string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: name, Image: "img:1"}}}}
}

func demoSpec() rayv1.RayClusterSpec {
	return rayv1.RayClusterSpec{
		HeadGroupSpec: rayv1.HeadGroupSpec{Template: template("ray-head")},
		WorkerGroupSpecs: []rayv1.WorkerGroupSpec{{GroupName: "a", Replicas: ptr.To[int32](2), MinReplicas: ptr.To[int32](0),
			MaxReplicas: ptr.To[int32](8), NumOfHosts: 1, Template: template("ray-worker")}},
	}
}

func demoCluster() *rayv1.RayCluster {
	return &rayv1.RayCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo", Generation: 1}, Spec: demoSpec()}
}

func demoJob() *rayv1.RayJob {
	spec := demoSpec()
	return &rayv1.RayJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "train", Generation: 1},
		Spec: rayv1.RayJobSpec{Entrypoint: "python main.py", SubmissionMode: rayv1.K8sJobMode, RayClusterSpec: &spec, ShutdownAfterJobFinishes: true}}
}

func (w *world) cluster() *rayv1.RayCluster {
	cluster := &rayv1.RayCluster{}
	w.must(w.api.Get(context.Background(), types.NamespacedName{Namespace: "ns", Name: "demo"}, cluster))
	return cluster
}

func (w *world) edit(change func(*rayv1.RayCluster)) {
	cluster := w.cluster()
	change(cluster)
	cluster.Generation++
	w.must(w.api.Update(context.Background(), cluster))
}

func (w *world) scale(replicas int32) {
	w.edit(func(c *rayv1.RayCluster) { c.Spec.WorkerGroupSpecs[0].Replicas = &replicas })
}

// losePods makes all Pods of a group vanish without a trace, as when nodes are removed while nobody looks.
func (w *world) losePods(group string) {
	w.must(w.api.DeleteAllOf(context.Background(), &corev1.Pod{}, client.InNamespace("ns"), client.MatchingLabels{rayv1.LabelGroup: group}))
}
