package get

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/head"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
)

func tokenCommand(env *kube.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "token CLUSTER",
		Short: "Print the token that a Ray cluster asks its clients for",
		Long: "Print the token that a Ray cluster asks its clients for, without a line break, so that it can be used as in\n" +
			"    export RAY_AUTH_TOKEN=$(" + env.Program + " get token CLUSTER)",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: kube.CompleteFirst(env.CompleteNames(kube.RayCluster)),
		RunE: func(cmd *cobra.Command, args []string) error {
			namespace, err := env.Namespace()
			if err != nil {
				return err
			}
			c, err := env.Client()
			if err != nil {
				return err
			}
			token, err := readToken(cmd.Context(), c, scope{namespace: namespace}, args[0])
			if err != nil {
				return err
			}
			_, err = io.WriteString(env.Out, token)
			return err
		},
	}
}

func readToken(ctx context.Context, c client.Reader, where scope, name string) (string, error) {
	found, err := clusterSource().find(ctx, c, where, name)
	if err != nil {
		return "", err
	}
	cluster := found[0]
	token, err := head.Token(ctx, c, cluster)
	if err == nil && token == "" {
		return "", fmt.Errorf("RayCluster %s/%s asks for no token: its spec.authOptions.mode is not %q",
			cluster.Namespace, cluster.Name, rayv1.AuthModeToken)
	}
	return token, err
}
