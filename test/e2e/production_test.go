//go:build e2e

package e2e

import (
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

func objectMeta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// TestFirstProductionCluster is the walk-through of docs/first-production-cluster.md, with its manifests as they are.
func TestFirstProductionCluster(t *testing.T) {
	g := NewWithT(t)
	w := connect(t)
	examples := filepath.Join("..", "..", "docs", "examples", "production")
	w.apply(t, filepath.Join(examples, "cluster.yaml"))
	w.apply(t, filepath.Join(examples, "s3-server.yaml"))
	w.ready(t, g, "production")
	w.apply(t, filepath.Join(examples, "job.yaml"))
	job := w.ended(t, g, "read-from-s3")
	log := w.submitterLog(t, "read-from-s3")
	t.Logf("the job printed:\n%s", log)
	g.Expect(job.Status.JobStatus).To(Equal(rayv1.JobStatusSucceeded), "message: %s", job.Status.Message)
	g.Expect(log).To(ContainSubstring("settings seen by workers: ['0', '0']"))
	g.Expect(log).To(MatchRegexp(`worker-0 -> production-workers-worker-\w+ read: hello from S3`))
	g.Expect(log).To(MatchRegexp(`worker-1 -> production-workers-worker-\w+ read: hello from S3`))

	cluster := &rayv1.RayCluster{}
	w.get(t, g, "production", cluster)
	g.Expect(cluster.Status.State).To(Equal(rayv1.ClusterStateReady), "a selected cluster outlives the job")
}
