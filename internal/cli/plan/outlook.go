package plan

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
	"github.com/heliostat-io/heliostat/internal/raycluster"
	"github.com/heliostat-io/heliostat/internal/raycronjob"
	"github.com/heliostat-io/heliostat/internal/rayjob"
	"github.com/heliostat-io/heliostat/internal/rayservice"
)

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
