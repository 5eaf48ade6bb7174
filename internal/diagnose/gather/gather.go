// Package gather reads a diagnose.Snapshot from a live cluster. It reads as much as it may and notes what it may not.
package gather

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-io/heliostat/internal/diagnose"
	"github.com/heliostat-io/heliostat/internal/ray"
)

// Tail returns the last lines of a container's log, of the life before the present one where previous is true.
type Tail func(ctx context.Context, namespace, pod, container string, previous bool) (string, error)

// Ask asks the dashboard of a head Service, through the API server.
type Ask func(ctx context.Context, namespace, service string) diagnose.Dashboard

// Source is where a Snapshot comes from.
type Source struct {
	Client client.Reader
	// Tail reads logs. Without it none are read.
	Tail Tail
	// Ask asks dashboards. Without it none is asked.
	Ask Ask
	Now func() time.Time
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

// logs reads the ends of the logs of containers in trouble, a bounded number of them.
func (g *gatherer) logs(ctx context.Context) {
	if g.Tail == nil {
		return
	}
	g.snapshot.Logs = map[string]string{}
	for _, pod := range g.snapshot.Pods {
		for _, status := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
			if len(g.snapshot.Logs) >= maxLogs {
				return
			}
			g.log(ctx, pod, status)
		}
	}
}

// maxLogs bounds how many logs are read: a hundred workers that fail alike say the same.
const maxLogs = 20

func (g *gatherer) log(ctx context.Context, pod *corev1.Pod, status corev1.ContainerStatus) {
	ended := status.State.Terminated != nil && status.State.Terminated.ExitCode != 0
	again := status.RestartCount > 0 && !status.Ready
	stuck := status.State.Running != nil && !status.Ready && g.snapshot.Now.Sub(status.State.Running.StartedAt.Time) > time.Minute
	// That the autoscaler says nothing at all is a finding, too.
	if !ended && !again && !stuck && status.Name != ray.AutoscalerContainer {
		return
	}
	text, err := g.Tail(ctx, pod.Namespace, pod.Name, status.Name, again && !ended)
	if err != nil {
		g.gap(fmt.Sprintf("log of container %s of Pod %s", status.Name, pod.Name), err)
		return
	}
	g.snapshot.Logs[diagnose.LogKey(pod.Name, status.Name)] = text
}

func deployments(l *appsv1.DeploymentList) []appsv1.Deployment { return l.Items }
