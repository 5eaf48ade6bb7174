package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestParseUnderstandsTheChart reads what charts/heliostat renders for several sets of values; the tests in test/chart
// keep those files up to date.
func TestParseUnderstandsTheChart(t *testing.T) {
	full := func(c *Config) {
		c.WatchNamespaces = []string{"a", "b"}
		c.UseKubernetesProxy = true
		c.LeaderElection.Enabled, c.LeaderElection.Fencing = false, FencingOff
		c.QPS = 2.5
		c.Logging = Logging{StdoutEncoder: "console", FileEncoder: "console", FilePath: "/logs/x.log"}
		c.FeatureGates = MakeFeatureGates(map[Gate]bool{RayCronJob: true})
	}
	cases := map[string]func(*Config){
		"default.yaml":   func(c *Config) { c.EnableMetrics = true },
		"configmap.yaml": func(c *Config) { c.EnableMetrics = true },
		"single-namespace.yaml": func(c *Config) {
			c.EnableMetrics = true
			c.WatchNamespaces = []string{"ray-system"}
			c.BatchScheduler = "volcano"
		},
		"flags.yaml": func(c *Config) {
			full(c)
			c.BatchScheduler, c.ReconcileConcurrency, c.Burst = "yunikorn", 1000000, 3000000
		},
		"configmap-full.yaml": func(c *Config) {
			full(c)
			c.BatchScheduler, c.ReconcileConcurrency, c.Burst = "volcano", 4, 3
		},
	}
	folder := filepath.Join("..", "..", "test", "chart", "testdata")
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil || len(files) != len(cases) {
		t.Fatalf("%d files in %s (%v), want %d", len(files), folder, err, len(cases))
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			change, known := cases[filepath.Base(path)]
			if !known {
				t.Fatal("this file has no expectation here")
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var start struct {
				Args   []string
				Config string
			}
			if err := yaml.Unmarshal(text, &start); err != nil {
				t.Fatal(err)
			}
			got, err := parse(start.Args, nil, start.Config)
			if err != nil {
				t.Fatalf("Parse: %v", err)
			}
			for _, warning := range got.Warnings {
				if !strings.HasSuffix(warning, notYet) {
					t.Errorf("unexpected warning: %s", warning)
				}
			}
			want := defaultConfig()
			change(&want)
			for _, pods := range []*Config{&want, &got} {
				pods.HeadSidecarContainers, pods.WorkerSidecarContainers, pods.DefaultContainerEnvs = nil, nil, nil
				pods.DefaultPodAnnotations, pods.DefaultPodLabels = nil, nil
				pods.Warnings = nil
			}
			if d := diff(want, got); d != "" {
				t.Errorf("Config (-want +got):\n%s", d)
			}
		})
	}
}
