// Package config turns the operator's command line, configuration file and environment into one immutable Config.
//
// The names, defaults and precedence are those that KubeRay's operator documents, so that a Deployment or a Helm
// values file written for it starts Heliostat unchanged. Nothing here reads the process environment or the file
// system by itself: [Parse] is handed both, which makes every combination testable.
package config

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrlzap "sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// LeaseName is the name of the Lease that replicas of the operator compete for. KubeRay uses the same name, so the two
// operators never lead at the same time in one namespace.
const LeaseName = "ray-operator-leader"

// Config is everything that can be set on the operator. It is made by [Parse] and never changed afterwards.
type Config struct {
	// MetricsAddr is the host:port of the Prometheus endpoint. Default ":8080"; "0" switches it off.
	MetricsAddr string
	// ProbeAddr is the host:port that answers /healthz and /readyz. Default ":8082"; "0" switches it off.
	ProbeAddr string
	// EnableMetrics adds the kuberay_* series about clusters, jobs and services to the endpoint. Default false.
	EnableMetrics bool

	// Kubeconfig is the path given with --kubeconfig, or else the value of KUBECONFIG. Empty means the in-cluster
	// configuration.
	Kubeconfig string
	// QPS limits the requests per second sent to the API server. Default 100; negative means no limit on this side.
	QPS float32
	// Burst is the number of requests that may go out at once before QPS counts. Default 200.
	Burst int

	// LeaderElection says whether and how replicas agree on one leader.
	LeaderElection LeaderElection
	// ReconcileConcurrency is the number of workers of each controller. Default 1.
	ReconcileConcurrency int
	// WatchNamespaces are the namespaces whose objects are looked at, sorted and without repetition. Empty means all.
	WatchNamespaces []string

	// Logging says where log lines go and how they look.
	Logging Logging

	// BatchScheduler is the gang scheduler that Pods are prepared for: "volcano", "yunikorn", "kai-scheduler",
	// "scheduler-plugins" or, by default, none ("").
	BatchScheduler string
	// UseKubernetesProxy sends requests for Ray dashboards and Serve proxies through the API server. Default false.
	UseKubernetesProxy bool

	// HeadSidecarContainers and WorkerSidecarContainers are added to every Ray Pod of that kind.
	HeadSidecarContainers, WorkerSidecarContainers []corev1.Container
	// DefaultContainerEnvs are added to the Ray container of every Pod.
	DefaultContainerEnvs []corev1.EnvVar
	// DefaultPodAnnotations and DefaultPodLabels are added to every Ray Pod where it has no such key.
	DefaultPodAnnotations, DefaultPodLabels map[string]string

	// Environment holds what is set by environment variables only.
	Environment Environment
	// FeatureGates says which optional behaviour is on.
	FeatureGates FeatureGates

	// Warnings are settings that were accepted but do not do what their author may expect: an unknown field, a flag
	// that the configuration file overrides, a value that was replaced by the default. To be logged once at start.
	Warnings []string
}

// LeaderElection is how replicas agree on one leader. All durations belong to the Lease.
type LeaderElection struct {
	// Enabled is true by default. Without it, a second replica must never run.
	Enabled bool
	// Namespace of the Lease. Empty means the namespace of the operator's own Pod.
	Namespace string
	// LeaseDuration is how long others wait after the last renewal before they take over. Default 15 s.
	LeaseDuration time.Duration
	// RenewDeadline is how long a leader tries to renew before it gives up. Default 10 s.
	RenewDeadline time.Duration
	// RetryPeriod is the pause between two attempts. Default 2 s.
	RetryPeriod time.Duration
	// Fencing says whether the API server has to refuse writes of replicas that do not lead. Default FencingAuto.
	Fencing Fencing
}

// Fencing says what a leader does about the fence in the API server, see docs/failover.md.
type Fencing string

const (
	// FencingAuto uses the fence where it can, and says so where it cannot.
	FencingAuto Fencing = "auto"
	// FencingRequired lets a leader write only behind the fence.
	FencingRequired Fencing = "required"
	// FencingOff leaves the fence alone.
	FencingOff Fencing = "off"
)

// Logging is where log lines go and how they look.
type Logging struct {
	// StdoutEncoder and FileEncoder are "json" (default) or "console".
	StdoutEncoder, FileEncoder string
	// FilePath is a file that receives the same lines as standard output; it is rotated at 500 MB, and ten old files
	// are kept for 30 days. Empty, the default, means no file.
	FilePath string
	// Zap holds the levels and the time format that the --zap-* flags set. Its encoder is not used: StdoutEncoder is.
	Zap ctrlzap.Options
}

// Environment is what is set by environment variables of the operator. The zero value is not the default.
type Environment struct {
	// ClusterDomain is the DNS domain of Services (CLUSTER_DOMAIN). Default "cluster.local".
	ClusterDomain string
	// InjectInitContainer gives workers an init container that waits for the GCS (ENABLE_INIT_CONTAINER_INJECTION).
	// Default true.
	InjectInitContainer bool
	// InjectProbes gives Ray containers without probes the default ones (ENABLE_PROBES_INJECTION). Default true.
	InjectProbes bool
	// LoginShell makes the generated command use a login shell (ENABLE_LOGIN_SHELL). Default false.
	LoginShell bool
	// GCSFTRedisCleanup clears Redis when a cluster with GCS fault tolerance is deleted
	// (ENABLE_GCS_FT_REDIS_CLEANUP). Default true.
	GCSFTRedisCleanup bool
	// ZeroDowntime prepares a new cluster beside the old one when a RayService without upgrade strategy changes
	// (ENABLE_ZERO_DOWNTIME). Default true.
	ZeroDowntime bool
	// RandomPodDelete lets the operator itself scale in a cluster that Ray's autoscaler manages
	// (ENABLE_RANDOM_POD_DELETE). Default false.
	RandomPodDelete bool
	// HeadClusterIPService gives head Services a cluster IP (ENABLE_RAY_HEAD_CLUSTER_IP_SERVICE). Default false.
	HeadClusterIPService bool
	// DeterministicHeadPodName names head Pods <cluster>-head (ENABLE_DETERMINISTIC_HEAD_POD_NAME). Default false.
	DeterministicHeadPodName bool
	// IngressOnOpenShift makes an Ingress instead of a Route on OpenShift (USE_INGRESS_ON_OPENSHIFT). Default false.
	IngressOnOpenShift bool
	// DeleteRayJobAfterFinish deletes the RayJob object itself when its time-to-live has passed
	// (DELETE_RAYJOB_CR_AFTER_JOB_FINISHES, or deleteRayJobAfterJobFinishes in the file). Default false.
	DeleteRayJobAfterFinish bool
	// RayClusterResync is how often a RayCluster is looked at without a reason
	// (RAYCLUSTER_DEFAULT_REQUEUE_SECONDS_ENV). Default 300 s.
	RayClusterResync time.Duration
	// RayJobTransitionGrace is how long the two statuses of a RayJob may contradict each other before the operator
	// acts (RAYJOB_DEPLOYMENT_STATUS_TRANSITION_GRACE_PERIOD_SECONDS). Default 300 s.
	RayJobTransitionGrace time.Duration
	// RayJobStatusCheckTimeout is how long a job's status may be unknown before the RayJob fails
	// (RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS). Default 300 s.
	RayJobStatusCheckTimeout time.Duration
}

// Parse makes the Config from the command line without the program name, the environment and, if --config names one,
// a configuration file. The configuration file replaces all flags that have a field in it, whether or not the field is
// set; an explicit flag for an encoder is the one exception.
//
// A value that cannot be used gives one error that names the flag or field, the value and the rule. For -h and --help
// the error is [flag.ErrHelp]; [Usage] returns the text to print.
func Parse(args []string, getenv func(string) string, readFile func(string) ([]byte, error)) (Config, error) {
	flags := newFlags()
	if err := flags.parse(args); err != nil {
		return Config{}, err
	}
	gates, err := parseFeatureGates(flags.featureGates)
	if err != nil {
		return Config{}, err
	}

	s := flags.settings
	var warnings []string
	if flags.configPath != "" {
		fromFile, unknown, err := readSettings(flags.configPath, readFile)
		if err != nil {
			return Config{}, err
		}
		s = flags.overriddenBy(fromFile)
		warnings = append(unknown, flags.ignored()...)
	}
	if err := s.validate(gates); err != nil {
		return Config{}, err
	}

	c := s.config()
	c.FeatureGates = gates
	c.Logging.Zap = flags.zap
	c.Kubeconfig = flags.kubeconfig
	if c.Kubeconfig == "" {
		c.Kubeconfig = getenv("KUBECONFIG")
	}
	environment, replaced := parseEnvironment(getenv, s.DeleteRayJobAfterJobFinishes)
	c.Environment = environment
	c.Warnings = slices.Concat(warnings, flags.withoutEffect(), c.notYet(), replaced)
	return c, nil
}
