package raycluster

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/excerpt"
	"github.com/heliostat-io/heliostat/internal/ray/census"
)

// report brings what the status said up to date. A loss stays open until the status is seen to tell its end, since a write of the
// status can fail.
func (k *lossesOfOne) report(before []rayv1.RayClusterRecovery, pods []*corev1.Pod, ledger *census.Ledger, now time.Time) []rayv1.RayClusterRecovery {
	k.open = slices.DeleteFunc(k.open, func(o openLoss) bool {
		at := o.among(before)
		return at >= 0 && before[at].State != rayv1.RecoveryObserving
	})
	var all []rayv1.RayClusterRecovery
	for i := range before {
		all = append(all, *before[i].DeepCopy())
	}
	for i := range k.open {
		loss := &k.open[i]
		loss.judge(pods, ledger, now)
		if at := loss.among(all); at >= 0 {
			all[at] = *loss.DeepCopy()
			continue
		}
		all = slices.Insert(all, 0, *loss.DeepCopy())
	}
	all = all[:min(len(all), maxRecoveries)]
	// What there is no place for would otherwise push out another one in each pass.
	k.open = slices.DeleteFunc(k.open, func(o openLoss) bool { return o.among(all) < 0 })
	return all
}

// among returns where a loss is told of, or -1.
func (o *openLoss) among(told []rayv1.RayClusterRecovery) int {
	return slices.IndexFunc(told, func(r rayv1.RayClusterRecovery) bool { return sameLoss(r, o.RayClusterRecovery) })
}

func sameLoss(a, b rayv1.RayClusterRecovery) bool {
	return a.Time.Equal(&b.Time) && a.Pod == b.Pod && a.Part == b.Part
}

// judge looks at what Ray says by now.
func (o *openLoss) judge(pods []*corev1.Pod, ledger *census.Ledger, now time.Time) {
	if o.State != rayv1.RecoveryObserving {
		return
	}
	if o.before == nil && o.blind(ledger) {
		o.State, o.Message = rayv1.RecoveryUnknown, "Ray had not told which actors there were before the loss"
		return
	}
	switch ready := headReady(pods, o.lostHead()); {
	case !ready:
		o.headSince = time.Time{}
	case o.headSince.IsZero():
		o.headSince = now
	}
	over := now.Sub(o.noticed) > recoveryLimit
	if o.before != nil {
		o.compare(ledger, over)
		return
	}
	fate, known := o.fate(ledger)
	switch {
	case known:
		o.count(fate, ledger)
		if fate.Restarting() == 0 || over {
			o.State, o.DurationSeconds = rayv1.RecoveryComplete, ptr.To(int64(now.Sub(o.noticed)/time.Second))
		}
	case over:
		o.State, o.Message = rayv1.RecoveryUnknown, fmt.Sprintf("Ray did not say within %s what became of the actors", recoveryLimit)
	}
}

// blind tells whether what Ray says now cannot be compared with what it said before the loss. What went with a worker is known by
// its nodes; what went with the head, by what was there before.
func (o *openLoss) blind(ledger *census.Ledger) bool {
	return ledger == nil || o.since.IsZero() || !ledger.Since.Equal(o.since) || len(o.nodes) == 0 && o.Group != rayv1.HeadGroupName
}

// fate is what Ray says of the actors; known is false while it has not noticed the loss, or cannot be asked.
func (o *openLoss) fate(ledger *census.Ledger) (fate census.Fate, known bool) {
	if !ledger.At.After(o.noticed) {
		return census.Fate{}, false
	}
	fate = ledger.OfNodes(o.nodes)
	if o.Group != rayv1.HeadGroupName {
		return fate, fate.Settled
	}
	if o.headSince.IsZero() || ledger.At.Sub(o.headSince) < rejoinTime || !fate.Settled {
		return census.Fate{}, false
	}
	return ledger.OfAll(o.noticed.Add(-time.Minute)), true
}

// lostHead is the Pod that cannot be the head again.
func (o *openLoss) lostHead() types.UID {
	if o.Part == rayv1.LostHead {
		return o.uid
	}
	return ""
}

// headReady tells whether a head other than the one that was lost is ready.
func headReady(pods []*corev1.Pod, lost types.UID) bool {
	return slices.ContainsFunc(pods, func(pod *corev1.Pod) bool {
		return groupOf(pod) == rayv1.HeadGroupName && pod.UID != lost && pod.DeletionTimestamp == nil && podReady(pod)
	})
}

func (o *openLoss) count(fate census.Fate, ledger *census.Ledger) {
	o.Actors, o.PlacementGroups, o.Jobs = ptr.To(countsOf(fate.Actors)), anyOf(fate.Groups), anyOf(fate.Jobs)
	o.LostActors, o.LostJobs = someNames(fate.Actors.Names), someNames(fate.Jobs.Names)
	o.Message = ""
	if ledger.More > 0 {
		o.Message = fmt.Sprintf("Ray knows %d more actors or placement groups than it tells of; these are not counted", ledger.More)
	}
}

func countsOf(t census.Tally) rayv1.RecoveryCounts {
	return rayv1.RecoveryCounts{Lost: int32(t.Lost), Restarting: int32(t.Restarting), Restored: int32(t.Restored), Kept: int32(t.Kept)}
}

// anyOf are the counts, nil when there is nothing to count.
func anyOf(t census.Tally) *rayv1.RecoveryCounts {
	if counts := countsOf(t); counts != (rayv1.RecoveryCounts{}) {
		return &counts
	}
	return nil
}

func someNames(all []string) []string {
	var some []string
	for _, name := range all[:min(len(all), maxLostNames)] {
		some = append(some, excerpt.Beginning(name, maxLostName))
	}
	return some
}
