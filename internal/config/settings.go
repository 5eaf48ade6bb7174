package config

import (
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// settings are the values that both a flag and a field of the configuration file can set, before they are checked.
// The tags are the field names of the file.
type settings struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`

	MetricsAddr                  string             `json:"metricsAddr"`
	ProbeAddr                    string             `json:"probeAddr"`
	EnableMetrics                bool               `json:"enableMetrics"`
	QPS                          float64            `json:"qps"`
	Burst                        int                `json:"burst"`
	EnableLeaderElection         bool               `json:"enableLeaderElection"`
	LeaderElectionNamespace      string             `json:"leaderElectionNamespace"`
	Fencing                      string             `json:"fencing"`
	ReconcileConcurrency         int                `json:"reconcileConcurrency"`
	WatchNamespace               string             `json:"watchNamespace"`
	LogFile                      string             `json:"logFile"`
	LogFileEncoder               string             `json:"logFileEncoder"`
	LogStdoutEncoder             string             `json:"logStdoutEncoder"`
	BatchScheduler               string             `json:"batchScheduler"`
	EnableBatchScheduler         bool               `json:"enableBatchScheduler"`
	UseKubernetesProxy           bool               `json:"useKubernetesProxy"`
	DeleteRayJobAfterJobFinishes bool               `json:"deleteRayJobAfterJobFinishes"`
	HeadSidecarContainers        []corev1.Container `json:"headSidecarContainers"`
	WorkerSidecarContainers      []corev1.Container `json:"workerSidecarContainers"`
	DefaultContainerEnvs         []corev1.EnvVar    `json:"defaultContainerEnvs"`
	DefaultPodAnnotations        map[string]string  `json:"defaultPodAnnotations"`
	DefaultPodLabels             map[string]string  `json:"defaultPodLabels"`

	// The remaining settings have a flag only.
	leaseDuration time.Duration
	renewDeadline time.Duration
	retryPeriod   time.Duration

	// file is the path that the values were read from, or empty when they come from the command line.
	file string
}

// defaultSettings are the values of an operator that is started without any argument.
func defaultSettings() settings {
	return settings{
		MetricsAddr:          ":8080",
		ProbeAddr:            ":8082",
		QPS:                  100,
		Burst:                200,
		EnableLeaderElection: true,
		Fencing:              string(FencingAuto),
		ReconcileConcurrency: 1,
		LogFileEncoder:       encoderJSON,
		LogStdoutEncoder:     encoderJSON,
		leaseDuration:        15 * time.Second,
		renewDeadline:        10 * time.Second,
		retryPeriod:          2 * time.Second,
	}
}

// config copies checked settings to the places where the operator looks for them.
func (s settings) config() Config {
	scheduler := s.BatchScheduler
	if s.EnableBatchScheduler {
		scheduler = schedulerVolcano
	}
	return Config{
		MetricsAddr:   s.MetricsAddr,
		ProbeAddr:     s.ProbeAddr,
		EnableMetrics: s.EnableMetrics,
		QPS:           float32(s.QPS),
		Burst:         s.Burst,
		LeaderElection: LeaderElection{
			Enabled:       s.EnableLeaderElection,
			Namespace:     s.LeaderElectionNamespace,
			LeaseDuration: s.leaseDuration,
			RenewDeadline: s.renewDeadline,
			RetryPeriod:   s.retryPeriod,
			Fencing:       Fencing(s.Fencing),
		},
		ReconcileConcurrency:    s.ReconcileConcurrency,
		WatchNamespaces:         splitNamespaces(s.WatchNamespace),
		Logging:                 Logging{StdoutEncoder: s.LogStdoutEncoder, FileEncoder: s.LogFileEncoder, FilePath: s.LogFile},
		BatchScheduler:          scheduler,
		UseKubernetesProxy:      s.UseKubernetesProxy,
		HeadSidecarContainers:   s.HeadSidecarContainers,
		WorkerSidecarContainers: s.WorkerSidecarContainers,
		DefaultContainerEnvs:    s.DefaultContainerEnvs,
		DefaultPodAnnotations:   s.DefaultPodAnnotations,
		DefaultPodLabels:        s.DefaultPodLabels,
	}
}

// notYet returns a warning for everything that is set and that this version accepts without acting on it.
func (c Config) notYet() []string {
	const tail = " is accepted, but this version does not act on it"
	var warnings []string
	if c.BatchScheduler != "" {
		warnings = append(warnings, "batch scheduler "+c.BatchScheduler+tail)
	}
	for _, gate := range unservedGates() {
		if c.FeatureGates.Enabled(gate) {
			warnings = append(warnings, "feature gate "+string(gate)+tail)
		}
	}
	return warnings
}

const (
	encoderJSON    = "json"
	encoderConsole = "console"

	schedulerVolcano = "volcano"
)

// batchSchedulers are the accepted names of gang schedulers.
func batchSchedulers() []string {
	return []string{schedulerVolcano, "yunikorn", "kai-scheduler", "scheduler-plugins"}
}

// splitNamespaces reads a comma list; blanks around a name and empty names do not count.
func splitNamespaces(list string) []string {
	var names []string
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// name says where a value came from, in the words of the one who has to correct it.
func (s settings) name(flag, field string) string {
	if s.file == "" {
		return "flag --" + flag
	}
	return fmt.Sprintf("field %s of %s", field, s.file)
}

// invalid is the one form of every complaint about a value: where it stands, what it is, what it must be.
func invalid(name, value, rule string) error {
	return fmt.Errorf("%s: %q is not allowed: %s", name, value, rule)
}

// validate returns the first value that cannot be used.
func (s settings) validate(gates FeatureGates) error {
	for _, check := range []func() error{
		s.validateAddresses, s.validateLimits, s.validateNamespaces, s.validateLogging, s.validateLease, s.validateFencing,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return s.validateBatchScheduler(gates)
}

func (s settings) validateAddresses() error {
	for _, a := range []struct{ flag, field, value string }{
		{"metrics-addr", "metricsAddr", s.MetricsAddr},
		{"health-probe-bind-address", "probeAddr", s.ProbeAddr},
	} {
		if a.value == "0" {
			continue
		}
		const rule = `must be host:port or :port with a port from 0 to 65535, or 0 to switch it off`
		_, port, err := net.SplitHostPort(a.value)
		if err != nil {
			return invalid(s.name(a.flag, a.field), a.value, rule)
		}
		if n, err := strconv.Atoi(port); err != nil || n < 0 || n > math.MaxUint16 {
			return invalid(s.name(a.flag, a.field), a.value, rule)
		}
	}
	return nil
}

func (s settings) validateLimits() error {
	if s.ReconcileConcurrency < 1 {
		return invalid(s.name("reconcile-concurrency", "reconcileConcurrency"), strconv.Itoa(s.ReconcileConcurrency),
			"must be a positive integer")
	}
	// A zero would silently become client-go's own default of 5, the opposite of what "0" is meant to say.
	if s.QPS == 0 || math.IsNaN(s.QPS) || s.QPS > math.MaxFloat32 || s.QPS < -math.MaxFloat32 {
		return invalid(s.name("qps", "qps"), strconv.FormatFloat(s.QPS, 'g', -1, 64),
			"must be a positive number of requests per second, or negative for no limit")
	}
	if s.Burst < 0 || (s.QPS > 0 && s.Burst == 0) {
		return invalid(s.name("burst", "burst"), strconv.Itoa(s.Burst),
			"must be a positive integer (0 only when qps is negative)")
	}
	return nil
}

func (s settings) validateNamespaces() error {
	for _, name := range splitNamespaces(s.WatchNamespace) {
		if len(validation.IsDNS1123Label(name)) > 0 {
			return invalid(s.name("watch-namespace", "watchNamespace"), name,
				"must be the name of a namespace, or several separated by commas")
		}
	}
	if n := s.LeaderElectionNamespace; n != "" && len(validation.IsDNS1123Label(n)) > 0 {
		return invalid(s.name("leader-election-namespace", "leaderElectionNamespace"), n,
			"must be the name of a namespace")
	}
	return nil
}

func (s settings) validateLogging() error {
	for _, e := range []struct{ flag, field, value string }{
		{"log-stdout-encoder", "logStdoutEncoder", s.LogStdoutEncoder},
		{"log-file-encoder", "logFileEncoder", s.LogFileEncoder},
	} {
		if e.value != encoderJSON && e.value != encoderConsole {
			return invalid(s.name(e.flag, e.field), e.value, "must be json or console")
		}
	}
	return nil
}

// validateLease keeps the margins that leader election needs: a leader must notice that it cannot renew before the
// others may take over, and must have had more than one attempt by then.
func (s settings) validateLease() error {
	const renewals = 2
	if s.leaseDuration < time.Second || s.leaseDuration%time.Second != 0 {
		return invalid("flag --leader-election-lease-duration", s.leaseDuration.String(),
			"must be whole seconds, at least 1s, because a Lease stores seconds")
	}
	if s.renewDeadline <= 0 || s.renewDeadline >= s.leaseDuration {
		return invalid("flag --leader-election-renew-deadline", s.renewDeadline.String(),
			fmt.Sprintf("must be above 0 and below the lease duration of %s", s.leaseDuration))
	}
	if s.retryPeriod <= 0 || s.retryPeriod*renewals > s.renewDeadline {
		return invalid("flag --leader-election-retry-period", s.retryPeriod.String(),
			fmt.Sprintf("must be above 0 and at most half of the renew deadline of %s", s.renewDeadline))
	}
	return nil
}

func (s settings) validateFencing() error {
	name := s.name("fencing", "fencing")
	if !slices.Contains([]Fencing{FencingAuto, FencingRequired, FencingOff}, Fencing(s.Fencing)) {
		return invalid(name, s.Fencing, "must be auto, required or off")
	}
	if Fencing(s.Fencing) == FencingRequired && !s.EnableLeaderElection {
		return invalid(name, s.Fencing, "needs leader election, because only a leader can be fenced")
	}
	return nil
}

func (s settings) validateBatchScheduler(gates FeatureGates) error {
	name := s.name("batch-scheduler", "batchScheduler")
	switch {
	case s.BatchScheduler != "" && !slices.Contains(batchSchedulers(), s.BatchScheduler):
		return invalid(name, s.BatchScheduler, "must be one of "+strings.Join(batchSchedulers(), ", "))
	case s.BatchScheduler != "" && s.EnableBatchScheduler:
		return invalid(name, s.BatchScheduler, "must not be set together with "+
			s.name("enable-batch-scheduler", "enableBatchScheduler")+", which is the old way to choose volcano")
	case s.BatchScheduler != "" && gates.Enabled(KubernetesWAS):
		return invalid(name, s.BatchScheduler, "must be empty when feature gate KubernetesWAS is on")
	case s.EnableBatchScheduler && gates.Enabled(KubernetesWAS):
		return invalid(s.name("enable-batch-scheduler", "enableBatchScheduler"), "true",
			"must be false when feature gate KubernetesWAS is on")
	}
	return nil
}
