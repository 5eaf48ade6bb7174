package raycluster

import (
	"k8s.io/apimachinery/pkg/api/equality"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// MirrorStatus brings the copy of a cluster's status, which stands in that of its RayJob or RayService, up to date: with the losses
// that it tells of, and without what only the operator needs. That the cluster was written to is no change.
func MirrorStatus(into *rayv1.RayClusterStatus, cluster *rayv1.RayCluster) {
	mirror := cluster.Status.DeepCopy()
	mirror.Incarnations, mirror.RedisStorages, mirror.LastCensus = nil, nil, nil
	before := into.DeepCopy()
	before.LastUpdateTime = mirror.LastUpdateTime
	if !equality.Semantic.DeepEqual(before, mirror) {
		*into = *mirror
	}
}
