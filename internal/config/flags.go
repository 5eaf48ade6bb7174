package config

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	ctrlzap "sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// flags is the command line of the operator.
type flags struct {
	fs *flag.FlagSet
	// set has the names of the flags that were given, whatever their value.
	set map[string]bool

	settings settings
	zap      ctrlzap.Options

	configPath, featureGates, kubeconfig string
}

// newFlags declares every flag with its default.
func newFlags() *flags {
	f := &flags{
		fs:       flag.NewFlagSet("heliostat", flag.ContinueOnError),
		set:      map[string]bool{},
		settings: defaultSettings(),
	}
	// Errors are returned, and the caller decides where the help goes.
	f.fs.SetOutput(io.Discard)

	s := &f.settings
	f.fs.StringVar(&s.MetricsAddr, "metrics-addr", s.MetricsAddr, "address of the Prometheus endpoint; 0 switches it off")
	f.fs.StringVar(&s.ProbeAddr, "health-probe-bind-address", s.ProbeAddr,
		"address that answers /healthz and /readyz; 0 switches it off")
	f.fs.BoolVar(&s.EnableMetrics, "enable-metrics", s.EnableMetrics,
		"also serve kuberay_* metrics about clusters, jobs and services")
	f.fs.Float64Var(&s.QPS, "qps", s.QPS, "requests per second to the API server; negative means no limit")
	f.fs.IntVar(&s.Burst, "burst", s.Burst, "requests to the API server that may go out at once")
	f.fs.BoolVar(&s.EnableLeaderElection, "enable-leader-election", s.EnableLeaderElection,
		"let several replicas agree on one leader")
	f.fs.StringVar(&s.LeaderElectionNamespace, "leader-election-namespace", s.LeaderElectionNamespace,
		"namespace of the Lease; empty means the operator's own")
	f.fs.DurationVar(&s.leaseDuration, "leader-election-lease-duration", s.leaseDuration,
		"time after the last renewal when another replica takes over")
	f.fs.DurationVar(&s.renewDeadline, "leader-election-renew-deadline", s.renewDeadline,
		"time that a leader tries to renew before it gives up")
	f.fs.DurationVar(&s.retryPeriod, "leader-election-retry-period", s.retryPeriod,
		"pause between two attempts to get or renew the Lease")
	f.fs.StringVar(&s.Fencing, "fencing", s.Fencing,
		"have the API server refuse writes of replicas that do not lead: auto (where it can), required or off")
	f.fs.IntVar(&s.ReconcileConcurrency, "reconcile-concurrency", s.ReconcileConcurrency, "workers of each controller")
	f.fs.StringVar(&s.WatchNamespace, "watch-namespace", s.WatchNamespace,
		"namespaces to look at, separated by commas; empty means all")
	f.fs.StringVar(&s.LogFile, "log-file-path", s.LogFile, "file that receives the log lines too; it is rotated")
	f.fs.StringVar(&s.LogFileEncoder, "log-file-encoder", s.LogFileEncoder, "json or console")
	f.fs.StringVar(&s.LogStdoutEncoder, "log-stdout-encoder", s.LogStdoutEncoder, "json or console")
	f.fs.StringVar(&s.BatchScheduler, "batch-scheduler", s.BatchScheduler,
		"gang scheduler to prepare Pods for: "+strings.Join(batchSchedulers(), ", "))
	f.fs.BoolVar(&s.EnableBatchScheduler, "enable-batch-scheduler", s.EnableBatchScheduler,
		"deprecated: the same as --batch-scheduler=volcano")
	f.fs.BoolVar(&s.UseKubernetesProxy, "use-kubernetes-proxy", s.UseKubernetesProxy,
		"reach Ray dashboards and Serve proxies through the API server")
	f.fs.Bool("forced-cluster-upgrade", false, "accepted for compatibility, no effect")

	f.fs.StringVar(&f.configPath, "config", "", "configuration file (config.ray.io/v1alpha1), used instead of the other flags")
	f.fs.StringVar(&f.featureGates, "feature-gates", "", "optional behaviour: Name=true,Other=false; known gates:\n"+
		strings.Join(describeGates(), "\n"))
	f.fs.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig file; only needed outside a cluster")
	f.zap.BindFlags(f.fs)
	return f
}

// parse reads the command line. An empty argument is skipped, since charts render one where a list of flags is empty.
func (f *flags) parse(args []string) error {
	for {
		err := f.fs.Parse(args)
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		if err != nil {
			return fmt.Errorf("parsing the command line: %w", err)
		}
		args = f.fs.Args()
		if len(args) == 0 {
			break
		}
		if args[0] != "" {
			return fmt.Errorf("parsing the command line: %q is not a flag, and the operator takes no other arguments", args[0])
		}
		args = args[1:]
	}
	f.fs.Visit(func(fl *flag.Flag) { f.set[fl.Name] = true })

	// The operator's own flag is the general one; the library's counts where it is the only one given.
	if zapEncoder := f.fs.Lookup("zap-encoder").Value.String(); f.set["zap-encoder"] && !f.set["log-stdout-encoder"] {
		f.settings.LogStdoutEncoder = zapEncoder
		f.set["log-stdout-encoder"] = true
	}
	return nil
}

// alwaysFromFlags tells for which flags a configuration file has no field or, for the two encoders, no priority.
func alwaysFromFlags(name string) bool {
	switch name {
	case "config", "feature-gates", "kubeconfig", "forced-cluster-upgrade", "log-file-encoder", "log-stdout-encoder",
		"leader-election-lease-duration", "leader-election-renew-deadline", "leader-election-retry-period":
		return true
	}
	return strings.HasPrefix(name, "zap-")
}

// overriddenBy returns the file's settings with those that only the command line can decide.
func (f *flags) overriddenBy(file settings) settings {
	file.leaseDuration = f.settings.leaseDuration
	file.renewDeadline = f.settings.renewDeadline
	file.retryPeriod = f.settings.retryPeriod
	if f.set["log-file-encoder"] {
		file.LogFileEncoder = f.settings.LogFileEncoder
	}
	if f.set["log-stdout-encoder"] {
		file.LogStdoutEncoder = f.settings.LogStdoutEncoder
	}
	return file
}

// ignored returns a warning for every flag that was given and that the configuration file replaces.
func (f *flags) ignored() []string {
	var warnings []string
	for name := range f.set {
		if !alwaysFromFlags(name) {
			warnings = append(warnings, fmt.Sprintf("flag --%s is ignored because --config names a configuration file", name))
		}
	}
	slices.Sort(warnings)
	return warnings
}

// withoutEffect returns a warning for every flag that is only accepted for compatibility.
func (f *flags) withoutEffect() []string {
	if !f.set["forced-cluster-upgrade"] {
		return nil
	}
	return []string{"flag --forced-cluster-upgrade is accepted for compatibility and has no effect"}
}

// Usage returns the help text: every flag with its default.
func Usage() string {
	var text strings.Builder
	f := newFlags()
	f.fs.SetOutput(&text)
	f.fs.PrintDefaults()
	return "Usage: heliostat [flags]\n\nHeliostat is a Kubernetes operator for Ray.\n\nFlags:\n" + text.String()
}
