package config

import (
	"errors"
	"fmt"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// RESTConfig returns how to reach the API server, with the limits of the Config and the given user agent. The API server
// derives the field manager of plain updates from the part of the user agent before the first slash.
//
// A kubeconfig named by --kubeconfig or KUBECONFIG comes first, then the Pod's service account, then
// $HOME/.kube/config.
func (c Config) RESTConfig(userAgent string) (*rest.Config, error) {
	rc, err := c.restConfig()
	if err != nil {
		return nil, err
	}
	rc.UserAgent = userAgent
	rc.QPS = c.QPS
	rc.Burst = c.Burst
	return rc, nil
}

func (c Config) restConfig() (*rest.Config, error) {
	if c.Kubeconfig != "" {
		rules := &clientcmd.ClientConfigLoadingRules{Precedence: filepath.SplitList(c.Kubeconfig)}
		rc, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
		if err != nil {
			return nil, fmt.Errorf("loading kubeconfig %s: %w", c.Kubeconfig, err)
		}
		return rc, nil
	}

	rc, err := rest.InClusterConfig()
	if err == nil {
		return rc, nil
	}
	if !errors.Is(err, rest.ErrNotInCluster) {
		return nil, fmt.Errorf("loading the configuration of the Pod's service account: %w", err)
	}
	rules := &clientcmd.ClientConfigLoadingRules{Precedence: []string{clientcmd.RecommendedHomeFile}}
	rc, err = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("loading %s, since neither --kubeconfig nor a service account is there: %w",
			clientcmd.RecommendedHomeFile, err)
	}
	return rc, nil
}
