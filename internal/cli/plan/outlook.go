package plan

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
	"github.com/heliostat-io/heliostat/internal/config"
	"github.com/heliostat-io/heliostat/internal/operator/settings"
	"github.com/heliostat-io/heliostat/internal/raycluster"
	"github.com/heliostat-io/heliostat/internal/raycronjob"
	"github.com/heliostat-io/heliostat/internal/rayjob"
	"github.com/heliostat-io/heliostat/internal/rayservice"
)

// operator is what an operator is told: the settings of its controllers.
type operator struct {
	clusters raycluster.Settings
	jobs     rayjob.Settings
	services rayservice.Settings
}

// defaults are those of an operator that is told nothing, on a Kubernetes with these kinds.
func defaults(mapper meta.RESTMapper) (operator, error) {
	cfg, err := config.Parse(nil, func(string) string { return "" }, nil)
	if err != nil {
		return operator{}, fmt.Errorf("read the operator's default settings: %w", err)
	}
	clusters, err := settings.Clusters(cfg, "", mapper)
	if err != nil {
		return operator{}, err
	}
	gateways, err := settings.GatewayAPI(cfg, mapper)
	if err != nil {
		return operator{}, err
	}
	return operator{clusters: clusters, jobs: settings.Jobs(cfg), services: settings.Services(cfg, clusters, gateways)}, nil
}

// outlook observes an object and plans for it.
func (o operator) outlook(ctx context.Context, reader client.Reader, target kube.Target, now time.Time) (action.Outlook, error) {
	switch name := target.NamespacedName; target.Kind {
	case kube.RayJob:
		s, err := rayjob.Observe(ctx, reader, name, o.jobs, now)
		if err != nil {
			return action.Outlook{}, err
		}
		return rayjob.Foresee(s, o.jobs, now), nil
	case kube.RayService:
		s, err := rayservice.Observe(ctx, reader, name, o.services)
		if err != nil {
			return action.Outlook{}, err
		}
		return rayservice.Foresee(s, o.services, now), nil
	case kube.RayCronJob:
		s, err := raycronjob.Observe(ctx, reader, name)
		if err != nil {
			return action.Outlook{}, err
		}
		return raycronjob.Foresee(s, o.jobs, now), nil
	default:
		s, err := raycluster.Observe(ctx, reader, name, o.clusters, now)
		if err != nil {
			return action.Outlook{}, err
		}
		return action.Outlook{Plan: raycluster.Plan(s, o.clusters, now)}, nil
	}
}
