//go:build e2e

package e2e

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// TestSmokeRayCluster: a cluster becomes ready, Ray sees every node, and a killed worker comes back and registers.
func TestSmokeRayCluster(t *testing.T) {
	g := NewWithT(t)
	w := connect(t)
	name := w.apply(t, sample(t, "ray-cluster.sample.yaml", "raycluster.yaml"))[0].GetName()
	cluster := w.ready(t, g, name)
	nodes := int(cluster.Status.DesiredWorkerReplicas) + 1

	status, err := w.exec(t.Context(), w.head(t, g, name), "ray", "status")
	g.Expect(err).ToNot(HaveOccurred())
	t.Logf("ray status:\n%s", status)
	g.Expect(status).To(ContainSubstring("Active:"))
	g.Expect(w.activeNodes(t, g, name)).To(ContainSubstring("alive %d", nodes))

	workers := client.MatchingLabels{rayv1.LabelCluster: name, rayv1.LabelNodeType: rayv1.NodeTypeWorker}
	killed := w.pods(t, workers)[0]
	g.Expect(w.Delete(t.Context(), &killed, client.GracePeriodSeconds(0))).To(Succeed())
	g.Eventually(func() []string {
		var names []string
		for _, pod := range w.pods(t, workers) {
			names = append(names, pod.Name)
		}
		return names
	}, podPatience, time.Second).Should(And(HaveLen(nodes-1), Not(ContainElement(killed.Name))), "a new worker under a new name")
	w.ready(t, g, name)
	g.Eventually(func() string { return w.activeNodes(t, g, name) }, podPatience, 5*time.Second).Should(ContainSubstring("alive %d", nodes))
}

// TestSmokeRayJob: a job in the default mode runs to its end on real Ray, and its own print lines are in the log.
func TestSmokeRayJob(t *testing.T) {
	g := NewWithT(t)
	w := connect(t)
	path := sample(t, "ray-job.sample.yaml", "rayjob.yaml")
	name := w.apply(t, path)[0].GetName()
	job := w.ended(t, g, name)
	g.Expect(job.Status.JobDeploymentStatus).To(Equal(rayv1.JobDeploymentStatusComplete), "message: %s", job.Status.Message)
	g.Expect(job.Status.JobStatus).To(Equal(rayv1.JobStatusSucceeded))
	log := w.submitterLog(t, name)
	t.Logf("the job printed:\n%s", log)
	wanted := []any{"test_counter got 1", "test_counter got 5"}
	if name == "count-primes" {
		wanted = []any{"primes below 40000: 4203"}
	}
	for _, line := range wanted {
		g.Expect(log).To(ContainSubstring(line.(string)))
	}
}

// TestSmokeRayJobOverHTTP: the operator itself submits, and the cluster goes when the job is done.
func TestSmokeRayJobOverHTTP(t *testing.T) {
	g := NewWithT(t)
	w := connect(t)
	name := w.apply(t, "testdata/rayjob-http.yaml")[0].GetName()
	job := w.ended(t, g, name)
	g.Expect(job.Status.JobStatus).To(Equal(rayv1.JobStatusSucceeded), "message: %s", job.Status.Message)
	g.Expect(w.pods(t, client.MatchingLabels{"job-name": name})).To(BeEmpty(), "HTTPMode has no submitter")
	g.Eventually(func() error {
		return w.Get(context.Background(), client.ObjectKey{Namespace: w.namespace, Name: job.Status.RayClusterName}, &rayv1.RayCluster{})
	}, podPatience, time.Second).ShouldNot(Succeed())
}
