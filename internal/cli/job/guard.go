package job

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
)

// overError says that there is nothing left to talk to.
type overError struct{ why string }

func (e overError) Error() string { return e.why }

// guarded does something with the dashboard, and stops it when nothing can come of it any more. The error is an overError
// when it was stopped because the RayJob or its cluster has ended.
func (r *run) guarded(ctx context.Context, do func(ctx context.Context) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	var guard sync.WaitGroup
	guard.Go(func() { r.guard(ctx, stop) })
	defer guard.Wait()
	defer stop(nil)
	err := do(ctx)
	var over overError
	if err != nil && errors.As(context.Cause(ctx), &over) {
		return over
	}
	return err
}

// guard stops what may never end by itself: because the head was replaced behind the connection, or because the RayJob or its
// cluster has ended, which is seen twice before it counts, so that the rest of a log can come.
func (r *run) guard(ctx context.Context, stop context.CancelCauseFunc) {
	for seen := 0; kube.Sleep(ctx, r.pace.guard) == nil; {
		if r.link.astray(ctx) {
			r.progress.say("The head was replaced.")
			r.link.forwarding.Close()
			return
		}
		why := r.over(ctx)
		if why != "" {
			seen++
		}
		if seen > 1 {
			stop(overError{why})
			return
		}
	}
}

// over says why the job cannot go on, or "" while it can or nobody knows.
func (r *run) over(ctx context.Context) string {
	job := r.plan.job.DeepCopy()
	err := r.client.Get(ctx, client.ObjectKeyFromObject(job), job)
	switch {
	case apierrors.IsNotFound(err), err == nil && job.UID != r.uid:
		return fmt.Sprintf("RayJob %s/%s was deleted", job.Namespace, job.Name)
	case err != nil:
		return ""
	}
	if text, isOver := ended(job); isOver {
		return fmt.Sprintf("RayJob %s/%s is %s", job.Namespace, job.Name, text)
	}
	cluster, now := r.link.cluster, &rayv1.RayCluster{}
	err = r.client.Get(ctx, client.ObjectKeyFromObject(cluster), now)
	if apierrors.IsNotFound(err) || err == nil && (now.UID != cluster.UID || now.DeletionTimestamp != nil) {
		return fmt.Sprintf("RayCluster %s/%s was deleted", cluster.Namespace, cluster.Name)
	}
	return ""
}
