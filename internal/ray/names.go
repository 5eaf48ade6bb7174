package ray

// Role says whether a Ray node is the head of its cluster or a worker.
type Role string

const (
	// Head is the node that runs Ray's GCS and dashboard.
	Head Role = "head"
	// Worker is every other node.
	Worker Role = "worker"
)

// Ports that Ray listens on unless told otherwise.
const (
	// DefaultGCSPort is the port of the GCS.
	DefaultGCSPort = 6379
	// DefaultDashboardPort is the port of the dashboard: the APIs for jobs, Serve and state.
	DefaultDashboardPort = 8265
	// DefaultClientPort is the port of the Ray client server.
	DefaultClientPort = 10001
	// DefaultMetricsPort is the port at which every node exports its metrics. Ray itself would choose a random one.
	DefaultMetricsPort = 8080
	// DefaultServePort is the port of Ray Serve's HTTP proxy.
	DefaultServePort = 8000
	// DefaultAgentPort is the port of the dashboard agent that runs on every node.
	DefaultAgentPort = 52365
)

// Names of container ports, and of the ports of the head Service.
const (
	// PortNameGCS is the name of the GCS port.
	PortNameGCS = "gcs-server"
	// PortNameDashboard is the name of the dashboard port.
	PortNameDashboard = "dashboard"
	// PortNameClient is the name of the Ray client port.
	PortNameClient = "client"
	// PortNameMetrics is the name of the metrics port.
	PortNameMetrics = "metrics"
	// PortNameServe is the name of the Serve port; further Serve ports start with it and a dash.
	PortNameServe = "serve"
)

// SubmitterContainer is the name of the container that submits a RayJob and prints its log. Clients look for it.
const SubmitterContainer = "ray-job-submitter"

// Parameters of "ray start" that this package reads or fills in, without their leading dashes.
const (
	paramAddress       = "address"
	paramAgentPort     = "dashboard-agent-listen-port"
	paramBlock         = "block"
	paramDashboardHost = "dashboard-host"
	paramDashboardPort = "dashboard-port"
	paramLabels        = "labels"
	paramMemory        = "memory"
	paramMetricsPort   = "metrics-export-port"
	paramNumCPUs       = "num-cpus"
	paramNumGPUs       = "num-gpus"
	paramPlasmaDir     = "plasma-directory"
	paramPort          = "port"
	paramResources     = "resources"
)

// Variables of the Ray container that others than this package's environment function need to know.
const (
	// EnvAuthMode switches Ray's token authentication: "token" or "disabled".
	EnvAuthMode = "RAY_AUTH_MODE"
	// EnvStartCommand holds the generated "ray start" line, for users who write the container's command themselves.
	EnvStartCommand = "KUBERAY_GEN_RAY_START_CMD"
)
