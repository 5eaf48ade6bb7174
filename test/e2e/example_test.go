//go:build e2e

package e2e

import (
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// TestOurExamples runs what the README shows, as it stands.
func TestOurExamples(t *testing.T) {
	g := NewWithT(t)
	w := connect(t)
	w.apply(t, filepath.Join("..", "..", "docs", "examples", "rayjob.yaml"))
	job := w.ended(t, g, "count-primes")
	g.Expect(job.Status.JobStatus).To(Equal(rayv1.JobStatusSucceeded), "message: %s", job.Status.Message)
	g.Expect(w.submitterLog(t, "count-primes")).To(ContainSubstring("primes below 40000: 4203"))

	w.apply(t, filepath.Join("..", "..", "docs", "examples", "raycluster.yaml"))
	w.ready(t, g, "first")
}
