package raycluster

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

func TestTheStatusIsMirrored(t *testing.T) {
	early, late := metav1.NewTime(planNow), metav1.NewTime(planNow.Add(time.Hour))
	cluster := demoCluster()
	cluster.Status = rayv1.RayClusterStatus{LastUpdateTime: &early, ReadyWorkerReplicas: 1, Incarnations: map[string]int64{"a": 1},
		RedisStorages: []rayv1.RedisStorage{{}}, LastCensus: &rayv1.RayClusterCensus{}, Recoveries: []rayv1.RayClusterRecovery{{Pod: "lost"}}}
	var copied rayv1.RayClusterStatus
	MirrorStatus(&copied, cluster)
	if copied.ReadyWorkerReplicas != 1 || len(copied.Recoveries) != 1 || copied.Recoveries[0].Pod != "lost" {
		t.Errorf("the copy is %+v", copied)
	}
	if copied.Incarnations != nil || copied.RedisStorages != nil || copied.LastCensus != nil {
		t.Errorf("the copy has what only the operator needs: %+v", copied)
	}
	cluster.Status.LastUpdateTime = &late
	MirrorStatus(&copied, cluster)
	if !copied.LastUpdateTime.Equal(&early) {
		t.Error("a write that changed nothing changes the copy")
	}
	cluster.Status.ReadyWorkerReplicas = 2
	MirrorStatus(&copied, cluster)
	if !copied.LastUpdateTime.Equal(&late) || copied.ReadyWorkerReplicas != 2 {
		t.Errorf("after a change the copy is %+v", copied)
	}
}
