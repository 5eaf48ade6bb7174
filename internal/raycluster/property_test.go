package raycluster

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
)

// leastSteps is how many steps of random histories must have been checked.
const leastSteps = 20_000

// TestAnyHistoryConverges lets users, nodes, the API server and crashes do what they like to a RayCluster, and checks
// after each pass that nothing was done that should not be, and after each history that all is as wanted and silent.
func TestAnyHistoryConverges(t *testing.T) {
	// The same histories in every run; -rapid.seed and -rapid.checks ask for others.
	for name, value := range map[string]string{"rapid.checks": "1000", "rapid.seed": "1", "rapid.nofailfile": "true"} {
		if asked := flag.Lookup(name); asked.Value.String() != asked.DefValue {
			continue
		}
		if err := flag.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	var steps atomic.Int64
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t)
		count := func(step func(*rapid.T)) func(*rapid.T) {
			return func(t *rapid.T) { steps.Add(1); step(t) }
		}
		commands := map[string]func(*rapid.T){}
		for name, command := range h.commands() {
			commands[name] = count(command)
		}
		t.Repeat(commands)
		h.settle(t)
	})
	if !t.Failed() && steps.Load() < leastSteps {
		t.Errorf("%d steps were checked, want at least %d", steps.Load(), leastSteps)
	}
}

// history is the model of an API server with one RayCluster, and of what the operator remembers.
type history struct {
	*world
	now   time.Time
	hosts int32
	// names are all names that Pods ever had.
	names map[string]bool
	// streaks and specs are memory of the operator, which a crash empties. Holds are, too.
	streaks *Streaks
	specs   *Specs
	images  int
	strange int
	// late are creates whose answer was lost and which the API server stores at some later time.
	late       []action.Action
	generation int64
}

func newHistory(t *rapid.T) *history {
	hostCount := rapid.Int32Range(1, 3).Draw(t, "numOfHosts")
	h := &history{world: demo(hosts(hostCount, 2)), now: planNow, hosts: hostCount, names: map[string]bool{}}
	h.forget()
	return h
}

// forget is what a crash does.
func (h *history) forget() {
	h.streaks, h.specs, h.Holds = NewStreaks(), NewSpecs(DefaultSettings()), map[string]action.Hold{}
}

func (h *history) edit(change func(*rayv1.RayClusterSpec)) {
	h.Cluster = h.Cluster.DeepCopy()
	h.generation++
	h.Cluster.Generation = h.generation
	change(&h.Cluster.Spec)
}

func (h *history) commands() map[string]func(*rapid.T) {
	group := func(spec *rayv1.RayClusterSpec) *rayv1.WorkerGroupSpec { return &spec.WorkerGroupSpecs[0] }
	return map[string]func(*rapid.T){
		"scale": func(t *rapid.T) {
			n := rapid.Int32Range(0, 5).Draw(t, "replicas")
			h.edit(func(spec *rayv1.RayClusterSpec) { group(spec).Replicas = &n })
		},
		"limit": func(t *rapid.T) {
			n := rapid.Int32Range(0, 5).Draw(t, "maxReplicas")
			h.edit(func(spec *rayv1.RayClusterSpec) { group(spec).MaxReplicas = &n })
		},
		"suspend": func(t *rapid.T) {
			suspend := rapid.SampledFrom([]*bool{nil, ptr.To(false), ptr.To(true)}).Draw(t, "suspend")
			h.edit(func(spec *rayv1.RayClusterSpec) { spec.Suspend = suspend })
		},
		"suspend group": func(t *rapid.T) {
			suspend := rapid.Bool().Draw(t, "suspend")
			h.edit(func(spec *rayv1.RayClusterSpec) { group(spec).Suspend = &suspend })
		},
		"upgrade": func(t *rapid.T) {
			h.images++
			image, strategy := fmt.Sprint("img:", h.images), rapid.SampledFrom([]rayv1.RayClusterUpgradeType{
				rayv1.RayClusterRecreate, rayv1.RayClusterUpgradeNone}).Draw(t, "strategy")
			ofHead := rapid.Bool().Draw(t, "of the head")
			h.edit(func(spec *rayv1.RayClusterSpec) {
				spec.UpgradeStrategy = &rayv1.RayClusterUpgradeStrategy{Type: &strategy}
				group(spec).Template.Spec.Containers[0].Image = image
				if ofHead {
					spec.HeadGroupSpec.Template.Spec.Containers[0].Image = image
				}
			})
		},
		"add or remove a group": func(*rapid.T) {
			h.edit(func(spec *rayv1.RayClusterSpec) {
				if len(spec.WorkerGroupSpecs) > 1 {
					spec.WorkerGroupSpecs = spec.WorkerGroupSpecs[:1]
					return
				}
				more := *group(spec).DeepCopy()
				more.GroupName, more.Suspend = "b", nil
				spec.WorkerGroupSpecs = append(spec.WorkerGroupSpecs, more)
			})
		},
		"change numOfHosts": func(t *rapid.T) {
			n := rapid.Int32Range(1, 3).Draw(t, "numOfHosts")
			h.edit(func(spec *rayv1.RayClusterSpec) { group(spec).NumOfHosts = n })
		},
		"someone makes a second head": func(t *rapid.T) {
			pod := h.anyPod(t).DeepCopy()
			if groupOf(pod) == rayv1.HeadGroupName && pod.DeletionTimestamp == nil {
				h.strange++
				pod.Name = fmt.Sprint("strange-", h.strange)
				pod.UID = types.UID(pod.Name)
				h.Pods = append(h.Pods, pod)
			}
		},
		"a worker loses its indices": func(t *rapid.T) {
			pod := h.anyPod(t)
			delete(pod.Labels, rayv1.LabelWorkerGroupReplicaIndex)
			delete(pod.Labels, rayv1.LabelReplicaHostIndex)
		},
		"autoscale": func(t *rapid.T) {
			on := rapid.Bool().Draw(t, "autoscaler")
			h.edit(func(spec *rayv1.RayClusterSpec) { spec.EnableInTreeAutoscaling = &on })
		},
		"name a victim": func(t *rapid.T) {
			pod := h.anyPod(t)
			h.edit(func(spec *rayv1.RayClusterSpec) { group(spec).ScaleStrategy.WorkersToDelete = []string{pod.Name} })
		},
		"break or mend the spec": func(*rapid.T) {
			h.edit(func(spec *rayv1.RayClusterSpec) {
				if group(spec).MinReplicas == nil {
					group(spec).MinReplicas = ptr.To[int32](0)
					return
				}
				group(spec).MinReplicas, spec.EnableInTreeAutoscaling = nil, nil
			})
		},
		"a Pod becomes ready": func(t *rapid.T) {
			if pod := h.anyPod(t); pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodPending {
				h.makeReady(pod)
			}
		},
		"a Pod fails": func(t *rapid.T) { h.anyPod(t).Status.Phase = corev1.PodFailed },
		"a Pod is deleted": func(t *rapid.T) {
			if pod := h.anyPod(t); pod.DeletionTimestamp == nil {
				pod.DeletionTimestamp = ptr.To(metav1.NewTime(h.now))
			}
		},
		"a terminating Pod goes": func(t *rapid.T) {
			if pod := h.anyPod(t); pod.DeletionTimestamp != nil {
				h.Pods = slices.DeleteFunc(h.Pods, func(other *corev1.Pod) bool { return other == pod })
			}
		},
		"time passes": func(t *rapid.T) {
			h.now = h.now.Add(time.Duration(rapid.IntRange(1, 120).Draw(t, "seconds")) * time.Second)
		},
		"late creates arrive":  h.arrive,
		"the operator crashes": func(*rapid.T) { h.forget() },
		"a pass":               func(t *rapid.T) { h.step(t, false) },
		"a pass that is cut off": func(t *rapid.T) {
			h.step(t, true)
			h.forget()
		},
	}
}

func (h *history) anyPod(t *rapid.T) *corev1.Pod {
	if len(h.Pods) == 0 {
		return &corev1.Pod{}
	}
	return h.Pods[rapid.IntRange(0, len(h.Pods)-1).Draw(t, "Pod")]
}

// step is one pass. Its creates may be refused, or their answers be lost; a pass that is cut off does only a part.
func (h *history) step(t *rapid.T, cutOff bool) {
	h.LastValid = cmp.Or(h.specs.Note(h.Cluster), h.storedSpec())
	h.Streaks = h.streaks.Note(h.Cluster, h.Pods, h.now)
	plan := Plan(h.Snapshot, h.settings, h.now)
	h.checkDeletes(t, plan)
	h.checkHead(t, plan)
	if plan.Status != nil {
		h.Cluster = plan.Status.Object.(*rayv1.RayCluster)
	}
	actions := plan.Actions
	if cutOff && len(actions) > 0 {
		actions = actions[:rapid.IntRange(0, len(actions)-1).Draw(t, "actions done")]
	}
	failed := map[string]bool{}
	for _, a := range actions {
		create, ok := a.(action.Create)
		outcome := "done"
		if ok {
			outcome = rapid.SampledFrom([]string{"done", "done", "done", "refused", "answer lost", "late"}).Draw(t, "outcome")
		}
		switch outcome {
		case "refused":
		case "late":
			h.late = append(h.late, a)
		default:
			h.perform(t, a)
		}
		if outcome != "done" {
			failed[create.Group] = true
		}
	}
	h.hold(actions, failed)
	h.checkCounts(t, actions)
}

// hold remembers failed creates as action.Holds does.
func (h *history) hold(actions []action.Action, failed map[string]bool) {
	maps.DeleteFunc(h.Holds, func(group string, hold action.Hold) bool {
		tried := slices.ContainsFunc(actions, func(a action.Action) bool { return a.Key() == group })
		return !failed[group] && (tried || !h.now.Before(hold.Until))
	})
	for group := range failed {
		h.Holds[group] = action.Hold{Reason: "FailedToCreateWorkerPod", Until: h.now.Add(time.Second)}
	}
}

// arrive is when the API server stores what it was sent before.
func (h *history) arrive(t *rapid.T) {
	for _, a := range h.late {
		h.perform(t, a)
	}
	h.late = nil
}

func (h *history) perform(t *rapid.T, a action.Action) {
	if create, ok := a.(action.Create); ok {
		name := create.Object.GetName()
		if _, isPod := create.Object.(*corev1.Pod); isPod && h.names[name] {
			t.Fatalf("the name %s is used a second time", name)
		}
		h.names[name] = true
	}
	h.do([]action.Action{a}, h.now)
}

// settle ends all faults: Pods become ready, those that terminate go, writes succeed.
func (h *history) settle(t *rapid.T) {
	autoscaled := rapid.Bool().Draw(t, "autoscaler in the end")
	h.edit(func(spec *rayv1.RayClusterSpec) {
		for i := range spec.WorkerGroupSpecs {
			group := &spec.WorkerGroupSpecs[i]
			group.MinReplicas, group.ScaleStrategy.WorkersToDelete = ptr.To[int32](0), nil
			if autoscaled {
				group.Suspend = nil
			}
		}
		spec.EnableInTreeAutoscaling = &autoscaled
	})
	h.Holds = map[string]action.Hold{}
	h.arrive(t)
	h.nodes()
	for range 60 {
		h.now = h.now.Add(10 * time.Minute)
		h.LastValid = cmp.Or(h.specs.Note(h.Cluster), h.storedSpec())
		h.Streaks = h.streaks.Note(h.Cluster, h.Pods, h.now)
		plan := Plan(h.Snapshot, h.settings, h.now)
		if plan.Status == nil && len(plan.Actions) == 0 {
			h.checkEnd(t)
			return
		}
		h.checkDeletes(t, plan)
		h.checkHead(t, plan)
		if plan.Status != nil {
			h.Cluster = plan.Status.Object.(*rayv1.RayCluster)
		}
		for _, a := range plan.Actions {
			h.perform(t, a)
		}
		h.checkCounts(t, plan.Actions)
		h.nodes()
	}
	t.Fatalf("the cluster does not come to rest")
}

// nodes do what they should: what terminates goes, and what can run is ready.
func (h *history) nodes() {
	h.gone()
	for _, pod := range h.Pods {
		if !beyondRepair(pod) {
			h.makeReady(pod)
		}
	}
}
