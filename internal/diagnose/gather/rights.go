package gather

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/heliostat-io/heliostat/internal/diagnose"
	"github.com/heliostat-io/heliostat/internal/rights"
)

// OperatorRights is what a Gap says is missing when nobody could be asked what the operator may do.
const OperatorRights = "rights of the operator"

const (
	// mostAsked is how many rights are asked for at most, which is about three namespaces.
	mostAsked = 400
	// askedAtOnce is how many questions are under way at once.
	askedAtOnce = 8
)

// refused asks what the operator's account may not do of what it needs. Of KubeRay's nobody here knows what it needs.
func (g *gatherer) refused(ctx context.Context) {
	if g.Rights == nil {
		return
	}
	for _, deployment := range g.snapshot.Operator.Deployments {
		if !diagnose.IsHeliostat(deployment) {
			continue
		}
		if err := g.refusedTo(ctx, deployment); err != nil {
			g.gap(OperatorRights, err)
		}
	}
}

func (g *gatherer) refusedTo(ctx context.Context, deployment *appsv1.Deployment) error {
	cfg, _, err := Configuration(ctx, g.Client, deployment)
	if err != nil {
		return err
	}
	needed := rights.Needed(cfg.Use(deployment.Namespace, g.Rights.Serves))
	if g.namespace != "" {
		needed = rights.For(needed, cfg.WatchNamespaces, g.namespace)
	}
	all := len(needed)
	needed = needed[:min(all, mostAsked)]
	for i := range needed {
		needed[i].User = account(deployment)
	}
	// The first one alone: who may not ask for it may not ask for the others.
	answers, err := rights.Ask(ctx, needed[:1], 1, g.Rights.May)
	if err != nil {
		return fmt.Errorf("what it may do is not known: %w", err)
	}
	others, err := rights.Ask(ctx, needed[1:], askedAtOnce, g.Rights.May)
	for right, allowed := range others {
		answers[right] = allowed
	}
	o := &g.snapshot.Operator
	if refused := rights.Refused(needed, answers); o.Refused == nil {
		o.Refused = refused
	} else {
		o.Refused = append(o.Refused, refused...)
	}
	switch {
	case err != nil:
		return fmt.Errorf("not all is known of what it may do: %w", err)
	case all > len(needed):
		return fmt.Errorf("only %d of %d rights were asked for; \"diagnose\" asks for those in the namespace of its object", len(needed), all)
	default:
		return nil
	}
}

// account is how the API server names the operator.
func account(deployment *appsv1.Deployment) string {
	name := deployment.Spec.Template.Spec.ServiceAccountName
	if name == "" {
		name = "default"
	}
	return "system:serviceaccount:" + deployment.Namespace + ":" + name
}
