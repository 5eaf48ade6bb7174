package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/heliostat-io/heliostat/hack/localkube/internal/progress"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/standalone"
)

func newAPIServerCommand() *cobra.Command {
	var apiServerArgs []string
	command := &cobra.Command{
		Use:   "apiserver",
		Short: "Run etcd and an API server in the foreground, without root",
		Long: `Run etcd and an API server in the foreground: no nodes, no controllers, no root.
Both listen on free ports of the loopback interface and keep their data in a
temporary folder.

When the API server is ready, one line of JSON is printed to standard output:
  {"kubeconfig":"/tmp/.../admin.conf","server":"https://127.0.0.1:41043","logs":"/tmp/..."}

It ends, and removes everything, on Ctrl-C, on SIGTERM, and when standard input
is a pipe whose other end is closed: a test that starts it with a pipe leaves
nothing behind however it ends.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log := progress.New(cmd.ErrOrStderr())
			programs, err := newBuilder(log)
			if err != nil {
				return err
			}
			paths, err := programs.Ensure(cmd.Context(), "kube")
			if err != nil {
				return err
			}
			ctx, cancel := context.WithCancel(cmd.Context())
			defer cancel()
			piped, err := isPipe(os.Stdin)
			if err != nil {
				return err
			}
			if piped {
				go func() {
					// Whatever is written to us, it is the end that counts.
					_, _ = io.Copy(io.Discard, os.Stdin)
					cancel()
				}()
			}
			return standalone.Run(ctx, standalone.Options{
				Kube: paths[0], APIServerArgs: apiServerArgs, Log: log, Out: cmd.OutOrStdout(),
			})
		},
	}
	addAPIServerArgs(command, &apiServerArgs)
	return command
}

func addAPIServerArgs(command *cobra.Command, args *[]string) {
	command.Flags().StringArrayVar(args, "apiserver-arg", nil, "a further `flag` of kube-apiserver, for example --apiserver-arg=--v=2; can be given several times")
}

// isPipe tells a pipe or socket, whose other end somebody holds, from a
// terminal, from /dev/null and from a file.
func isPipe(file *os.File) (bool, error) {
	info, err := file.Stat()
	if err != nil {
		return false, fmt.Errorf("looking at standard input: %w", err)
	}
	return info.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0, nil
}
