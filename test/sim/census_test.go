package sim

import (
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/ray/census"
	"github.com/heliostat-io/heliostat/internal/ray/poll"
)

// noActors is a Ray without actors, which knows at once which of its nodes live.
type noActors struct {
	process *process
	since   map[poll.Key]time.Time
	nodes   map[poll.Key]map[string]census.Node
}

func newNoActors(p *process) noActors {
	return noActors{p, map[poll.Key]time.Time{}, map[poll.Key]map[string]census.Node{}}
}

func (n noActors) Track(target poll.Target) {
	if _, tracked := n.since[target.Owner]; !tracked {
		n.since[target.Owner], n.nodes[target.Owner] = n.process.Now(), map[string]census.Node{}
	}
}

func (n noActors) Forget(owner poll.Key) { delete(n.since, owner) }

func (n noActors) Observation(owner poll.Key) (poll.Observation, bool) {
	since, tracked := n.since[owner]
	if !tracked {
		return poll.Observation{}, false
	}
	at, nodes := n.process.Now(), n.nodes[owner]
	for id, node := range nodes {
		node.Alive = false
		nodes[id] = node
	}
	for _, stored := range n.process.world.server.List("Pod") {
		pod := stored.(*corev1.Pod)
		if pod.Namespace != owner.Namespace || pod.Labels[rayv1.LabelCluster] != owner.Name || pod.Status.Phase != corev1.PodRunning {
			continue
		}
		for i := range pod.Status.ContainerStatuses[:min(1, len(pod.Status.ContainerStatuses))] {
			if ray := &pod.Status.ContainerStatuses[i]; ray.State.Running != nil {
				nodes[fmt.Sprintf("%s-%d", pod.UID, ray.RestartCount)] = census.Node{IP: pod.Status.PodIP, Alive: true, AliveAt: at}
			}
		}
	}
	ledger := &census.Ledger{Since: since, At: at, Nodes: maps.Clone(nodes)}
	return poll.Observation{Ledger: ledger}, true
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
