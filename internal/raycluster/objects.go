package raycluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-io/heliostat/internal/action"
)

// services keeps the Services that the cluster wants as wanted, and removes those that it does not want any more.
func (p *planner) services() {
	cluster := p.cluster
	head := HeadService(cluster, p.settings)
	FollowHead(head, p.liveHead())
	wanted := []*corev1.Service{head, HeadlessWorkerService(cluster)}
	serve, err := ServeService(cluster, p.settings)
	if err != nil {
		p.notes = append(p.notes, err.Error())
	}
	wanted = slices.DeleteFunc(append(wanted, serve), func(s *corev1.Service) bool { return s == nil })
	for _, service := range wanted {
		p.applyService(service)
	}
	for _, service := range p.snapshot.Owned {
		isWanted := slices.ContainsFunc(wanted, func(w *corev1.Service) bool { return w.Name == service.Name })
		if !isWanted && service.DeletionTimestamp == nil {
			p.do(action.Delete{Object: service, Why: "the cluster does not want this Service any more"})
		}
	}
}

func (p *planner) applyService(service *corev1.Service) {
	a := action.Apply{
		Object: service,
		Failed: action.Warning("FailedToCreateService", "Create", "cannot make the Service"),
	}
	if live := p.snapshot.Named[service.Name]; live != nil {
		if action.ServiceAsWanted(live, service) {
			return
		}
		a.Observed, a.Why = live, "the Service differs from what the cluster wants"
		p.do(a)
		return
	}
	a.Why = "the cluster needs this Service"
	a.Done = action.Normal("CreatedService", "Create", "created Service")
	p.do(a)
}
