package raycluster

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Observe reads what a plan for a RayCluster is made from, for somebody who looks once and is no operator: what an operator
// remembers of its earlier passes, such as refused writes, is not known. The reader must serve OwnerUIDIndex and
// EventPodIndex. A cluster that is not there gives an empty Snapshot.
func Observe(ctx context.Context, reader client.Reader, name types.NamespacedName, settings Settings, now time.Time) (Snapshot, error) {
	snapshot, err := observe(ctx, reader, name, settings)
	if err != nil || snapshot.Cluster == nil {
		return snapshot, err
	}
	snapshot.LastValid = NewSpecs(settings).Note(snapshot.Cluster)
	if snapshot.LastValid == nil {
		snapshot.LastValid = snapshot.storedSpec()
	}
	snapshot.Recoveries = snapshot.Cluster.Status.Recoveries
	snapshot.Streaks = NewStreaks().Note(snapshot.Cluster, snapshot.Pods, now)
	return snapshot, nil
}
