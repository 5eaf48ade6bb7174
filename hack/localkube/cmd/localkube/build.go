package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	localkube "github.com/heliostat-io/heliostat/hack/localkube"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/builder"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/progress"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/state"
)

func newBuilder(log *progress.Log) (builder.Builder, error) {
	cache, err := state.CacheDir()
	if err != nil {
		return builder.Builder{}, err
	}
	dir := state.BinDir(cache)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return builder.Builder{}, fmt.Errorf("making the folder for built programs: %w", err)
	}
	return builder.Builder{Sources: localkube.Sources(), Dir: dir, Log: log}, nil
}

func newBuildCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "build",
		Short: "Build the programs of a cluster into the cache",
		Long: `Build the programs of a cluster (kube, coredns and pause) into the cache and
print where they are. Programs that were built from the same sources before are
left as they are. "up" and "apiserver" do this by themselves.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			programs, err := newBuilder(progress.New(cmd.ErrOrStderr()))
			if err != nil {
				return err
			}
			paths, err := programs.Ensure(cmd.Context(), "kube", "coredns", "pause")
			if err != nil {
				return err
			}
			for _, path := range paths {
				fmt.Fprintln(cmd.OutOrStdout(), path)
			}
			return nil
		},
	}
}
