package raycluster

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

const (
	// leastLife is how old a Pod that has ended must be before it is replaced, so that Pods which end at once do not
	// come and go as fast as the API server can take them. It doubles while Pods of the group go on ending early.
	leastLife = 5 * time.Second
	// longestRest bounds the wait before an ended Pod is replaced.
	longestRest = 5 * time.Minute
	// longLife is how old a Pod must be for its end to say nothing about the next one, as with the kubelet's back-off.
	longLife = 10 * time.Minute
)

// Streak counts how often in a row Pods of a group ended soon after they were made. Pods that end while the group
// still waits are one event: a lost node takes several.
type Streak struct {
	Count int
	Last  time.Time
}

// Rest is how long the group waits after the last end before it replaces a Pod.
func (s Streak) Rest() time.Duration {
	if s.Count == 0 {
		return 0
	}
	return min(leastLife<<min(s.Count-1, 10), longestRest)
}

func (s Streak) extended(now time.Time) Streak {
	switch {
	case s.Count == 0, now.Sub(s.Last) > longLife:
		return Streak{Count: 1, Last: now}
	case now.Sub(s.Last) < s.Rest():
		return s
	default:
		return Streak{Count: s.Count + 1, Last: now}
	}
}

// Streaks remembers streaks by RayCluster and group. What it knows is lost with the process, which makes replacing
// start again at its fastest pace and does nothing else.
type Streaks struct {
	mu     sync.Mutex
	byName map[types.NamespacedName]*streaksOfOne
}

type streaksOfOne struct {
	uid     types.UID
	counted map[types.UID]bool
	groups  map[string]Streak
}

// NewStreaks returns an empty memory.
func NewStreaks() *Streaks {
	return &Streaks{byName: map[types.NamespacedName]*streaksOfOne{}}
}

// Note takes in which Pods of a cluster have ended, each once, and returns the streaks of its groups.
func (s *Streaks) Note(cluster *rayv1.RayCluster, pods []*corev1.Pod, now time.Time) map[string]Streak {
	name := types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Name}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.byName[name]
	if before == nil || before.uid != cluster.UID {
		before = &streaksOfOne{}
	}
	after := &streaksOfOne{uid: cluster.UID, counted: map[types.UID]bool{}, groups: map[string]Streak{}}
	for group, streak := range before.groups {
		if now.Sub(streak.Last) <= longLife {
			after.groups[group] = streak
		}
	}
	for _, pod := range pods {
		if !beyondRepair(pod) {
			continue
		}
		after.counted[pod.UID] = true
		// A Pod that somebody deletes ends as well, which says nothing about the next one.
		asked := pod.DeletionTimestamp != nil
		if !before.counted[pod.UID] && !asked && now.Sub(pod.CreationTimestamp.Time) < longLife {
			after.groups[groupOf(pod)] = after.groups[groupOf(pod)].extended(now)
		}
	}
	if len(after.counted)+len(after.groups) == 0 {
		delete(s.byName, name)
		return nil
	}
	s.byName[name] = after
	streaks := make(map[string]Streak, len(after.groups))
	for group, streak := range after.groups {
		streaks[group] = streak
	}
	return streaks
}

// Forget drops what is known about a cluster that is gone.
func (s *Streaks) Forget(cluster types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byName, cluster)
}

// ForgetAll drops everything.
func (s *Streaks) ForgetAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.byName)
}

// ripe tells whether an ended Pod may be replaced now, and asks to look again when it may.
func (p *planner) ripe(pod *corev1.Pod) bool {
	streak := p.snapshot.Streaks[groupOf(pod)]
	made := pod.CreationTimestamp.Time
	if made.After(p.now) {
		// Our clock is behind the API server's, maybe by hours. What we know by ours is when a Pod of the group was last seen to end.
		made = streak.Last
	}
	due := made.Add(leastLife)
	if rested := streak.Last.Add(streak.Rest()); streak.Count > 1 && rested.After(due) {
		due = rested
	}
	left := due.Sub(p.now)
	if left <= 0 {
		return true
	}
	p.again(left)
	if streak.Count > 1 {
		p.wait("group %s: Pods ended %d times in a row soon after they were made; ended ones are replaced at %s",
			groupOf(pod), streak.Count, due.UTC().Format(time.RFC3339))
	}
	return false
}
