package rayservice

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
	"github.com/heliostat-io/heliostat/internal/raycluster"
)

// maxCutOvers is how many of the last cut-overs the status keeps.
const maxCutOvers = 10

// fillStatus writes into the status what is known of both clusters and of the endpoints.
func (p *planner) fillStatus() {
	if p.timeoutReached() {
		return
	}
	before := p.s.Service.Status
	p.st.ActiveServiceStatus = p.clusterStatus(p.active, &before)
	p.st.PendingServiceStatus = p.clusterStatus(p.pending, &before)
	p.fillShares()
	p.st.NumServeEndpoints = p.endpointCount()
	p.recordCutOver()
}

// clusterStatus is what is known of one cluster. While Serve does not answer, its last word stands.
func (p *planner) clusterStatus(name string, before *rayv1.RayServiceStatuses) rayv1.RayServiceStatus {
	status := rayv1.RayServiceStatus{RayClusterName: name}
	for _, old := range []rayv1.RayServiceStatus{before.ActiveServiceStatus, before.PendingServiceStatus} {
		if old.RayClusterName == name {
			status = *old.DeepCopy()
			break
		}
	}
	c := p.s.cluster(name)
	if c == nil {
		return status
	}
	raycluster.MirrorStatus(&status.RayClusterStatus, c.Object)
	status.Goal = goalOf(c.Object)
	status.ReadyServeEndpoints = readyCount(p.s.Endpoints[raycluster.ServeServiceName(name)])
	if reported(c) {
		status.ApplicationStatuses = applicationStatuses(c.Report.Serve)
	}
	return status
}

func applicationStatuses(report *dashboard.ServeDetails) map[string]rayv1.AppStatus {
	if len(report.Applications) == 0 {
		return nil
	}
	statuses := make(map[string]rayv1.AppStatus, len(report.Applications))
	for name, application := range report.Applications {
		status := rayv1.AppStatus{Status: application.Status, Message: application.Message}
		for deployment, is := range application.Deployments {
			if status.ServeDeploymentStatuses == nil {
				status.ServeDeploymentStatuses = map[string]rayv1.ServeDeploymentStatus{}
			}
			status.ServeDeploymentStatuses[deployment] = rayv1.ServeDeploymentStatus{Status: is.Status, Message: is.Message}
		}
		statuses[displayed(name)] = status
	}
	return statuses
}

// endpointCount is the number of distinct Pods that requests are sent to.
func (p *planner) endpointCount() int32 {
	names := []string{serveServiceName(p.service)}
	if p.s.Route != nil && p.s.owns(p.s.Route) {
		names = nil
		for _, cluster := range []string{p.active, p.pending} {
			if cluster != "" {
				names = append(names, raycluster.ServeServiceName(cluster))
			}
		}
	}
	ready := map[types.UID]bool{}
	for _, name := range names {
		for _, endpoint := range p.s.Endpoints[name] {
			if endpoint.Ready {
				ready[endpoint.Pod] = true
			}
		}
	}
	return int32(len(ready))
}

// recordCutOver adds the last cut-over to the history. What it tells stands on the object whose write was the cut-over.
func (p *planner) recordCutOver() {
	object := p.commitObject()
	if object == nil {
		return
	}
	told := object.GetAnnotations()
	at, err := time.Parse(time.RFC3339, told[rayv1.AnnotationSwitchedAt])
	to := told[rayv1.AnnotationServesCluster]
	if err != nil || to == "" || to != p.active {
		return
	}
	record := rayv1.RayServiceCutOver{Time: metav1.NewTime(at), From: told[rayv1.AnnotationSwitchedFrom], To: to,
		Goal: told[rayv1.AnnotationServesGoal], Reason: told[rayv1.AnnotationSwitchReason]}
	if len(p.st.CutOvers) > 0 && p.st.CutOvers[0].To == record.To && p.st.CutOvers[0].Time.Equal(&record.Time) {
		return
	}
	if c := p.s.cluster(to); c != nil {
		record.DurationSeconds = max(int64(at.Sub(c.Object.CreationTimestamp.Time).Seconds()), 0)
	}
	p.st.CutOvers = slices.Insert(p.st.CutOvers, 0, record)
	p.st.CutOvers = p.st.CutOvers[:min(len(p.st.CutOvers), maxCutOvers)]
}

// commitObject is what the last cut-over was written on, nil when nothing serves yet.
func (p *planner) commitObject() action.Object {
	if p.s.Route != nil && p.s.owns(p.s.Route) && p.s.Route.Annotations[rayv1.AnnotationServesCluster] != "" {
		return p.s.Route
	}
	if service := p.s.service(serveServiceName(p.service)); service != nil && p.s.owns(service) {
		return service
	}
	return nil
}

// statusWrite returns the status write of the pass, or nil when nothing changed.
func (p *planner) statusWrite() *action.StatusWrite {
	p.st.ObservedGeneration = p.s.Service.Generation
	if equality.Semantic.DeepEqual(p.s.Service.Status, p.service.Status) {
		return nil
	}
	now := metav1.NewTime(p.now.Truncate(time.Second))
	written := p.s.Service.DeepCopy()
	written.Status = p.service.Status
	written.Status.LastUpdateTime = &now
	return &action.StatusWrite{Object: written, Base: p.s.Service, Why: whatChanged(&p.s.Service.Status, &p.service.Status)}
}

func whatChanged(before, after *rayv1.RayServiceStatuses) string {
	switch {
	case before.ActiveServiceStatus.RayClusterName != after.ActiveServiceStatus.RayClusterName:
		return "RayCluster " + after.ActiveServiceStatus.RayClusterName + " serves now"
	case before.PendingServiceStatus.RayClusterName != after.PendingServiceStatus.RayClusterName && after.PendingServiceStatus.RayClusterName != "":
		return "RayCluster " + after.PendingServiceStatus.RayClusterName + " is to take over"
	case before.NumServeEndpoints != after.NumServeEndpoints:
		return "the number of Pods that take requests changed"
	default:
		return "observed facts changed"
	}
}
