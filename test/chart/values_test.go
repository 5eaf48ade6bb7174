package chart

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "rewrite testdata from what the chart renders")

// start is how the operator is started. The files in testdata are read by the test of internal/config too, which
// proves that the operator understands what the chart renders.
type start struct {
	Args []string `json:"args"`
	// Config is the configuration file, in ConfigMap mode.
	Config string `json:"config,omitempty"`
}

func TestArguments(t *testing.T) {
	cases := map[string]struct {
		file   string
		values string
	}{
		"given nothing": {file: "default.yaml"},
		"given every value that becomes a flag": {
			file: "flags.yaml",
			values: `{watchNamespace: [b, a], batchScheduler: {name: yunikorn}, useKubernetesProxy: true,
				leaderElectionEnabled: false, reconcileConcurrency: 1000000, kubeClient: {qps: 2.5, burst: 3000000},
				logging: {baseDir: /logs, fileName: x.log, stdoutEncoder: console, fileEncoder: console},
				metrics: {enabled: false}, featureGates: [{name: RayCronJob, enabled: true}], fencing: off}`,
		},
		"given no feature gates, the old scheduler switch and one namespace": {
			file:   "single-namespace.yaml",
			values: `{featureGates: [], batchScheduler: {enabled: true}, singleNamespaceInstall: true}`,
		},
		"given ConfigMap mode": {
			file: "configmap.yaml", values: `{configuration: {enabled: true}}`,
		},
		"given ConfigMap mode and every value that becomes a field": {
			file: "configmap-full.yaml",
			values: `{watchNamespace: [b, a], batchScheduler: {name: volcano}, useKubernetesProxy: true,
				leaderElectionEnabled: false, reconcileConcurrency: 4, kubeClient: {qps: 2.5, burst: 3},
				logging: {baseDir: /logs, fileName: x.log, stdoutEncoder: console, fileEncoder: console},
				metrics: {enabled: false}, featureGates: [{name: RayCronJob, enabled: true}], fencing: off,
				configuration: {enabled: true, defaultContainerEnvs: [{name: K, value: "1"}], defaultPodAnnotations: {a: "1"},
				defaultPodLabels: {l: "2"}, headSidecarContainers: [{name: h, image: i}], workerSidecarContainers: [{name: w, image: i}]}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := render(t, tc.values)
			got := start{Args: r.container(t).Args}
			if r.has(configName) {
				var cm corev1.ConfigMap
				r.into(t, configName, &cm)
				got.Config = cm.Data["config.yaml"]
			}
			path := filepath.Join("testdata", tc.file)
			if *update {
				text, err := yaml.Marshal(got)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, text, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatalf("%v (go test -update writes it)", err)
			}
			var want start
			if err := yaml.UnmarshalStrict(text, &want); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s (-want +got; go test -update rewrites it):\n%s", path, d)
			}
		})
	}
}

func TestWrongValuesAreRefused(t *testing.T) {
	cases := map[string]struct {
		values string
		// want are pieces of the message.
		want []string
	}{
		"a value that does not exist":        {values: "replica: 3", want: []string{"'replica' not allowed"}},
		"a nested value that does not":       {values: "image: {repo: x}", want: []string{"/image", "'repo' not allowed"}},
		"replicas as a word":                 {values: "replicas: two", want: []string{"/replicas", "got string, want integer"}},
		"a switch as a word":                 {values: `rbacEnable: "yes"`, want: []string{"/rbacEnable", "got string, want boolean"}},
		"namespaces as one text":             {values: "watchNamespace: a", want: []string{"/watchNamespace", "array"}},
		"a namespace that cannot be":         {values: "watchNamespace: [A]", want: []string{"/watchNamespace/0", "'A'"}},
		"no workers":                         {values: "reconcileConcurrency: 0", want: []string{"/reconcileConcurrency", "minimum"}},
		"a negative burst":                   {values: "kubeClient: {burst: -1}", want: []string{"/kubeClient/burst", "minimum"}},
		"qps as a word":                      {values: "kubeClient: {qps: many}", want: []string{"/kubeClient/qps", "want number"}},
		"an unknown batch scheduler":         {values: "batchScheduler: {name: default}", want: []string{"/batchScheduler/name", "volcano"}},
		"an unknown gate":                    {values: "featureGates: [{name: X, enabled: true}]", want: []string{"/featureGates/0/name", "RayCronJob"}},
		"an unknown way of fencing":          {values: "fencing: on", want: []string{"/fencing", "required"}},
		"a fence without a leader":           {values: "{fencing: required, leaderElectionEnabled: false}", want: []string{"only a leader can be fenced"}},
		"an unknown encoder":                 {values: "logging: {stdoutEncoder: xml}", want: []string{"/logging/stdoutEncoder", "console"}},
		"a label that is a number":           {values: "labels: {a: 1}", want: []string{"/labels/a", "want string"}},
		"a budget that is no share":          {values: "podDisruptionBudget: {minAvailable: half}", want: []string{"/podDisruptionBudget/minAvailable", "half"}},
		"an environment variable, no name":   {values: "env: [{value: x}]", want: []string{"/env/0", "name"}},
		"a Service port that is too big":     {values: "service: {port: 70000}", want: []string{"/service/port", "maximum"}},
		"two ways of choosing volcano":       {values: "batchScheduler: {enabled: true, name: volcano}", want: []string{"must not be set together"}},
		"a probe with a path of its own":     {values: "livenessProbe: {httpGet: {}}", want: []string{"/livenessProbe", "'httpGet' not allowed"}},
		"a pull policy in the wrong letters": {values: "image: {pullPolicy: always}", want: []string{"/image/pullPolicy", "Always"}},
	}
	for name, tc := range cases {
		t.Run("given "+name, func(t *testing.T) {
			_, err := tryRender(t, tc.values)
			if err == nil {
				t.Fatal("the chart accepted it")
			}
			for _, piece := range tc.want {
				if !strings.Contains(err.Error(), piece) {
					t.Errorf("%q is missing in the message:\n%v", piece, err)
				}
			}
		})
	}
}
