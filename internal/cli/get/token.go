package get

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
	"github.com/heliostat-io/heliostat/internal/ray"
	"github.com/heliostat-io/heliostat/internal/raycluster"
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
	auth := raycluster.AuthOf(cluster)
	switch {
	case !auth.Token:
		return "", fmt.Errorf("RayCluster %s/%s asks for no token: its spec.authOptions.mode is not %q",
			cluster.Namespace, cluster.Name, rayv1.AuthModeToken)
	case auth.Secret == "":
		return "", fmt.Errorf("RayCluster %s/%s takes tokens of service accounts: get one with "+
			"'kubectl create token SERVICEACCOUNT --namespace %s'", cluster.Namespace, cluster.Name, cluster.Namespace)
	}
	secret, err := tokenSecret(ctx, c, cluster, auth.Secret)
	if err != nil {
		return "", err
	}
	token := secret.Data[ray.TokenKey]
	if len(token) == 0 {
		return "", fmt.Errorf("Secret %s/%s of RayCluster %s has no value under the key %q",
			secret.Namespace, secret.Name, cluster.Name, ray.TokenKey)
	}
	return string(token), nil
}

// tokenSecret reads the Secret of a cluster. KubeRay names it otherwise than Heliostat where the cluster's name is long.
func tokenSecret(ctx context.Context, c client.Reader, cluster *rayv1.RayCluster, name string) (*corev1.Secret, error) {
	names := []string{name}
	if ptr.Deref(cluster.Spec.AuthOptions.SecretName, "") == "" {
		if other := lastCharacters(cluster.Name); other != name {
			names = append(names, other)
		}
	}
	secret := &corev1.Secret{}
	for _, name := range names {
		err := c.Get(ctx, types.NamespacedName{Namespace: cluster.Namespace, Name: name}, secret)
		if err == nil {
			return secret, nil
		}
		if !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("read Secret %s/%s, which holds the token of RayCluster %s: %w",
				cluster.Namespace, name, cluster.Name, err)
		}
	}
	return nil, fmt.Errorf("no Secret %q in namespace %q, which should hold the token of RayCluster %q: "+
		"has the operator seen the cluster yet?", names[0], cluster.Namespace, cluster.Name)
}

// lastCharacters is KubeRay's rule for names made from a cluster's: the last 50 characters, where a digit or a
// punctuation mark at the front becomes an r (spec/raycluster.md, section 1).
func lastCharacters(name string) string {
	const kept = 50
	if len(name) > kept {
		name = name[len(name)-kept:]
	}
	if name != "" && strings.Contains("0123456789-.", name[:1]) {
		name = "r" + name[1:]
	}
	return name
}
