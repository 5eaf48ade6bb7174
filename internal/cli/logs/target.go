package logs

import (
	"context"
	"errors"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/head"
)

// errOver says that nothing more will be logged.
var errOver = errors.New("nothing more will be logged")

// errGone says so because the object was deleted.
var errGone = fmt.Errorf("it was deleted: %w", errOver)

// chooseAgain reads the object again and says which Pods are meant now. The error is errOver when the object or its cluster
// is gone, and errGone when it is the object.
func (r *reader) chooseAgain(ctx context.Context) (choice, error) {
	object := r.target.Kind.New()
	err := r.client.Get(ctx, r.target.NamespacedName, object)
	switch {
	case apierrors.IsNotFound(err), err == nil && object.GetUID() != r.uid:
		return choice{}, errGone
	case err != nil:
		return choice{}, fmt.Errorf("read %s: %w", r.target, err)
	case r.options.source != sourceSubmitter && r.lostForGood(ctx, object):
		return choice{}, errOver
	}
	return r.choose(ctx, object)
}

// choose says which Pods are meant, given the object.
func (r *reader) choose(ctx context.Context, object client.Object) (choice, error) {
	if r.options.source != sourceSubmitter {
		name, err := head.ClusterName(object)
		if err != nil {
			return choice{}, err
		}
		return r.ofCluster(ctx, object.GetNamespace(), name)
	}
	job, ok := object.(*rayv1.RayJob)
	if !ok {
		return choice{}, fmt.Errorf("%s has no submitter, only a RayJob may have one", r.target)
	}
	return ofSubmitter(job)
}

// lostForGood tells whether the cluster of a RayJob is gone and no other will follow. Clusters of RayServices are followed by
// others.
func (r *reader) lostForGood(ctx context.Context, object client.Object) bool {
	job, ok := object.(*rayv1.RayJob)
	if !ok || !rayv1.IsJobDeploymentTerminal(job.Status.JobDeploymentStatus) {
		return false
	}
	name, err := head.ClusterName(job)
	return err != nil || apierrors.IsNotFound(r.client.Get(ctx, types.NamespacedName{Namespace: job.Namespace, Name: name}, &rayv1.RayCluster{}))
}

// same tells whether the same Pods are meant.
func (c *choice) same(other *choice) bool {
	return c.namespace == other.namespace && maps.Equal(c.labels, other.labels) && c.pod == other.pod && c.replica == other.replica
}
