package raycluster

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/ray/poll"
)

// recoveries puts what was lost, and what came back, into the status, and returns the events about what is known by now.
func (p *planner) recoveries(st *rayv1.RayClusterStatus) []action.Event {
	st.Recoveries = p.snapshot.Recoveries
	var events []action.Event
	for i := range st.Recoveries {
		r := &st.Recoveries[i]
		if r.State == rayv1.RecoveryObserving {
			p.again(watchPause)
			continue
		}
		told := slices.ContainsFunc(p.snapshot.Cluster.Status.Recoveries, func(before rayv1.RayClusterRecovery) bool {
			return sameLoss(before, *r) && before.State == r.State
		})
		if !told {
			events = append(events, *recoveryEvent(r))
		}
	}
	return events
}

func recoveryEvent(r *rayv1.RayClusterRecovery) *action.Event {
	what := fmt.Sprintf("%s was lost with Pod %s (%s)", r.Part, r.Pod, r.Cause)
	switch {
	case r.State == rayv1.RecoveryUnknown:
		return action.Warning("LossUnknown", "Recover", what+": "+r.Message)
	case r.Actors.Lost > 0:
		return action.Warning("ActorsLost", "Recover", fmt.Sprintf("%s, and with it %d actors for good%s; %s%s",
			what, r.Actors.Lost, listOf(r.LostActors), theOthers(r.Actors), besidesActors(r)))
	case r.Jobs != nil && r.Jobs.Lost > 0:
		return action.Warning("JobsLost", "Recover", fmt.Sprintf("%s, and no actor: %s%s", what, theOthers(r.Actors), besidesActors(r)))
	default:
		return action.Normal("Recovered", "Recover", fmt.Sprintf("%s, and no actor: %s%s", what, theOthers(r.Actors), besidesActors(r)))
	}
}

// besidesActors says what became of the jobs and placement groups, and what is not known.
func besidesActors(r *rayv1.RayClusterRecovery) string {
	var text string
	if r.Jobs != nil && r.Jobs.Lost > 0 {
		text += fmt.Sprintf("; %d jobs lost%s", r.Jobs.Lost, listOf(r.LostJobs))
	}
	if g := r.PlacementGroups; g != nil {
		text += fmt.Sprintf("; placement groups: %d lost, %s", g.Lost, theOthers(g))
	}
	if r.Message != "" {
		text += "; " + r.Message
	}
	return text
}

// listOf names what is lost, as far as the names are known.
func listOf(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return ": " + strings.Join(names, ", ")
}

// theOthers says what became of those that are not lost.
func theOthers(counts *rayv1.RecoveryCounts) string {
	text := fmt.Sprintf("%d started anew, %d untouched", counts.Restored, counts.Kept)
	if counts.Restarting > 0 {
		text += fmt.Sprintf(", %d not back after %s", counts.Restarting, recoveryLimit)
	}
	return text
}

// question is what Ray is to be asked, nil while it cannot be. It is asked on while the head is lost: what was known before is
// compared with what the next one says.
func (s Snapshot) question(settings Settings) *poll.Target {
	auth := AuthOf(s.Cluster)
	if s.quiet() || auth.Token && auth.Secret == "" || !headReady(s.Pods, "") {
		return nil
	}
	address, err := DashboardAddress(s.service(HeadServiceName(s.Cluster)), settings.ClusterDomain)
	if err != nil {
		return nil
	}
	return &poll.Target{Owner: pollKey(s.Cluster), OwnerUID: s.Cluster.UID, BaseURL: "http://" + address, Ask: poll.AskCensus, Secret: auth.Secret}
}

// quiet tells whether there is, or will be, nobody to ask: a cluster that ends, is suspended, or is not ours.
func (s Snapshot) quiet() bool {
	return s.Cluster.DeletionTimestamp != nil || ptr.Deref(s.Cluster.Spec.Suspend, false) || !ours(s.Cluster.Spec.ManagedBy)
}

func pollKey(cluster *rayv1.RayCluster) poll.Key {
	return poll.Key{Kind: rayv1.KindRayCluster, NamespacedName: types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Name}}
}

// stages tells losses apart by how much is known of them.
func stages(recoveries []rayv1.RayClusterRecovery) []string {
	text := make([]string, len(recoveries))
	for i := range recoveries {
		r := &recoveries[i]
		text[i] = fmt.Sprintf("%d %s %s %s", r.Time.Unix(), r.Pod, r.Part, r.State)
	}
	return text
}
