package raycluster

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/ray/census"
)

const (
	// maxKnownWorkers is how many workers the status names for the next leader: some 8 KB.
	maxKnownWorkers = 1000
	// censusPause is the time between two writes that are made only because Ray counts other actors than before.
	censusPause = time.Minute
)

// Census is what the next leader is to know: the Pods in which Ray runs, apart from those that the operator takes away, and
// how many actors there are. While a loss is open the numbers are those from before it.
func (l *Losses) Census(cluster *rayv1.RayCluster, ledger *census.Ledger) *rayv1.RayClusterCensus {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.byName[types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Name}]
	if known == nil || known.uid != cluster.UID {
		return cluster.Status.LastCensus
	}
	next := known.namesOf(cluster)
	if next.Head == nil && next.Workers == nil {
		return nil
	}
	open := slices.ContainsFunc(known.open, func(o openLoss) bool { return o.State == rayv1.RecoveryObserving })
	switch last := cluster.Status.LastCensus; {
	case ledger != nil && !open:
		actors, groups, jobs := ledger.Living()
		next.Time, next.Session = ptr.To(metav1.NewTime(ledger.At.Truncate(timeGrain))), ledger.Session
		next.Actors, next.PlacementGroups, next.Jobs = int32(actors), int32(groups), int32(jobs)
	case last != nil:
		keepNumbers(next, last)
	}
	return next
}

// Curious tells whether Ray is to be asked for everything: a loss is open, or it has not told of the nodes since a Pod came up.
func (l *Losses) Curious(cluster *rayv1.RayCluster, ledger *census.Ledger) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.byName[types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Name}]
	if known == nil || ledger == nil {
		return false
	}
	for _, m := range known.pods {
		if ledger.At.Before(m.since.Add(answerAge)) {
			return true
		}
	}
	return slices.ContainsFunc(known.open, func(o openLoss) bool { return o.State == rayv1.RecoveryObserving })
}

// keepNumbers gives a census what Ray has said for an earlier one.
func keepNumbers(next, last *rayv1.RayClusterCensus) {
	next.Time, next.Session = last.Time.DeepCopy(), last.Session
	next.Actors, next.PlacementGroups, next.Jobs = last.Actors, last.PlacementGroups, last.Jobs
}

// namesOf writes the Pods down that are not leaving.
func (k *lossesOfOne) namesOf(cluster *rayv1.RayCluster) *rayv1.RayClusterCensus {
	next := &rayv1.RayClusterCensus{}
	var workers []member
	prefixes := map[string]string{}
	for uid, m := range k.pods {
		switch {
		case !m.leaving.IsZero():
		case m.group == rayv1.HeadGroupName && next.Head != nil && next.Head.Incarnation >= m.incarnation:
		case m.group == rayv1.HeadGroupName:
			next.Head = &rayv1.CensusHead{Pod: m.name, UID: uid, Incarnation: m.incarnation, Restarts: m.restarts}
		default:
			workers = append(workers, m)
		}
	}
	slices.SortFunc(workers, func(a, b member) int { return strings.Compare(a.name, b.name) })
	for _, m := range workers[:min(len(workers), maxKnownWorkers)] {
		if next.Workers == nil {
			next.Workers = map[string][]string{}
		}
		if _, known := prefixes[m.group]; !known {
			prefixes[m.group] = workerPrefix(cluster, m.group)
		}
		next.Workers[m.group] = append(next.Workers[m.group], workerText(prefixes[m.group], m))
	}
	return next
}

// workerText is how a worker stands in a census, given what names of its group begin with; workerNamed reads it.
func workerText(prefix string, m member) string {
	text := m.name
	if ending, usual := strings.CutPrefix(text, prefix); usual && ending != "" && !strings.Contains(ending, "-") {
		text = ending
	}
	if m.restarts > 0 {
		text += ":" + strconv.Itoa(int(m.restarts))
	}
	return text
}

func workerNamed(prefix, text string) (name string, restarts int32) {
	name, count, _ := strings.Cut(text, ":")
	if n, err := strconv.ParseInt(count, 10, 32); err == nil {
		restarts = int32(n)
	}
	if !strings.Contains(name, "-") {
		name = prefix + name
	}
	return name, restarts
}

func workerPrefix(cluster *rayv1.RayCluster, group string) string {
	return podPrefix(cluster.Name+"-"+group, "-worker-")
}

// recall begins with what another leader has left in the status.
func recall(cluster *rayv1.RayCluster, pods []*corev1.Pod, now time.Time) *lossesOfOne {
	k := &lossesOfOne{uid: cluster.UID, pods: map[types.UID]member{}, recalled: true}
	last := cluster.Status.LastCensus
	for i := range cluster.Status.Recoveries {
		if r := &cluster.Status.Recoveries[i]; r.State == rayv1.RecoveryObserving {
			noticed := now
			if r.Time.Time.Before(now) {
				noticed = r.Time.Time
			}
			k.open = append(k.open, openLoss{RayClusterRecovery: *r.DeepCopy(), noticed: noticed, before: counted(last)})
		}
	}
	if last == nil {
		return k
	}
	if head := last.Head; head != nil {
		k.pods[head.UID] = member{name: head.Pod, group: rayv1.HeadGroupName, incarnation: head.Incarnation, restarts: head.Restarts, since: now.Add(-answerAge)}
	}
	byName := make(map[string]types.UID, len(pods))
	for _, pod := range pods {
		byName[pod.Name] = pod.UID
	}
	for group, workers := range last.Workers {
		prefix := workerPrefix(cluster, group)
		for _, text := range workers {
			name, restarts := workerNamed(prefix, text)
			uid, there := byName[name]
			if !there {
				uid = types.UID(name) // nobody has it: names of workers are used once
			}
			k.pods[uid] = member{name: name, group: group, restarts: restarts, since: now.Add(-answerAge)}
		}
	}
	return k
}

// counted is a census in which Ray has answered, or nil.
func counted(last *rayv1.RayClusterCensus) *rayv1.RayClusterCensus {
	if last == nil || last.Time == nil {
		return nil
	}
	return last.DeepCopy()
}

// compare judges a loss of which only the numbers before it are known. A new head that keeps nothing of the old one has lost all;
// else Ray does not say what it was that the loss hit.
func (o *openLoss) compare(ledger *census.Ledger, over bool) {
	then := o.before
	before := fmt.Sprintf("the operator was replaced meanwhile; at %s there were %d actors, %d placement groups and %d jobs",
		then.Time.UTC().Format(time.RFC3339), then.Actors, then.PlacementGroups, then.Jobs)
	answered := ledger != nil && ledger.At.After(o.noticed) && !o.headSince.IsZero() && ledger.At.Sub(o.headSince) >= rejoinTime
	switch {
	case answered && o.Group == rayv1.HeadGroupName && then.Session != "" && ledger.Session != then.Session:
		lost := func(n int32) census.Tally { return census.Tally{Lost: int(n)} }
		o.State, o.Actors = rayv1.RecoveryComplete, ptr.To(countsOf(lost(then.Actors)))
		o.PlacementGroups, o.Jobs = anyOf(lost(then.PlacementGroups)), anyOf(lost(then.Jobs))
		o.Message = before + ", and the head that followed knows none of them"
	case answered:
		actors, groups, jobs := ledger.Living()
		o.State, o.Message = rayv1.RecoveryUnknown, fmt.Sprintf("%s, now %d, %d and %d; which of them were hit is not known", before, actors, groups, jobs)
	case over:
		o.State, o.Message = rayv1.RecoveryUnknown, fmt.Sprintf("%s; Ray did not say within %s what became of them", before, recoveryLimit)
	}
}

// lastCensus puts into the status what the next leader is to know. Numbers alone are written now and then; with whatever else is
// written they are brought up to date.
func (p *planner) lastCensus(st *rayv1.RayClusterStatus, unchanged func() bool) {
	before := p.snapshot.Cluster.Status.LastCensus
	now := p.snapshot.Census.DeepCopy()
	p.withoutVictims(now)
	st.LastCensus = now
	if before == nil || now == nil {
		return
	}
	fresh := *now
	var left time.Duration
	if before.Time != nil {
		left = before.Time.Add(censusPause).Sub(p.now)
	}
	if sameNumbers(before, now) || left > 0 && left <= censusPause {
		keepNumbers(now, before)
	}
	switch {
	case !unchanged():
		keepNumbers(now, &fresh)
	case !sameNumbers(before, &fresh):
		p.again(left)
	}
}

// withoutVictims leaves out the Pods that the plan deletes. The status is written before they are, so that nobody takes
// them for lost.
func (p *planner) withoutVictims(now *rayv1.RayClusterCensus) {
	if now == nil || len(p.plan.Actions) == 0 {
		return
	}
	victims := map[string]bool{}
	for _, a := range p.plan.Actions {
		deleted, is := a.(action.Delete)
		if !is {
			continue
		}
		if pod, is := deleted.Object.(*corev1.Pod); is {
			victims[pod.Name] = true
			if now.Head != nil && now.Head.UID == pod.UID {
				now.Head = nil
			}
		}
	}
	for group, workers := range now.Workers {
		prefix := workerPrefix(p.cluster, group)
		left := slices.DeleteFunc(workers, func(text string) bool {
			name, _ := workerNamed(prefix, text)
			return victims[name]
		})
		if now.Workers[group] = left; len(left) == 0 {
			delete(now.Workers, group)
		}
	}
	if len(now.Workers) == 0 {
		now.Workers = nil
	}
}

// leaves tells whether a Pod that was known is not any more.
func leaves(before, after *rayv1.RayClusterCensus) bool {
	switch {
	case before == nil:
		return false
	case after == nil:
		return before.Head != nil || len(before.Workers) > 0
	case before.Head != nil && (after.Head == nil || after.Head.UID != before.Head.UID):
		return true
	}
	for group, workers := range before.Workers {
		still := after.Workers[group]
		if !slices.Equal(workers, still) && slices.ContainsFunc(workers, func(text string) bool { return !slices.Contains(still, text) }) {
			return true
		}
	}
	return false
}

func sameNumbers(a, b *rayv1.RayClusterCensus) bool {
	return a.Actors == b.Actors && a.PlacementGroups == b.PlacementGroups && a.Jobs == b.Jobs
}
