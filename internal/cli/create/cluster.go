package create

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-io/heliostat/internal/cli/blueprint"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
)

// clusterOptions are the flags of "create cluster".
type clusterOptions struct {
	config     config
	autoscaler string
	replicas   int32
	hosts      int32
	workers    group
	file       string
	dryRun     kube.DryRun
	wait       bool
	timeout    time.Duration
}

func clusterCommand(env *kube.Env) *cobra.Command {
	o := &clusterOptions{}
	cmd := &cobra.Command{
		Use:   "cluster [NAME]",
		Short: "Create a Ray cluster",
		Long: "Create a Ray cluster with one group of workers, or as a configuration file describes it. The cluster must not exist\n" +
			"yet.",
		Example: "  " + env.Program + " create cluster mine --worker-replicas 4 --worker-gpu 1 --wait\n" +
			"  " + env.Program + " create cluster --file cluster.yaml --dry-run=server",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			name := ""
			if len(args) > 0 {
				name = args[0]
			}
			c, err := o.read(cmd, name)
			if err != nil {
				return err
			}
			return o.run(cmd.Context(), env, c)
		},
	}
	o.addFlags(cmd)
	return cmd
}

func (o *clusterOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringToStringVar(&o.config.Labels, "labels", nil, "Labels of the cluster, as `KEY=VALUE,...`")
	flags.StringToStringVar(&o.config.Annotations, "annotations", nil, "Annotations of the cluster, as `KEY=VALUE,...`")
	addImageFlags(cmd, &o.config)
	flags.StringVar((*string)(&o.config.Head.CPU), "head-cpu", blueprint.CPU, "CPUs that the head requests.")
	flags.StringVar((*string)(&o.config.Head.Memory), "head-memory", blueprint.Memory, "Memory of the head.")
	flags.StringVar((*string)(&o.config.Head.GPU), "head-gpu", blueprint.GPU, "GPUs of the head.")
	flags.StringVar((*string)(&o.config.Head.EphemeralStorage), "head-ephemeral-storage", "", "Ephemeral storage of the head.")
	flags.StringToStringVar(&o.config.Head.RayStartParams, "head-ray-start-params", nil, "Flags of ray start on the head, as `KEY=VALUE,...`")
	flags.StringToStringVar(&o.config.Head.NodeSelectors, "head-node-selectors", nil, "Node selectors of the head, as `KEY=VALUE,...`")
	addWorkerFlags(cmd, &o.workers, &o.replicas, &o.hosts)
	flags.StringVar((*string)(&o.workers.EphemeralStorage), "worker-ephemeral-storage", "", "Ephemeral storage of each worker.")
	flags.StringVar(&o.autoscaler, "autoscaler", "", "Version of Ray's autoscaler to switch on: v1 or v2.")
	flags.StringVar(&o.file, "file", "", "Path of a configuration file that describes the cluster instead of flags.")
	o.dryRun.AddFlag(cmd, "Print the object as YAML and do not create it. With \"client\", which is meant without "+
		"a value, no cluster is talked to; with \"server\", the API server completes and checks the object.")
	flags.BoolVar(&o.wait, "wait", false, "Wait until the cluster is provisioned.")
	flags.DurationVar(&o.timeout, "timeout", 5*time.Minute, "How long to wait.")
	// These fail only for flags that do not exist, and these were made above.
	_ = cmd.RegisterFlagCompletionFunc("autoscaler", cobra.FixedCompletions([]string{"v1", "v2"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.MarkFlagFilename("file", "yaml", "yml", "json")
}

// addImageFlags adds the flags for what runs in the containers.
func addImageFlags(cmd *cobra.Command, c *config) {
	cmd.Flags().StringVar(&c.RayVersion, "ray-version", blueprint.RayVersion, "Version of Ray.")
	cmd.Flags().StringVar(&c.Image, "image", blueprint.Image(blueprint.RayVersion), "Image of the containers. It follows --ray-version when it is not given.")
}

// followVersion makes the image that of the version, unless the user chose one.
func followVersion(cmd *cobra.Command, c *config) {
	if !cmd.Flags().Changed("image") {
		c.Image = blueprint.Image(c.RayVersion)
	}
}

// addWorkerFlags adds the flags for a group of workers.
func addWorkerFlags(cmd *cobra.Command, workers *group, replicas, hosts *int32) {
	flags := cmd.Flags()
	flags.Int32Var(replicas, "worker-replicas", 1, "Number of replicas of the group of workers.")
	flags.StringVar((*string)(&workers.CPU), "worker-cpu", blueprint.CPU, "CPUs that each worker requests.")
	flags.StringVar((*string)(&workers.Memory), "worker-memory", blueprint.Memory, "Memory of each worker.")
	flags.StringVar((*string)(&workers.GPU), "worker-gpu", blueprint.GPU, "GPUs of each worker.")
	flags.StringVar((*string)(&workers.TPU), "worker-tpu", none, "TPU chips of each worker. They need node selectors for accelerator and topology.")
	flags.StringToStringVar(&workers.RayStartParams, "worker-ray-start-params", nil, "Flags of ray start on the workers, as `KEY=VALUE,...`")
	flags.StringToStringVar(&workers.NodeSelectors, "worker-node-selectors", nil, "Node selectors of the workers, as `KEY=VALUE,...`")
	flags.Int32Var(hosts, "num-of-hosts", 1, "Number of Pods that make up one replica.")
}

// read returns a valid configuration, from the file or else from the flags.
func (o *clusterOptions) read(cmd *cobra.Command, name string) (*config, error) {
	if o.timeout <= 0 {
		return nil, fmt.Errorf("--timeout %q: it must be more than 0", o.timeout)
	}
	if o.file != "" {
		if err := onlyBesideFile(cmd); err != nil {
			return nil, err
		}
		return fromFile(o.file, name)
	}
	if name == "" {
		return nil, errors.New("the cluster needs a name: give NAME, or a --file with one")
	}
	c := o.config
	c.Name = name
	followVersion(cmd, &c)
	workers := o.workers
	workers.Name, workers.Replicas, workers.NumOfHosts = blueprint.Group, &o.replicas, &o.hosts
	c.WorkerGroups = []group{workers}
	if cmd.Flags().Changed("autoscaler") {
		c.Autoscaler = &autoscaler{Version: o.autoscaler}
	}
	if p := c.validate(); p != nil {
		return nil, p.asFlag()
	}
	return &c, nil
}

func (o *clusterOptions) run(ctx context.Context, env *kube.Env, c *config) error {
	namespace, err := env.Namespace()
	if err != nil {
		return err
	}
	// The flag is an order, and what the kubeconfig says only a standard.
	if c.Namespace == "" || *env.Flags.Namespace != "" {
		c.Namespace = namespace
	}
	object, err := manifest(c.cluster())
	if err != nil {
		return err
	}
	if o.dryRun == kube.DryRunClient {
		return printYAML(env, object.Object)
	}
	if err := apply(ctx, env, object, o.dryRun); err != nil || o.dryRun == kube.DryRunServer {
		return err
	}
	if _, err := fmt.Fprintf(env.Out, "Created Ray cluster: %s\n", c.Name); err != nil {
		return err
	}
	if !o.wait {
		return nil
	}
	target := kube.Target{Kind: kube.RayCluster, NamespacedName: types.NamespacedName{Namespace: c.Namespace, Name: c.Name}}
	return waitProvisioned(ctx, env, target, o.timeout)
}
