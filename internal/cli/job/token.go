package job

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/head"
	"github.com/heliostat-io/heliostat/internal/raycluster"
)

// authVariable is where Ray's own programs look for a token.
const authVariable = "RAY_AUTH_TOKEN"

// howToPass is for those who have to bring a token.
const howToPass = "pass it with --ray-token or in the variable " + authVariable

// broughtToken is a token that the user brings for a cluster that has none of its own, or whose own cannot be read or
// should not be sent. The variable does not outrank the Secret of a cluster, because it may still hold the token of another.
func (f *flags) broughtToken() string {
	if f.rayToken != "" {
		return f.rayToken
	}
	return os.Getenv(authVariable)
}

// checkToken says, before anything is made, that the cluster of the RayJob takes tokens of service accounts and none is given.
func (p *prepared) checkToken(f *flags) error {
	spec := p.job.Spec.RayClusterSpec
	if spec == nil || f.broughtToken() != "" || p.header.Get(authorization) != "" {
		return nil
	}
	if auth := raycluster.AuthOf(&rayv1.RayCluster{Spec: *spec}); !auth.Token || auth.Secret != "" {
		return nil
	}
	return fmt.Errorf("the cluster of the RayJob %w: get one with 'kubectl create token SERVICEACCOUNT --namespace %s' and %s",
		head.ErrServiceAccountToken, p.job.Namespace, howToPass)
}

// token is what to show to Ray. The token with which the user talks to the API server is never it.
func (r *run) token(ctx context.Context, cluster *rayv1.RayCluster) (string, error) {
	if r.flags.rayToken != "" {
		return r.flags.rayToken, nil
	}
	token, err := head.Token(ctx, r.client, cluster)
	brought := r.flags.broughtToken()
	switch {
	case err != nil && (brought != "" || r.plan.header.Get(authorization) != ""):
		return brought, nil
	case errors.Is(err, head.ErrServiceAccountToken):
		return "", fmt.Errorf("%w and %s", err, howToPass)
	case err != nil:
		return "", err
	case token != "" && exposed(r.flags.address):
		if brought == "" {
			r.progress.say("Warning: the token of RayCluster %s/%s is not sent, because %s is not encrypted. To send it nevertheless, %s.",
				cluster.Namespace, cluster.Name, r.flags.address, howToPass)
		}
		return brought, nil
	default:
		return token, nil
	}
}

// exposed tells whether others on the way can read what is sent to an address.
func exposed(address string) bool {
	target, err := url.Parse(address)
	if err != nil || target.Scheme != "http" || target.Hostname() == "localhost" {
		return false
	}
	ip := net.ParseIP(target.Hostname())
	return ip == nil || !ip.IsLoopback()
}
