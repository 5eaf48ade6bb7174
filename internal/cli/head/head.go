// Package head finds the RayCluster behind an object, its head, and what shows Ray that a client may talk to it.
package head

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
	"github.com/heliostat-io/heliostat/internal/raycluster"
)

// ClusterName is the name of the RayCluster behind an object: of a RayJob the one in use, of a RayService the one that
// serves, or else the one that is being prepared. The error says that there is none.
func ClusterName(object client.Object) (string, error) {
	var name string
	switch o := object.(type) {
	case *rayv1.RayCluster:
		return o.Name, nil
	case *rayv1.RayJob:
		if name = o.Status.RayClusterName; name == "" {
			name = o.Spec.ClusterSelector[rayv1.LabelCluster]
		}
		if name == "" {
			return "", fmt.Errorf("the RayJob %s/%s has no RayCluster (its phase is %q)", o.Namespace, o.Name, o.Status.JobDeploymentStatus)
		}
	case *rayv1.RayService:
		if name = o.Status.ActiveServiceStatus.RayClusterName; name == "" {
			name = o.Status.PendingServiceStatus.RayClusterName
		}
		if name == "" {
			return "", fmt.Errorf("the RayService %s/%s has no RayCluster yet", o.Namespace, o.Name)
		}
	default:
		return "", fmt.Errorf("%s/%s is neither a RayCluster, a RayJob nor a RayService; a RayCronJob has no RayCluster of its own, its RayJobs have",
			object.GetNamespace(), object.GetName())
	}
	return name, nil
}

// Cluster reads the RayCluster behind an object.
func Cluster(ctx context.Context, c client.Reader, object client.Object) (*rayv1.RayCluster, error) {
	if cluster, ok := object.(*rayv1.RayCluster); ok {
		return cluster, nil
	}
	name, err := ClusterName(object)
	if err != nil {
		return nil, err
	}
	cluster := &rayv1.RayCluster{}
	if err := c.Get(ctx, types.NamespacedName{Namespace: object.GetNamespace(), Name: name}, cluster); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("no RayCluster %q in namespace %q, although %q names it as its own", name, object.GetNamespace(), object.GetName())
		}
		return nil, fmt.Errorf("read RayCluster %s/%s: %w", object.GetNamespace(), name, err)
	}
	return cluster, nil
}

// Find reads the object that a user named and the RayCluster behind it.
func Find(ctx context.Context, c client.Reader, namespace, argument string) (*rayv1.RayCluster, kube.Target, error) {
	object, target, err := kube.Find(ctx, c, namespace, argument)
	if err != nil {
		return nil, target, err
	}
	cluster, err := Cluster(ctx, c, object)
	return cluster, target, err
}

// Service is the head Service of a cluster: the one in its status, or the one that it will have.
func Service(cluster *rayv1.RayCluster) types.NamespacedName {
	name := cluster.Status.Head.ServiceName
	if name == "" {
		name = raycluster.HeadServiceName(cluster)
	}
	return types.NamespacedName{Namespace: cluster.Namespace, Name: name}
}
