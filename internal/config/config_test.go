package config

import (
	"errors"
	"flag"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	ctrlzap "sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// notYet is the end of the warnings about what is accepted only.
const notYet = " is accepted, but this version does not act on it"

// configPath is where the file of a test case stands.
const configPath = "/etc/kuberay/config.yaml"

// defaultConfig is what an operator without arguments, file and variables works with.
func defaultConfig() Config {
	return Config{
		MetricsAddr: ":8080",
		ProbeAddr:   ":8082",
		QPS:         100,
		Burst:       200,
		LeaderElection: LeaderElection{
			Enabled:       true,
			LeaseDuration: 15 * time.Second,
			RenewDeadline: 10 * time.Second,
			RetryPeriod:   2 * time.Second,
			Fencing:       FencingAuto,
		},
		ReconcileConcurrency: 1,
		Logging:              Logging{StdoutEncoder: "json", FileEncoder: "json"},
		Environment: Environment{
			ClusterDomain:            "cluster.local",
			InjectInitContainer:      true,
			InjectProbes:             true,
			GCSFTRedisCleanup:        true,
			ZeroDowntime:             true,
			RayClusterResync:         300 * time.Second,
			RayJobTransitionGrace:    300 * time.Second,
			RayJobStatusCheckTimeout: 300 * time.Second,
		},
		FeatureGates: MakeFeatureGates(nil),
	}
}

// parse calls Parse with a map as environment and at most one file.
func parse(args []string, env map[string]string, file string) (Config, error) {
	return Parse(args,
		func(name string) string { return env[name] },
		func(path string) ([]byte, error) {
			if path != configPath || file == "" {
				return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
			}
			return []byte(file), nil
		})
}

func diff(want, got Config) string {
	return cmp.Diff(want, got, cmp.AllowUnexported(FeatureGates{}), cmpopts.IgnoreTypes(ctrlzap.Options{}))
}

func TestParse(t *testing.T) {
	const head = "apiVersion: config.ray.io/v1alpha1\nkind: Configuration\n"
	cases := map[string]struct {
		args []string
		env  map[string]string
		file string
		want func(*Config)
	}{
		"given nothing, everything has its default": {
			want: func(*Config) {},
		},
		"given every flag, each value arrives": {
			args: []string{
				"--metrics-addr=127.0.0.1:9", "--health-probe-bind-address=0", "--enable-leader-election=false",
				"--leader-election-namespace=ops", "--reconcile-concurrency=7", "--watch-namespace", "b, a,,b",
				"--log-file-path=/logs/x", "--log-file-encoder=console", "--log-stdout-encoder=console",
				"--batch-scheduler=yunikorn", "--use-kubernetes-proxy", "--enable-metrics", "--qps=2.5", "--burst=3",
				"--kubeconfig=/k", "--feature-gates=RayCronJob=true",
				"--leader-election-lease-duration=30s", "--leader-election-renew-deadline=20s",
				"--leader-election-retry-period=5s", "--fencing=off",
			},
			want: func(c *Config) {
				c.MetricsAddr, c.ProbeAddr = "127.0.0.1:9", "0"
				c.LeaderElection = LeaderElection{
					Namespace: "ops", LeaseDuration: 30 * time.Second, RenewDeadline: 20 * time.Second,
					RetryPeriod: 5 * time.Second, Fencing: FencingOff,
				}
				c.ReconcileConcurrency = 7
				c.WatchNamespaces = []string{"a", "b"}
				c.Logging = Logging{StdoutEncoder: "console", FileEncoder: "console", FilePath: "/logs/x"}
				c.BatchScheduler = "yunikorn"
				c.UseKubernetesProxy, c.EnableMetrics = true, true
				c.QPS, c.Burst = 2.5, 3
				c.Kubeconfig = "/k"
				c.FeatureGates = MakeFeatureGates(map[Gate]bool{RayCronJob: true})
				c.Warnings = []string{"batch scheduler yunikorn" + notYet}
			},
		},
		"given flags with one dash and an empty argument between them, all are read": {
			args: []string{"-burst", "9", "", "-enable-metrics"},
			want: func(c *Config) { c.Burst, c.EnableMetrics = 9, true },
		},
		"given the old batch scheduler switch, volcano is chosen": {
			args: []string{"--enable-batch-scheduler"},
			want: func(c *Config) {
				c.BatchScheduler = "volcano"
				c.Warnings = []string{"batch scheduler volcano" + notYet}
			},
		},
		"given the old upgrade switch, it is only warned about": {
			args: []string{"--forced-cluster-upgrade"},
			want: func(c *Config) {
				c.Warnings = []string{"flag --forced-cluster-upgrade is accepted for compatibility and has no effect"}
			},
		},
		"given only the library's encoder flag, it counts": {
			args: []string{"--zap-encoder=console"},
			want: func(c *Config) { c.Logging.StdoutEncoder = "console" },
		},
		"given both encoder flags, the operator's own counts": {
			args: []string{"--zap-encoder=console", "--log-stdout-encoder=json"},
			want: func(*Config) {},
		},
		"given negative qps, there is no limit and burst may be zero": {
			args: []string{"--qps=-1", "--burst=0"},
			want: func(c *Config) { c.QPS, c.Burst = -1, 0 },
		},
		"given KUBECONFIG and no flag, the variable counts": {
			env:  map[string]string{"KUBECONFIG": "/a:/b"},
			want: func(c *Config) { c.Kubeconfig = "/a:/b" },
		},
		"given a file with nothing but its kind, everything has its default": {
			args: []string{"--config", configPath},
			file: head,
			want: func(*Config) {},
		},
		"given a file with every field, each value arrives": {
			args: []string{"--config", configPath},
			file: head + `
metricsAddr: ":1"
probeAddr: ":2"
enableLeaderElection: false
leaderElectionNamespace: ops
reconcileConcurrency: 4
watchNamespace: b,a
logFile: /logs/x
logFileEncoder: console
logStdoutEncoder: console
batchScheduler: volcano
headSidecarContainers: [{name: h, image: i}]
workerSidecarContainers: [{name: w, image: i}]
defaultContainerEnvs: [{name: K, value: v}]
defaultPodAnnotations: {a: "1"}
defaultPodLabels: {l: "2"}
useKubernetesProxy: true
deleteRayJobAfterJobFinishes: true
enableMetrics: true
qps: 1.5
burst: 2
`,
			want: func(c *Config) {
				c.MetricsAddr, c.ProbeAddr = ":1", ":2"
				c.LeaderElection.Enabled, c.LeaderElection.Namespace = false, "ops"
				c.ReconcileConcurrency = 4
				c.WatchNamespaces = []string{"a", "b"}
				c.Logging = Logging{StdoutEncoder: "console", FileEncoder: "console", FilePath: "/logs/x"}
				c.BatchScheduler = "volcano"
				c.HeadSidecarContainers = []corev1.Container{{Name: "h", Image: "i"}}
				c.WorkerSidecarContainers = []corev1.Container{{Name: "w", Image: "i"}}
				c.DefaultContainerEnvs = []corev1.EnvVar{{Name: "K", Value: "v"}}
				c.DefaultPodAnnotations = map[string]string{"a": "1"}
				c.DefaultPodLabels = map[string]string{"l": "2"}
				c.UseKubernetesProxy, c.EnableMetrics = true, true
				c.Environment.DeleteRayJobAfterFinish = true
				c.QPS, c.Burst = 1.5, 2
				c.Warnings = []string{"batch scheduler volcano" + notYet}
			},
		},
		"given a file that spells out empty values, they mean the defaults": {
			args: []string{"--config", configPath},
			file: head + "metricsAddr: \"\"\nprobeAddr: \"\"\nreconcileConcurrency: 0\nlogFileEncoder: \"\"\n" +
				"logStdoutEncoder: \"\"\nfencing: \"\"\nqps: null\nenableLeaderElection: null\n",
			want: func(*Config) {},
		},
		"given a file and flags, flags with a field are ignored with a warning and the others count": {
			args: []string{
				"--config", configPath, "--qps=1", "--burst=1", "--feature-gates=RayClusterMTLS=true",
				"--log-file-encoder=console", "--zap-log-level=debug", "--leader-election-lease-duration=20s",
			},
			file: head + "qps: 50\nlogFileEncoder: json\nlogStdoutEncoder: console\n",
			want: func(c *Config) {
				c.QPS = 50
				c.FeatureGates = MakeFeatureGates(map[Gate]bool{RayClusterMTLS: true})
				c.Logging = Logging{StdoutEncoder: "console", FileEncoder: "console"}
				c.LeaderElection.LeaseDuration = 20 * time.Second
				c.Warnings = []string{
					"flag --burst is ignored because --config names a configuration file",
					"flag --qps is ignored because --config names a configuration file",
					"feature gate RayClusterMTLS" + notYet,
				}
			},
		},
		"given unknown and repeated fields in a file, they are ignored with a warning": {
			args: []string{"--config", configPath},
			file: head + "colour: blue\nheadSidecarContainers: [{name: h, imge: i}]\n",
			want: func(c *Config) {
				c.HeadSidecarContainers = []corev1.Container{{Name: "h"}}
				c.Warnings = []string{
					`configuration file ` + configPath + `: unknown field "colour" is ignored`,
					`configuration file ` + configPath + `: unknown field "headSidecarContainers[0].imge" is ignored`,
				}
			},
		},
		"given a file that deletes RayJobs and a variable that does not, the variable counts": {
			args: []string{"--config", configPath},
			env:  map[string]string{"DELETE_RAYJOB_CR_AFTER_JOB_FINISHES": "false"},
			file: head + "deleteRayJobAfterJobFinishes: true\n",
			want: func(*Config) {},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := defaultConfig()
			tc.want(&want)
			got, err := parse(tc.args, tc.env, tc.file)
			if err != nil {
				t.Fatalf("Parse: %v", err)
			}
			if d := diff(want, got); d != "" {
				t.Errorf("Config (-want +got):\n%s", d)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	const head = "apiVersion: config.ray.io/v1alpha1\nkind: Configuration\n"
	inFile := []string{"--config", configPath}
	cases := map[string]struct {
		args []string
		file string
		// want are pieces of the message: where it stands, the value, the rule.
		want []string
	}{
		"an unknown flag":     {args: []string{"--colour"}, want: []string{"command line", "-colour"}},
		"a word without dash": {args: []string{"run", "--qps=1"}, want: []string{`"run"`, "no other arguments"}},
		"a number that is none": {
			args: []string{"--burst=many"}, want: []string{"-burst", `"many"`},
		},
		"an address without port":      {args: []string{"--metrics-addr=all"}, want: []string{"--metrics-addr", `"all"`, "host:port"}},
		"a port that does not exist":   {args: []string{"--health-probe-bind-address=:70000"}, want: []string{"--health-probe-bind-address", `":70000"`, "65535"}},
		"no workers":                   {args: []string{"--reconcile-concurrency=0"}, want: []string{"--reconcile-concurrency", `"0"`, "positive"}},
		"no requests":                  {args: []string{"--qps=0"}, want: []string{"--qps", `"0"`, "positive"}},
		"qps that is not a number":     {args: []string{"--qps=NaN"}, want: []string{"--qps", `"NaN"`}},
		"a negative burst":             {args: []string{"--burst=-1"}, want: []string{"--burst", `"-1"`}},
		"no burst with limited qps":    {args: []string{"--burst=0"}, want: []string{"--burst", `"0"`}},
		"a namespace that cannot be":   {args: []string{"--watch-namespace=a,B_"}, want: []string{"--watch-namespace", `"B_"`, "namespace"}},
		"a lease in no namespace":      {args: []string{"--leader-election-namespace=a,b"}, want: []string{"--leader-election-namespace", `"a,b"`}},
		"an unknown stdout encoder":    {args: []string{"--log-stdout-encoder=xml"}, want: []string{"--log-stdout-encoder", `"xml"`, "json or console"}},
		"an unknown file encoder":      {args: []string{"--log-file-encoder="}, want: []string{"--log-file-encoder", `""`, "json or console"}},
		"an unknown batch scheduler":   {args: []string{"--batch-scheduler=default"}, want: []string{"--batch-scheduler", `"default"`, "kai-scheduler"}},
		"two ways of choosing volcano": {args: []string{"--batch-scheduler=volcano", "--enable-batch-scheduler"}, want: []string{"--batch-scheduler", "--enable-batch-scheduler"}},
		"two gang schedulers":          {args: []string{"--batch-scheduler=volcano", "--feature-gates=KubernetesWAS=true"}, want: []string{"--batch-scheduler", "KubernetesWAS"}},
		"two gang schedulers, old way": {args: []string{"--enable-batch-scheduler", "--feature-gates=AllAlpha=true"}, want: []string{"--enable-batch-scheduler", "KubernetesWAS"}},
		"a lease of half seconds":      {args: []string{"--leader-election-lease-duration=15500ms"}, want: []string{"--leader-election-lease-duration", `"15.5s"`, "whole seconds"}},
		"a deadline after the lease":   {args: []string{"--leader-election-renew-deadline=15s"}, want: []string{"--leader-election-renew-deadline", `"15s"`, "below"}},
		"one attempt only":             {args: []string{"--leader-election-retry-period=6s"}, want: []string{"--leader-election-retry-period", `"6s"`, "half"}},
		"an unknown way of fencing":    {args: []string{"--fencing=on"}, want: []string{"--fencing", `"on"`, "auto, required or off"}},
		"a fence without a leader":     {args: []string{"--fencing=required", "--enable-leader-election=false"}, want: []string{"--fencing", `"required"`, "leader election"}},
		"a wrong fencing in the file":  {args: inFile, file: head + "fencing: \"no\"\n", want: []string{"field fencing", configPath, `"no"`}},
		"an unknown gate":              {args: []string{"--feature-gates=Teleport=true"}, want: []string{"--feature-gates", `"Teleport"`, "unknown", "RayCronJob"}},
		"a gate without value":         {args: []string{"--feature-gates=RayCronJob"}, want: []string{"--feature-gates", `"RayCronJob"`, "=true"}},
		"a gate that is neither":       {args: []string{"--feature-gates=RayCronJob=on"}, want: []string{"--feature-gates", `"RayCronJob=on"`, "true or false"}},
		"a file that is not there":     {args: inFile, want: []string{"--config", configPath, "not exist"}},
		"a file that is not YAML":      {args: inFile, file: "a: [", want: []string{configPath, "parsing"}},
		"a file of another version":    {args: inFile, file: "apiVersion: v1\nkind: Configuration\n", want: []string{"apiVersion", configPath, `"v1"`, "config.ray.io/v1alpha1"}},
		"a file of another kind":       {args: inFile, file: "apiVersion: config.ray.io/v1alpha1\nkind: Pod\n", want: []string{"kind", configPath, `"Pod"`, "Configuration"}},
		"a wrong type in the file":     {args: inFile, file: head + "burst: many\n", want: []string{configPath, "burst"}},
		"a wrong value in the file":    {args: inFile, file: head + "reconcileConcurrency: -1\n", want: []string{"field reconcileConcurrency", configPath, `"-1"`, "positive"}},
		"a wrong encoder in the file":  {args: inFile, file: head + "logFileEncoder: xml\n", want: []string{"field logFileEncoder", configPath, `"xml"`}},
	}
	for name, tc := range cases {
		t.Run("given "+name, func(t *testing.T) {
			_, err := parse(tc.args, nil, tc.file)
			if err == nil {
				t.Fatal("Parse accepted it")
			}
			for _, piece := range tc.want {
				if !strings.Contains(err.Error(), piece) {
					t.Errorf("message %q does not contain %q", err, piece)
				}
			}
		})
	}
}

func TestParseHelp(t *testing.T) {
	if _, err := parse([]string{"--help"}, nil, ""); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("Parse: %v, want flag.ErrHelp", err)
	}
	for _, piece := range []string{"-metrics-addr", `(default ":8080")`, "RayCronJob=false (alpha)", "-zap-log-level"} {
		if !strings.Contains(Usage(), piece) {
			t.Errorf("Usage does not contain %q", piece)
		}
	}
}
