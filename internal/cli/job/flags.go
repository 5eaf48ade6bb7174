package job

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/heliostat-io/heliostat/internal/cli/blueprint"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
)

// clusterTimeout is how long a cluster may take to become ready. Images of Ray with GPU support have many gigabytes.
const clusterTimeout = 10 * time.Minute

// flags are those of job submit.
type flags struct {
	filename, name, address, submissionID  string
	workingDir, runtimeEnv, runtimeEnvJSON string
	headers, verify, metadataJSON          string
	rayToken                               string
	numCPUs, numGPUs                       float64
	memory                                 int64
	resources, logStyle, logColor          string
	noWait, verbose                        bool
	dryRun                                 kube.DryRun
	ttl                                    int32
	rayVersion, image                      string
	headCPU, headMemory, headGPU           string
	workerReplicas                         int32
	workerCPU, workerMemory, workerGPU     string
	headNodeSelectors, workerNodeSelectors map[string]string
	timeout                                time.Duration
	changed                                func(flag string) bool
}

// add defines the flags.
func (f *flags) add(cmd *cobra.Command) {
	set := cmd.Flags()
	f.changed = set.Changed
	// What comes after the first word of the entrypoint is the entrypoint's, also where the dashes before it were forgotten.
	set.SetInterspersed(false)
	set.StringVarP(&f.filename, "filename", "f", "", "File with a RayJob whose submissionMode is InteractiveMode. Without it, a RayJob is made from the flags.")
	set.StringVar(&f.name, "name", "", "Name of the RayJob. Needed unless a file names it.")
	set.StringVar(&f.address, "address", "", "Base URL of the Ray dashboard, for example http://localhost:8265. Without it, a port of the head is forwarded.")
	set.StringVar(&f.submissionID, "submission-id", "", "Submission id of the job. Without it, one is made up.")
	set.StringVar(&f.workingDir, "working-dir", "", "Working directory of the job: a directory, a .zip file, or a URI. Needed unless the runtime environment names one.")
	set.StringVar(&f.runtimeEnv, "runtime-env", "", "YAML file with the runtime environment.")
	set.StringVar(&f.runtimeEnvJSON, "runtime-env-json", "", "Runtime environment as JSON.")
	set.StringVar(&f.headers, "headers", "", "HTTP headers for the dashboard, as a JSON object.")
	set.StringVar(&f.verify, "verify", "true", "How to check the certificate of a dashboard with https: true, false, or a file with certificates to trust.")
	set.StringVar(&f.rayToken, "ray-token", "", "Token to show to Ray. Without it, that of the cluster, or for clusters that have none of their own "+
		"the one in RAY_AUTH_TOKEN.")
	set.StringVar(&f.metadataJSON, "metadata-json", "", "Metadata of the job, as a JSON object of texts.")
	set.Float64Var(&f.numCPUs, "entrypoint-num-cpus", 0, "Number of CPUs that Ray reserves for the entrypoint.")
	set.Float64Var(&f.numGPUs, "entrypoint-num-gpus", 0, "Number of GPUs that Ray reserves for the entrypoint.")
	set.Int64Var(&f.memory, "entrypoint-memory", 0, "Memory in bytes that Ray reserves for the entrypoint.")
	set.StringVar(&f.resources, "entrypoint-resources", "", "Custom resources that Ray reserves for the entrypoint, as a JSON object of numbers.")
	set.StringVar(&f.logStyle, "log-style", "auto", "How to tell of the progress: auto, pretty, or record, which puts the time before each line.")
	set.StringVar(&f.logColor, "log-color", "auto", "Whether to tell of the result in colour: auto, true or false.")
	set.BoolVar(&f.noWait, "no-wait", false, "End after the submission, and print the submission id.")
	set.BoolVarP(&f.verbose, "verbose", "v", false, "Say more about what is done.")
	f.dryRun.AddFlag(cmd, "Print the RayJob that the flags describe as YAML, and do nothing. With \"client\", which is meant without a value, no "+
		"cluster is talked to; with \"server\", the API server completes and checks the RayJob. Not with --filename.")
	set.Int32Var(&f.ttl, "ttl-seconds-after-finished", 0, "Delete the RayCluster that many seconds after the job has ended. Without it, the cluster stays.")
	set.DurationVar(&f.timeout, "cluster-timeout", clusterTimeout, "How long the cluster may take to become ready. After that the RayJob is deleted.")
	f.addCluster(cmd)
}

// addCluster defines the flags that describe the cluster of a RayJob.
func (f *flags) addCluster(cmd *cobra.Command) {
	set := cmd.Flags()
	set.StringVar(&f.rayVersion, "ray-version", blueprint.RayVersion, "Version of Ray.")
	set.StringVar(&f.image, "image", blueprint.Image(blueprint.RayVersion), "Image of head and workers. It follows --ray-version when not given.")
	set.StringVar(&f.headCPU, "head-cpu", blueprint.CPU, "CPUs of the head.")
	set.StringVar(&f.headMemory, "head-memory", blueprint.Memory, "Memory of the head.")
	set.StringVar(&f.headGPU, "head-gpu", blueprint.GPU, "GPUs of the head.")
	set.Int32Var(&f.workerReplicas, "worker-replicas", 1, "Number of workers.")
	set.StringVar(&f.workerCPU, "worker-cpu", blueprint.CPU, "CPUs of each worker.")
	set.StringVar(&f.workerMemory, "worker-memory", blueprint.Memory, "Memory of each worker.")
	set.StringVar(&f.workerGPU, "worker-gpu", blueprint.GPU, "GPUs of each worker.")
	set.StringToStringVar(&f.headNodeSelectors, "head-node-selectors", nil, "Labels of nodes for the head, as key=value,...")
	set.StringToStringVar(&f.workerNodeSelectors, "worker-node-selectors", nil, "Labels of nodes for the workers, as key=value,...")
}

// clusterFlags describe a cluster, which a file does already.
func clusterFlags() []string {
	return []string{"ray-version", "image", "head-cpu", "head-memory", "head-gpu", "worker-replicas", "worker-cpu", "worker-memory",
		"worker-gpu", "head-node-selectors", "worker-node-selectors", "ttl-seconds-after-finished"}
}

// check says what is wrong with the flags taken together.
func (f *flags) check() error {
	if f.filename != "" {
		if f.dryRun != kube.DryRunNone {
			return errors.New("--dry-run prints the RayJob that the flags describe: it cannot be used with --filename")
		}
		for _, name := range clusterFlags() {
			if f.changed(name) {
				return fmt.Errorf("--%s has no effect on the RayJob in a file: change it in %s", name, f.filename)
			}
		}
	}
	switch {
	case f.filename == "" && f.name == "":
		return errors.New("give the RayJob a name with --name, or describe it in a file with --filename")
	case f.runtimeEnv != "" && f.runtimeEnvJSON != "":
		return errors.New("--runtime-env and --runtime-env-json exclude each other")
	case !slices.Contains([]string{"auto", "pretty", "record"}, f.logStyle):
		return fmt.Errorf("--log-style %q is unknown: it must be auto, pretty or record", f.logStyle)
	case !slices.Contains([]string{"auto", "true", "false"}, f.logColor):
		return fmt.Errorf("--log-color %q is unknown: it must be auto, true or false", f.logColor)
	case f.numCPUs < 0, f.numGPUs < 0, f.memory < 0:
		return errors.New("what is reserved for the entrypoint cannot be negative")
	case f.ttl < 0:
		return errors.New("--ttl-seconds-after-finished cannot be negative")
	case f.workerReplicas < 0:
		return errors.New("--worker-replicas cannot be negative")
	case f.timeout <= 0:
		return errors.New("--cluster-timeout must be more than 0")
	default:
		return nil
	}
}
