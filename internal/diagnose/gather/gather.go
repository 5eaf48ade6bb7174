// Package gather reads a diagnose.Snapshot from a live cluster. It reads as much as it may and notes what it may not.
package gather

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-io/heliostat/internal/diagnose"
	"github.com/heliostat-io/heliostat/internal/rights"
)

// Tail returns the last lines of a container's log, of the life before the present one where previous is true.
type Tail func(ctx context.Context, namespace, pod, container string, previous bool) (string, error)

// Ask asks the dashboard of a head Service, through the API server.
type Ask func(ctx context.Context, namespace, service string) diagnose.Dashboard

// Rights asks the API server what the operator may do.
type Rights interface {
	// May tells whether the account of a right has it.
	May(ctx context.Context, right rights.Right) (bool, error)
	// Serves tells whether the API server knows an API group.
	Serves(group string) bool
}

// Source is where a Snapshot comes from.
type Source struct {
	Client client.Reader
	// Tail reads logs. Without it none are read.
	Tail Tail
	// Ask asks dashboards. Without it none is asked.
	Ask Ask
	// Rights asks what the operator may do. Without it nobody is asked.
	Rights Rights
	Now    func() time.Time
}

// gatherer fills one Snapshot.
type gatherer struct {
	Source
	namespace string
	snapshot  *diagnose.Snapshot
}

// Of reads all that the rules may need about one object of ray.io/v1. What cannot be read stands in the Gaps of the
// Snapshot.
func (s Source) Of(ctx context.Context, object client.Object) *diagnose.Snapshot {
	g := &gatherer{Source: s, namespace: object.GetNamespace(), snapshot: &diagnose.Snapshot{Now: s.Now()}}
	g.chain(ctx, object)
	g.pods(ctx)
	g.namespaced(ctx)
	g.clusterWide(ctx)
	g.operator(ctx)
	g.logs(ctx)
	g.dashboards(ctx)
	return g.snapshot
}

// OfOperator reads what can be seen of the operator alone.
func (s Source) OfOperator(ctx context.Context) *diagnose.Snapshot {
	g := &gatherer{Source: s, snapshot: &diagnose.Snapshot{Now: s.Now()}}
	g.operator(ctx)
	return g.snapshot
}

func (g *gatherer) gap(what string, why error) {
	g.snapshot.Gaps = append(g.snapshot.Gaps, diagnose.Gap{What: what, Why: why.Error()})
}

// read lists the objects of one kind. It returns nil only when they cannot be read.
func read[T any, L client.ObjectList](ctx context.Context, g *gatherer, list L, items func(L) []T, options ...client.ListOption) []*T {
	if err := g.Client.List(ctx, list, options...); err != nil {
		_, kind, _ := strings.Cut(fmt.Sprintf("%T", *new(T)), ".")
		g.gap(kind+"s", err)
		return nil
	}
	all := items(list)
	found := make([]*T, 0, len(all))
	for i := range all {
		found = append(found, &all[i])
	}
	return found
}

func (g *gatherer) here() client.ListOption { return client.InNamespace(g.namespace) }

// dashboards asks the dashboard of each cluster that says where its head is.
func (g *gatherer) dashboards(ctx context.Context) {
	if g.Ask == nil {
		return
	}
	g.snapshot.Dashboards = map[string]diagnose.Dashboard{}
	for _, cluster := range g.snapshot.Clusters {
		if service := cluster.Status.Head.ServiceName; service != "" && cluster.DeletionTimestamp == nil {
			g.snapshot.Dashboards[cluster.Name] = g.Ask(ctx, cluster.Namespace, service)
		}
	}
}
