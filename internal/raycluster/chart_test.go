package raycluster

import (
	"path/filepath"
	"testing"
)

// TestClustersOfTheChartAreAcceptedAndBuilt reads what charts/ray-cluster renders for two sets of values; the tests in
// test/chart keep those files up to date.
func TestClustersOfTheChartAreAcceptedAndBuilt(t *testing.T) {
	for _, name := range []string{"default", "full"} {
		t.Run(name, func(t *testing.T) {
			clusters := clustersIn(t, filepath.Join("..", "..", "test", "chart", "testdata", "ray-cluster", name+".yaml"))
			if len(clusters) != 1 {
				t.Fatalf("%d clusters, want 1", len(clusters))
			}
			buildSample(t, clusters[0])
		})
	}
}
