package rayservice

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
)

// suspension takes the service down, and tells whether it is on its way down, or down. Once begun, it is brought to its end
// whatever the spec says by then: the next start finds nothing of the last one.
func (p *planner) suspension() bool {
	suspending := meta.IsStatusConditionTrue(p.st.Conditions, rayv1.ConditionRayServiceSuspending)
	suspended := meta.IsStatusConditionTrue(p.st.Conditions, rayv1.ConditionRayServiceSuspended)
	switch {
	case suspending:
		p.takeDown()
	case suspended && !p.service.Spec.Suspend:
		p.resume()
		return false
	case p.service.Spec.Suspend && !suspended && p.invalid == nil:
		p.beginSuspension()
	case !suspended:
		return false
	}
	return true
}

// beginSuspension only writes the status: what is taken down next is decided by that write.
func (p *planner) beginSuspension() {
	p.clear()
	p.set(metav1.Condition{Type: rayv1.ConditionRayServiceSuspending, Status: metav1.ConditionTrue, Reason: rayv1.ReasonSuspendRequested})
	p.suspendReasons(rayv1.ReasonSuspendInProgress)
}

// takeDown deletes all that the service owns.
func (p *planner) takeDown() {
	left := p.deleteClusters("the RayService is suspended")
	for _, object := range p.ownObjects() {
		left++
		if object.GetDeletionTimestamp() != nil {
			continue
		}
		kind := kindOf(object)
		p.do(action.Delete{Object: object, Owner: p.service, Why: "the RayService is suspended",
			Done:   action.Normal("Deleted"+kind, "Delete", "deleted "+kind+": the RayService is suspended"),
			Failed: action.Warning("FailedToDelete"+kind, "Delete", "cannot delete the "+kind)})
	}
	if left > 0 {
		p.set(metav1.Condition{Type: rayv1.ConditionRayServiceSuspending, Status: metav1.ConditionTrue, Reason: rayv1.ReasonSuspendInProgress})
		p.suspendReasons(rayv1.ReasonSuspendInProgress)
		p.again(pollAgain)
		return
	}
	p.set(metav1.Condition{Type: rayv1.ConditionRayServiceSuspending, Status: metav1.ConditionFalse, Reason: rayv1.ReasonSuspendComplete})
	p.set(metav1.Condition{Type: rayv1.ConditionRayServiceSuspended, Status: metav1.ConditionTrue, Reason: rayv1.ReasonSuspendComplete})
	p.suspendReasons(rayv1.ReasonSuspendComplete)
}

// resume begins anew, so that the time for the start counts from now on.
func (p *planner) resume() {
	p.set(metav1.Condition{Type: rayv1.ConditionRayServiceSuspended, Status: metav1.ConditionFalse, Reason: rayv1.ReasonRayServiceResumed})
	for _, kind := range []string{rayv1.ConditionRayServiceReady, rayv1.ConditionUpgradeInProgress} {
		meta.RemoveStatusCondition(&p.st.Conditions, kind)
		p.set(metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: rayv1.ReasonInitializing})
	}
}

// clear empties what the status says of clusters and endpoints.
func (p *planner) clear() {
	p.st.ActiveServiceStatus, p.st.PendingServiceStatus = rayv1.RayServiceStatus{}, rayv1.RayServiceStatus{}
	p.st.NumServeEndpoints, p.st.ServiceStatus, p.st.AbandonedUpgrade = 0, rayv1.ServiceStatusNotRunning, nil
}

// suspendReasons makes the conditions that cannot be true of a service without clusters say why.
func (p *planner) suspendReasons(reason string) {
	for _, kind := range []string{rayv1.ConditionRayServiceReady, rayv1.ConditionUpgradeInProgress, rayv1.ConditionRollbackInProgress} {
		p.set(metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason})
	}
}

// ownObjects are what the RayService controls besides its clusters.
func (p *planner) ownObjects() []action.Object {
	var objects []action.Object
	for _, service := range p.s.Services {
		objects = append(objects, service)
	}
	if p.s.Gateway != nil {
		objects = append(objects, p.s.Gateway)
	}
	if p.s.Route != nil {
		objects = append(objects, p.s.Route)
	}
	return slices.DeleteFunc(objects, func(object action.Object) bool { return !p.s.owns(object) })
}

func kindOf(object action.Object) string {
	switch object.(type) {
	case *corev1.Service:
		return "Service"
	case *gatewayv1.Gateway:
		return "Gateway"
	default:
		return "HTTPRoute"
	}
}
