package head

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/ray"
	"github.com/heliostat-io/heliostat/internal/raycluster"
)

// ErrServiceAccountToken says that a cluster has no token of its own, but takes those of service accounts. Whose to use is
// for the user to say: the token of the user's own kubeconfig may be one of an administrator, and is never handed to Ray.
var ErrServiceAccountToken = errors.New("takes tokens of service accounts")

// Token is what Ray asks of the clients of a cluster, or "" when it asks for nothing. It is read from the Secret of the
// cluster; the error wraps ErrServiceAccountToken when there is none by design.
func Token(ctx context.Context, c client.Reader, cluster *rayv1.RayCluster) (string, error) {
	auth := raycluster.AuthOf(cluster)
	switch {
	case !auth.Token:
		return "", nil
	case auth.Secret == "":
		return "", fmt.Errorf("RayCluster %s/%s %w: get one with 'kubectl create token SERVICEACCOUNT --namespace %s'",
			cluster.Namespace, cluster.Name, ErrServiceAccountToken, cluster.Namespace)
	}
	secret, err := tokenSecret(ctx, c, cluster, auth.Secret)
	if err != nil {
		return "", err
	}
	token := secret.Data[ray.TokenKey]
	if len(token) == 0 {
		return "", fmt.Errorf("Secret %s/%s of RayCluster %s has no value under the key %q", secret.Namespace, secret.Name, cluster.Name, ray.TokenKey)
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
			return nil, fmt.Errorf("read Secret %s/%s, which holds the token of RayCluster %s: %w", cluster.Namespace, name, cluster.Name, err)
		}
	}
	return nil, fmt.Errorf("no Secret %q in namespace %q, which should hold the token of RayCluster %q: has the operator seen the cluster yet?",
		names[0], cluster.Namespace, cluster.Name)
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
