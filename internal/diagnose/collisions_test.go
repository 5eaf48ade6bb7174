package diagnose

import (
	"testing"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// TestCollisionsNameWhatIsInTheWay goes by the sentences that the operator writes into its conditions.
func TestCollisionsNameWhatIsInTheWay(t *testing.T) {
	o := clusterObject(&rayv1.RayCluster{})
	o.meta.Name = "demo"
	for message, want := range map[string]string{
		"the cluster needs Service demo-head-svc, but one of that name exists already and has no owner": `Run "kubectl delete service demo-head-svc" if nobody needs it, ` +
			"or give RayCluster demo another metadata.name.",
		"the service needs Service chat-serve-svc, but one of that name exists already and belongs to someone else": `Run "kubectl delete service chat-serve-svc" if nobody ` +
			"needs it, or give RayCluster demo another metadata.name.",
		"Job ns/train exists and belongs to someone else; the job goes on when it is gone": `Run "kubectl delete job train" if nobody needs it, or give RayCluster demo another metadata.name.`,
		"the cluster needs Secret demo, but one of that name exists already and has no owner; Pod stray carries the label ray.io/cluster of this cluster, but has no owner": `Run ` +
			`"kubectl delete secret demo" and "kubectl label pod stray ray.io/cluster-" if nobody needs them, or give RayCluster demo another metadata.name.`,
		"the cluster needs Service s, but one of that name exists already and belongs to RayCluster other (uid 7)": "Give RayCluster demo another metadata.name: " +
			"Service s is that of RayCluster other, which would make it again.",
		"Pod demo-head is left from an earlier RayCluster of this name (uid 7)": "Rename or delete those objects if nobody needs them, or give RayCluster demo another metadata.name.",
	} {
		if got := collisionNext(o, message); got != want {
			t.Errorf("%s:\ngot  %q\nwant %q", message, got, want)
		}
	}
}
