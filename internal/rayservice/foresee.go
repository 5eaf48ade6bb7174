package rayservice

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/condition"
	"github.com/heliostat-io/heliostat/internal/ray/poll"
)

// Foresee is the Plan for a Snapshot of Observe, without what an operator might decide in another way because it has heard of
// Serve and of Pods, or remembers a refused write.
func Foresee(s Snapshot, settings Settings, now time.Time) action.Outlook {
	if s.Service == nil {
		return action.Outlook{}
	}
	if by := s.Service.Spec.ManagedBy; by != nil && *by != rayv1.ManagedByOperator && s.Service.DeletionTimestamp == nil {
		return action.Outlook{Waits: []string{fmt.Sprintf("spec.managedBy leaves the service to %s", *by)}}
	}
	settings.Clusters.OperatorVersion = versionOn(s.Clusters, settings.Clusters.OperatorVersion)
	decision := Plan(s, settings, now)
	p := newPlanner(s, settings, now)
	p.roles()
	outlook := action.Outlook{Plan: decision.Plan, Asks: p.asked(decision.Questions)}
	unheard := len(decision.Reports) > 0
	if len(outlook.Asks) > 0 {
		// The answers bring the next pass.
		outlook.LookAgain = 0
	}
	if unheard && p.incremental() && p.hasShare(p.pending) {
		return action.Outlook{Asks: outlook.Asks, Unknown: []string{fmt.Sprintf("capacity and traffic move between RayClusters %s and %s, forward or back, "+
			"by what Serve on both says, which only the operator has heard", p.active, p.pending)}}
	}
	outlook.Events = slices.DeleteFunc(outlook.Events, func(e action.Event) bool { return e.Reason == reasonDrainLimit })
	p.sure(&outlook, unheard)
	outlook.Waits = p.awaited(outlook)
	return outlook
}

// versionOn is the version that the operator has written on a cluster, else the one that is assumed. Another one would look like a
// change of the spec.
func versionOn(clusters []Cluster, assumed string) string {
	for _, c := range slices.Backward(clusters) {
		if version, ok := c.Object.Annotations[rayv1.AnnotationOperatorVersion]; ok {
			return version
		}
	}
	return assumed
}

// asked are the questions in sentences.
func (p *planner) asked(questions Questions) []string {
	var asks []string
	for _, report := range questions.Reports {
		asks = append(asks, fmt.Sprintf("Serve on RayCluster %s at %s about its applications; whether it is sent a config follows from that",
			report.Owner.Name, report.BaseURL))
	}
	health, traffic := 0, 0
	for _, pod := range questions.Pods {
		if pod.Ask == poll.AskTraffic {
			traffic++
		} else {
			health++
		}
	}
	if health > 0 {
		asks = append(asks, fmt.Sprintf("the Serve proxies of %s whether they take requests", pods(health)))
	}
	if traffic > 0 {
		asks = append(asks, fmt.Sprintf("%s of retired RayClusters for requests under way", pods(traffic)))
	}
	return asks
}

func pods(number int) string {
	if number == 1 {
		return "1 Pod"
	}
	return fmt.Sprintf("%d Pods", number)
}

// sure leaves out of the status what answers and refused writes have brought into it: only the operator knows of those.
func (p *planner) sure(outlook *action.Outlook, unheard bool) {
	if outlook.Status == nil {
		return
	}
	service, ok := outlook.Status.Object.(*rayv1.RayService)
	if !ok {
		return
	}
	before := p.s.Service.Status
	why := condition.NoLongerStalled(service.Status.Conditions, before.Conditions)
	if unheard {
		condition.Restore(&service.Status.Conditions, before.Conditions, rayv1.ConditionConfigApplied, rayv1.ConditionApplicationsHealthy,
			rayv1.ConditionReconciling, rayv1.ConditionStalled, rayv1.ConditionTroubled)
	}
	if why != "" && len(outlook.Actions) > 0 {
		condition.Restore(&service.Status.Conditions, before.Conditions, rayv1.ConditionReconciling, rayv1.ConditionStalled, rayv1.ConditionTroubled)
		outlook.Unknown = append(outlook.Unknown, action.StillStalled(why))
	}
	// The time of the last change is no change.
	same := service.Status.DeepCopy()
	same.LastUpdateTime = before.LastUpdateTime
	if equality.Semantic.DeepEqual(*same, before) {
		outlook.Status = nil
	}
}

// awaited says what the service waits for besides answers.
func (p *planner) awaited(outlook action.Outlook) []string {
	service := p.s.Service
	if outlook.Status != nil {
		if next, ok := outlook.Status.Object.(*rayv1.RayService); ok {
			service = next
		}
	}
	active, pending := service.Status.ActiveServiceStatus.RayClusterName, service.Status.PendingServiceStatus.RayClusterName
	switch {
	case p.s.Service.DeletionTimestamp != nil:
		if len(p.s.Clusters) > 0 {
			return []string{"its RayClusters to be gone"}
		}
		return nil
	case p.invalid != nil:
		return []string{"the spec to be corrected: " + p.invalid.Error()}
	case meta.IsStatusConditionTrue(service.Status.Conditions, rayv1.ConditionRayServiceSuspending):
		return []string{"what the service owns to be gone"}
	case meta.IsStatusConditionTrue(service.Status.Conditions, rayv1.ConditionRayServiceSuspended):
		return []string{"spec.suspend to be false"}
	case p.timeoutReached():
		return []string{"the service to be suspended and resumed: nothing served in time"}
	case pending != "" && active == "":
		return []string{fmt.Sprintf("the applications on RayCluster %s to run", pending)}
	case pending != "":
		return []string{fmt.Sprintf("the applications on RayCluster %s to run, and its Pods to take requests, before it takes over from %s", pending, active)}
	default:
		return p.retiredAwaited()
	}
}

// retiredAwaited names the clusters that are kept for a while after they were retired.
func (p *planner) retiredAwaited() []string {
	var waits []string
	for i := range p.s.Clusters {
		c := &p.s.Clusters[i]
		if at, retired := retiredAt(c); retired && !c.leaving() {
			waits = append(waits, fmt.Sprintf("RayCluster %s to be idle, and %s since %s, before it is deleted", c.name(), p.deletionDelay(), at.UTC().Format(time.RFC3339)))
		}
	}
	return waits
}
