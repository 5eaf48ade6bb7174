package sim

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/ray/census"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
	"github.com/heliostat-io/heliostat/internal/ray/poll"
	"github.com/heliostat-io/heliostat/test/sim/kube"
)

// counter asks a Ray about its nodes and actors, and hears at once. Each life of a head has one actor, which is on it.
type counter struct {
	process *process
	seen    map[poll.Key]*counted
}

type counted struct {
	target poll.Target
	ledger *census.Ledger
}

func newCounter(p *process) counter { return counter{p, map[poll.Key]*counted{}} }

func (c counter) Track(target poll.Target) {
	if seen := c.seen[target.Owner]; seen == nil || seen.target != target {
		c.seen[target.Owner] = &counted{target: target}
	}
}

func (c counter) Forget(owner poll.Key) { delete(c.seen, owner) }

// Want does nothing: everything is always asked for.
func (c counter) Want(poll.Key, poll.Want) {}

func (c counter) Observation(owner poll.Key) (poll.Observation, bool) {
	seen := c.seen[owner]
	if seen == nil {
		return poll.Observation{}, false
	}
	w := c.process.world
	head := w.headAt(seen.target.BaseURL)
	if head == nil || w.mono < w.raySilent {
		return poll.Observation{Ledger: seen.ledger, Err: errNoHead}, true
	}
	answer := &dashboard.Census{Actors: []dashboard.Actor{{ID: "of " + sessionOf(head), Node: nodeOn(head), State: dashboard.ActorAlive}}}
	for _, stored := range w.server.List("Pod") {
		pod := stored.(*corev1.Pod)
		if pod.Labels[rayv1.LabelCluster] == owner.Name && pod.Status.Phase == corev1.PodRunning && rayContainer(pod).State.Running != nil {
			answer.Nodes = append(answer.Nodes, dashboard.Node{ID: nodeOn(pod), IP: pod.Status.PodIP, State: "ALIVE"})
		}
	}
	seen.ledger = seen.ledger.After(answer, sessionOf(head), c.process.Now())
	return poll.Observation{Ledger: seen.ledger, Idle: true, SessionName: sessionOf(head)}, true
}

// nodeOn names the node of Ray in a Pod: it is another one after each start of the container.
func nodeOn(pod *corev1.Pod) string {
	return fmt.Sprintf("%s-%d", pod.UID, rayContainer(pod).RestartCount)
}

// observing tells whether it is still being found out what a loss took. That has an end by itself.
func (w *world) observing() bool {
	for _, stored := range w.server.List("RayCluster") {
		for i := range stored.(*rayv1.RayCluster).Status.Recoveries {
			if stored.(*rayv1.RayCluster).Status.Recoveries[i].State == rayv1.RecoveryObserving {
				return true
			}
		}
	}
	return false
}

// lossWatch is what must be told of losses.
type lossWatch struct {
	// known are the heads that ran when the world was settled, with how often Ray was started anew in them.
	known map[types.UID]int32
	// lost are those of them that were lost since, with the clusters that must tell of it.
	lost map[string]types.UID
}

func newLossWatch() lossWatch { return lossWatch{map[types.UID]int32{}, map[string]types.UID{}} }

// judgeLoss takes down which heads are lost: all that go, or start anew, and not because the operator has it so.
func (w *world) judgeLoss(write kube.Write) {
	before, isPod := write.Before.(*corev1.Pod)
	if !isPod || isOperator(write.Sender) || before.DeletionTimestamp != nil {
		return
	}
	restarts, known := w.watch.losses.known[before.UID]
	after, stays := write.After.(*corev1.Pod)
	stays = stays && after.DeletionTimestamp == nil && rayContainer(after).RestartCount <= restarts
	if owner := metav1.GetControllerOf(before); known && !stays && owner != nil {
		w.watch.losses.lost[before.Name] = owner.UID
		delete(w.watch.losses.known, before.UID)
	}
}

// judgeLossesAtEnd checks that the status of a cluster tells of each head that it has lost, whoever led meanwhile.
func (w *world) judgeLossesAtEnd() {
	for _, stored := range w.server.List("RayCluster") {
		cluster := stored.(*rayv1.RayCluster)
		for name, uid := range w.watch.losses.lost {
			told := slices.ContainsFunc(cluster.Status.Recoveries, func(r rayv1.RayClusterRecovery) bool {
				return r.Pod == name && r.State != rayv1.RecoveryObserving
			})
			if uid == cluster.UID && cluster.DeletionTimestamp == nil && !told {
				w.fail("head %s was lost, and the status of its cluster does not tell of it", name)
			}
		}
	}
	for _, head := range w.heads() {
		if podReady(head) {
			w.watch.losses.known[head.UID] = rayContainer(head).RestartCount
		}
	}
}

// unwatched makes a change while no operator runs.
func unwatched(fateful change) change {
	return change{what: fateful.what + " while no operator runs", make: func(w *world) {
		var names []string
		for _, p := range slices.Clone(w.processes) {
			names = append(names, p.name)
			w.kill(p)
		}
		fateful.make(w)
		w.move(time.Minute)
		for _, name := range names {
			w.launch(name)
		}
	}}
}
