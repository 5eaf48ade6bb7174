package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/heliostat-io/heliostat/hack/localkube/internal/cluster"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/debian"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/progress"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/state"
)

// newManager works on the cluster of that name, telling cmd's standard error
// about it.
func newManager(cmd *cobra.Command, name string) (cluster.Manager, error) {
	log := progress.New(cmd.ErrOrStderr())
	cache, err := state.CacheDir()
	if err != nil {
		return cluster.Manager{}, err
	}
	dirs, err := state.ForCluster(cache, name)
	if err != nil {
		return cluster.Manager{}, err
	}
	programs, err := newBuilder(log)
	if err != nil {
		return cluster.Manager{}, err
	}
	return cluster.Manager{
		Dirs:     dirs,
		Images:   state.ImagesDir(cache),
		Builder:  programs,
		Launcher: []string{"/proc/self/exe", launchName},
		Log:      log,
	}, nil
}

func addName(command *cobra.Command, name *string) {
	command.Flags().StringVar(name, "name", "default", "name of the cluster")
}

func newUpCommand() *cobra.Command {
	var name string
	var install bool
	var options cluster.Options
	command := &cobra.Command{
		Use:   "up",
		Short: "Bring a cluster up",
		Long: `Bring a cluster up: control plane, nodes, cluster DNS, and a default StorageClass
with volumes that are folders of this machine. Needs root.

The first time, the programs are built, which takes about 15 minutes on two
cores; afterwards a cluster is up in less than a minute. A cluster that is up
already is left as it is, and one that is broken is taken down first.

Nothing of a cluster can reach anything outside of this machine, and nothing is
ever pulled: bring images in with "localkube load".`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			manager, err := newManager(cmd, name)
			if err != nil {
				return err
			}
			if install {
				if err := prepare(cmd, manager.Log); err != nil {
					return err
				}
			}
			if err := manager.Up(cmd.Context(), options); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "export KUBECONFIG=%s\n", manager.Dirs.Kubeconfig())
			return nil
		},
	}
	addName(command, &name)
	command.Flags().IntVar(&options.Nodes, "nodes", 2, "number of nodes")
	command.Flags().BoolVar(&options.FastNodeLoss, "fast-node-loss", false, "notice a lost node within about 8 seconds instead of 50")
	command.Flags().DurationVar(&options.Wait, "wait", cluster.DefaultWait, "how long any one step may take; more for a very slow machine")
	command.Flags().BoolVar(&install, "install", false, "install missing Debian packages first, as `localkube prepare` does")
	addAPIServerArgs(command, &options.APIServerArgs)
	return command
}

func newDownCommand() *cobra.Command {
	var name string
	var purge bool
	command := &cobra.Command{
		Use:   "down",
		Short: "Take a cluster down and leave the machine as it was",
		Long: `Take a cluster down and leave the machine as it was: processes, network, mounts,
cgroups and kernel settings. What was stored in the cluster and on its volumes
is gone. The images that its nodes have stay in the cache, so that the next
cluster need not import them again, and so do the logs; --purge removes them.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			manager, err := newManager(cmd, name)
			if err != nil {
				return err
			}
			return manager.Down(cmd.Context(), purge)
		},
	}
	addName(command, &name)
	command.Flags().BoolVar(&purge, "purge", false, "remove the nodes' images and the logs as well")
	return command
}

func newStatusCommand() *cobra.Command {
	var name string
	command := &cobra.Command{
		Use:   "status",
		Short: "Show a cluster; the exit code is 0 if it is up and well",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			manager, err := newManager(cmd, name)
			if err != nil {
				return err
			}
			return manager.Status(cmd.Context(), cmd.OutOrStdout())
		},
	}
	addName(command, &name)
	return command
}

func newLoadCommand() *cobra.Command {
	var name string
	command := &cobra.Command{
		Use:   "load IMAGE.tar...",
		Short: "Bring images into all nodes of a cluster",
		Long: `Bring the images of OCI archives into all nodes of a cluster. A node that has the
image already, by name and digest, is left alone.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			manager, err := newManager(cmd, name)
			if err != nil {
				return err
			}
			return manager.Load(cmd.Context(), args)
		},
	}
	addName(command, &name)
	return command
}

func newKubeconfigCommand() *cobra.Command {
	var name string
	var path bool
	command := &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print a cluster's kubeconfig, or where it is",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			manager, err := newManager(cmd, name)
			if err != nil {
				return err
			}
			content, err := os.ReadFile(manager.Dirs.Kubeconfig())
			if err != nil {
				return fmt.Errorf("reading the kubeconfig of cluster %s (is it up?): %w", name, err)
			}
			if path {
				content = []byte(manager.Dirs.Kubeconfig() + "\n")
			}
			if _, err := cmd.OutOrStdout().Write(content); err != nil {
				return fmt.Errorf("printing the kubeconfig: %w", err)
			}
			return nil
		},
	}
	addName(command, &name)
	command.Flags().BoolVar(&path, "path", false, "print the path of the file")
	return command
}

func newPrepareCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "prepare",
		Short: "Install the Debian packages that nodes need; says nothing if all are there",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return prepare(cmd, progress.New(cmd.ErrOrStderr()))
		},
	}
}

func prepare(cmd *cobra.Command, log *progress.Log) error {
	missing := debian.ThisMachine().Missing()
	if len(missing) > 0 {
		log.Printf("installing %v", missing)
		if err := debian.Install(cmd.Context(), cmd.ErrOrStderr(), missing); err != nil {
			return err
		}
		log.Printf("installed %v", missing)
	}
	return debian.ThisMachine().Check()
}
