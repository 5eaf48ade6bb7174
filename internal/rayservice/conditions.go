package rayservice

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/condition"
	"github.com/heliostat-io/heliostat/internal/diagnose"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
	"github.com/heliostat-io/heliostat/internal/worst"
)

// set puts a condition into the status and tells whether it is new or says something else than before.
func (p *planner) set(c metav1.Condition) bool {
	return condition.Set(&p.st.Conditions, c, p.s.Service.Generation, p.now)
}

// conditions sets every condition that follows from the next status.
func (p *planner) conditions() {
	p.valid()
	if p.takenDown() {
		for _, kind := range []string{rayv1.ConditionConfigApplied, rayv1.ConditionApplicationsHealthy, rayv1.ConditionEndpointsReady} {
			meta.RemoveStatusCondition(&p.st.Conditions, kind)
		}
		p.progress()
		p.troubled()
		return
	}
	p.fillStatus()
	p.waiting = p.waitsFor()
	p.ready()
	p.upgrade()
	p.rollingBack()
	p.endpointsReady()
	p.configApplied()
	p.applicationsHealthy()
	p.progress()
	p.troubled()
}

// troubled sets the condition Troubled by the rules of the plugin. What is wrong with the cluster that is to take over, or serves,
// stands in the conditions of that cluster.
func (p *planner) troubled() {
	service := *p.s.Service
	service.Status = *p.st
	service.Status.ObservedGeneration = service.Generation
	facts := &diagnose.Snapshot{Now: p.now, Service: &service}
	for i := range p.s.Clusters {
		facts.Clusters = append(facts.Clusters, p.s.Clusters[i].Object)
	}
	var awaited *rayv1.RayCluster
	if cluster := p.s.cluster(cmp.Or(p.pending, p.active)); cluster != nil && !p.takenDown() {
		awaited = cluster.Object
	}
	events, again := worst.Object{
		Facts: facts, Conditions: &p.st.Conditions, Generation: service.Generation, Now: p.now, Awaited: awaited,
		Holds: p.s.Holds, Events: p.decision.Events,
	}.Lift()
	p.decision.Events = events
	p.again(again)
}

// waitsFor is what conditions tell that the take-over waits for. What was told last stands until this leader has heard all
// that it has just begun to ask; otherwise each change of the leader would be two writes of every status.
func (p *planner) waitsFor() string {
	pending := p.s.cluster(p.pending)
	if pending == nil || p.heard(pending) || p.s.Service.Status.PendingServiceStatus.RayClusterName != p.pending {
		return p.waiting
	}
	kind, reason := rayv1.ConditionUpgradeInProgress, rayv1.ReasonBothActivePendingClustersExist
	if p.active == "" {
		kind, reason = rayv1.ConditionRayServiceReady, rayv1.ReasonInitializing
	}
	last := meta.FindStatusCondition(p.s.Service.Status.Conditions, kind)
	if last == nil || last.Reason != reason {
		return p.waiting
	}
	return last.Message
}

// heard tells whether all questions about a cluster were answered, well or badly, since this leader has begun to ask.
func (p *planner) heard(c *Cluster) bool {
	if headAnswers(c) && c.Report == nil {
		return false
	}
	for i := range c.Pods {
		if pod := &c.Pods[i]; counts(pod) && p.proxied(pod) && pod.Health == nil {
			return false
		}
	}
	return true
}

// takenDown tells whether the service is suspended, or being suspended.
func (p *planner) takenDown() bool {
	return meta.IsStatusConditionTrue(p.st.Conditions, rayv1.ConditionRayServiceSuspending) ||
		meta.IsStatusConditionTrue(p.st.Conditions, rayv1.ConditionRayServiceSuspended)
}

func (p *planner) timeoutReached() bool {
	ready := meta.FindStatusCondition(p.st.Conditions, rayv1.ConditionRayServiceReady)
	return ready != nil && ready.Reason == rayv1.ReasonInitializingTimeout
}

// valid says whether the spec can be acted upon. The event is sent when the verdict changes, not on every pass.
func (p *planner) valid() {
	c := metav1.Condition{Type: rayv1.ConditionValid, Status: metav1.ConditionTrue, Reason: rayv1.ReasonSpecValid}
	var event *action.Event
	switch {
	case p.invalid != nil:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, rayv1.ReasonSpecInvalid, p.invalid.Error()
		if p.active != "" {
			c.Message += "\nwhat serves goes on as the last valid spec asked"
		}
		event = action.Warning(invalidReason(p.invalid), "Validate", c.Message)
	case len(p.notes) > 0:
		c.Reason, c.Message = rayv1.ReasonPartlyServed, strings.Join(p.notes, "; ")
		event = action.Warning(c.Reason, "Validate", c.Message)
	}
	if p.set(c) && event != nil {
		p.tell(event)
	}
}

// ready says whether Pods take requests, as KubeRay does.
func (p *planner) ready() {
	c := metav1.Condition{Type: rayv1.ConditionRayServiceReady, Status: metav1.ConditionFalse, Reason: rayv1.ReasonInitializing}
	before := meta.FindStatusCondition(p.st.Conditions, rayv1.ConditionRayServiceReady)
	switch {
	case p.timeoutReached():
		return
	case p.st.NumServeEndpoints > 0:
		c.Status, c.Reason = metav1.ConditionTrue, rayv1.ReasonNonZeroServeEndpoints
	case before != nil && (before.Status == metav1.ConditionTrue || before.Reason == rayv1.ReasonZeroServeEndpoints):
		c.Reason, c.Message = rayv1.ReasonZeroServeEndpoints, "no Pod takes requests any more"
	case p.invalid != nil && p.active == "":
		c.Reason, c.Message = rayv1.ReasonValidationFailed, p.invalid.Error()
	default:
		c.Message = p.waiting
	}
	if before != nil && before.Reason == rayv1.ReasonValidationFailed && c.Reason == rayv1.ReasonInitializing {
		// The time for the start counts from the repair on.
		meta.RemoveStatusCondition(&p.st.Conditions, c.Type)
	}
	p.set(c)
	p.st.ServiceStatus = rayv1.ServiceStatusNotRunning
	if c.Status == metav1.ConditionTrue {
		p.st.ServiceStatus = rayv1.ServiceStatusRunning
	}
}

// upgrade says whether a second cluster is being prepared.
func (p *planner) upgrade() {
	c := metav1.Condition{Type: rayv1.ConditionUpgradeInProgress, Status: metav1.ConditionFalse, Reason: rayv1.ReasonInitializing}
	before := meta.FindStatusCondition(p.st.Conditions, c.Type)
	switch {
	case p.timeoutReached():
		return
	case p.active != "" && p.pending != "":
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, rayv1.ReasonBothActivePendingClustersExist, p.waiting
	case p.active != "":
		c.Reason = rayv1.ReasonNoPendingCluster
	case before != nil && before.Reason != rayv1.ReasonInitializing && before.Reason != rayv1.ReasonSuspendComplete:
		c.Status, c.Reason = metav1.ConditionUnknown, rayv1.ReasonNoActiveCluster
	}
	p.set(c)
}

func (p *planner) endpointsReady() {
	ready := p.st.NumServeEndpoints > 0
	c := metav1.Condition{Type: rayv1.ConditionEndpointsReady, Status: condition.Status(ready), Reason: rayv1.ReasonZeroServeEndpoints}
	if ready {
		c.Reason = rayv1.ReasonNonZeroServeEndpoints
	}
	p.set(c)
}

// configApplied says whether Serve has the config of the spec, on the cluster that is to have it.
func (p *planner) configApplied() {
	c := metav1.Condition{Type: rayv1.ConditionConfigApplied, Status: metav1.ConditionFalse, Reason: rayv1.ReasonConfigPending}
	target := p.s.cluster(cmp.Or(p.pending, p.active))
	before := meta.FindStatusCondition(p.st.Conditions, c.Type)
	var event *action.Event
	switch refusal := p.refusal(target); {
	case p.configErr != nil:
		c.Reason, c.Message = rayv1.ReasonConfigInvalid, p.configErr.Error()
		event = action.Warning("FailedToUpdateServeApplications", "Validate", c.Message)
	case p.invalid != nil:
		c.Reason, c.Message = rayv1.ReasonValidationFailed, "the config belongs to a spec that cannot be acted upon"
	case target != nil && target.applied(p.config) && p.deserves(target):
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, rayv1.ReasonConfigApplied, "Serve on RayCluster "+target.name()+" has the config"
		event = action.Normal("UpdatedServeApplications", "Update", fmt.Sprintf("Serve on RayCluster %s has the config of generation %d", target.name(), p.s.Service.Generation))
	case refusal != "":
		c.Reason, c.Message = rayv1.ReasonConfigRefused, refusal
		event = action.Warning("FailedToUpdateServeApplications", "Update", refusal)
	case p.wasApplied(before) && target != nil && reported(target):
		c.Reason, c.Message = rayv1.ReasonConfigDrifted, p.config.Difference(target.Report.Serve)
	case p.wasApplied(before):
		return // Serve does not answer; the last word stands, and ApplicationsHealthy says so
	case target != nil && target.Put != nil && target.Put.Err != nil:
		c.Message = target.Put.Err.Error()
	}
	newConfig := before == nil || before.ObservedGeneration != p.s.Service.Generation
	changed := p.set(c)
	if event != nil && (changed || newConfig && c.Status != metav1.ConditionTrue) {
		p.tell(event)
	}
}

// wasApplied tells whether Serve was last seen to have the config of this generation.
func (p *planner) wasApplied(before *metav1.Condition) bool {
	return before != nil && before.Status == metav1.ConditionTrue && before.ObservedGeneration == p.s.Service.Generation
}

// applicationsHealthy says whether all applications of the cluster that serves, or is to serve first, run.
func (p *planner) applicationsHealthy() {
	c := metav1.Condition{Type: rayv1.ConditionApplicationsHealthy, Status: metav1.ConditionUnknown, Reason: rayv1.ReasonNoReport}
	name := cmp.Or(p.active, p.pending)
	cluster := p.s.cluster(name)
	switch {
	case cluster != nil && cluster.Report == nil && headAnswers(cluster) && meta.FindStatusCondition(p.st.Conditions, c.Type) != nil:
		return // this leader has just begun to ask; the last word stands
	case cluster == nil || cluster.Report == nil:
	case !reported(cluster):
		c.Message = fmt.Sprintf("Serve on RayCluster %s does not answer: %v", name, cluster.Report.Err)
	default:
		c.Status, c.Reason = metav1.ConditionTrue, rayv1.ReasonApplicationsRunning
		if sick := sickApplications(cluster.Report.Serve); sick != "" {
			c.Status, c.Reason, c.Message = metav1.ConditionFalse, rayv1.ReasonApplicationsNotRunning, sick
		}
	}
	p.set(c)
}

// sickApplications says which applications do not run, or nothing.
func sickApplications(report *dashboard.ServeDetails) string {
	if len(report.Applications) == 0 {
		return "Serve has no application"
	}
	var sick []string
	for _, name := range slices.Sorted(maps.Keys(report.Applications)) {
		if application := report.Applications[name]; application.Status != dashboard.ApplicationRunning {
			sick = append(sick, strings.TrimSpace(fmt.Sprintf("application %s is %s %s", displayed(name), application.Status, application.Says())))
		}
	}
	return strings.Join(sick, "; ")
}

// progress returns the conditions Reconciling and Stalled: with Ready, one verdict in the words of kstatus.
func (p *planner) progress() {
	reason, message, done := p.progressReason()
	block := p.blocked()
	reconciling := metav1.Condition{Type: rayv1.ConditionReconciling, Status: condition.Status(!done && block.reason == ""), Reason: reason, Message: message}
	stalled := metav1.Condition{Type: rayv1.ConditionStalled, Status: metav1.ConditionFalse, Reason: reason}
	if block.reason != "" {
		stalled.Status, stalled.Reason, stalled.Message = metav1.ConditionTrue, block.reason, block.message
		reconciling.Reason, reconciling.Message = rayv1.ReasonStalled, ""
	}
	p.set(reconciling)
	p.set(stalled)
}

// progressReason is where the service is on its way, in a word and a sentence, and whether that is where it is meant to be.
func (p *planner) progressReason() (reason, message string, done bool) {
	ready := meta.IsStatusConditionTrue(p.st.Conditions, rayv1.ConditionRayServiceReady)
	applied := meta.IsStatusConditionTrue(p.st.Conditions, rayv1.ConditionConfigApplied)
	switch {
	case meta.IsStatusConditionTrue(p.st.Conditions, rayv1.ConditionRayServiceSuspended):
		return rayv1.ReasonSuspended, "", true
	case p.takenDown():
		return rayv1.ReasonSuspending, "", false
	case p.active != "" && p.pending != "":
		return rayv1.ReasonUpgrading, p.waiting, false
	case p.active == "":
		return rayv1.ReasonInitializing, p.waiting, false
	case !ready:
		return rayv1.ReasonZeroServeEndpoints, "", false
	case !applied:
		return rayv1.ReasonConfigPending, "", false
	default:
		return rayv1.ReasonServing, "", true
	}
}

// blocked is what somebody must change before the service can become what is asked for.
func (p *planner) blocked() obstacle {
	applied := meta.FindStatusCondition(p.st.Conditions, rayv1.ConditionConfigApplied)
	switch {
	case p.invalid != nil:
		return obstacle{rayv1.ReasonSpecInvalid, p.invalid.Error()}
	case p.takenDown():
		return obstacle{}
	case p.timeoutReached():
		ready := meta.FindStatusCondition(p.st.Conditions, rayv1.ConditionRayServiceReady)
		return obstacle{rayv1.ReasonInitializingTimeout, ready.Message}
	case applied != nil && (applied.Reason == rayv1.ReasonConfigInvalid || applied.Reason == rayv1.ReasonConfigRefused):
		return obstacle{applied.Reason, applied.Message}
	case p.obstacle.reason != "":
		return p.obstacle
	case p.st.AbandonedUpgrade != nil:
		return obstacle{p.st.AbandonedUpgrade.Reason, p.st.AbandonedUpgrade.Message}
	default:
		return p.clusterTrouble()
	}
}

// clusterTrouble is what keeps the pending cluster, or the active one when there is none, from becoming ready, by its own
// conditions.
func (p *planner) clusterTrouble() obstacle {
	cluster := p.s.cluster(cmp.Or(p.pending, p.active))
	if cluster == nil {
		return obstacle{}
	}
	stalled := meta.FindStatusCondition(cluster.Object.Status.Conditions, rayv1.ConditionStalled)
	if stalled == nil || stalled.Status != metav1.ConditionTrue {
		return obstacle{}
	}
	return obstacle{stalled.Reason, fmt.Sprintf("RayCluster %s: %s", cluster.name(), stalled.Message)}
}
