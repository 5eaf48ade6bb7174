package plan

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-io/heliostat/internal/config"
	"github.com/heliostat-io/heliostat/internal/diagnose/gather"
	"github.com/heliostat-io/heliostat/internal/operator/settings"
	"github.com/heliostat-io/heliostat/internal/raycluster"
	"github.com/heliostat-io/heliostat/internal/rayjob"
	"github.com/heliostat-io/heliostat/internal/rayservice"
)

// operator is what an operator is told: the settings of its controllers.
type operator struct {
	clusters raycluster.Settings
	jobs     rayjob.Settings
	services rayservice.Settings
	// origin says where the settings are from, as the end of a sentence.
	origin string
}

// operatorOf returns the settings of the operator that looks after a namespace, and the default ones where they cannot be read.
func operatorOf(ctx context.Context, c client.Client, namespace string) (operator, error) {
	cfg, origin, err := installed(ctx, c, namespace)
	if err != nil {
		origin = "the default settings, because those of the operator are not known: " + err.Error()
		if cfg, err = config.Parse(nil, func(string) string { return "" }, nil); err != nil {
			return operator{}, fmt.Errorf("read the operator's default settings: %w", err)
		}
	}
	return settingsFor(cfg, origin, c.RESTMapper())
}

// settingsFor picks what the controllers depend on, on a Kubernetes with these kinds.
func settingsFor(cfg config.Config, origin string, mapper meta.RESTMapper) (operator, error) {
	clusters, err := settings.Clusters(cfg, "", mapper)
	if err != nil {
		return operator{}, err
	}
	gateways, err := settings.GatewayAPI(cfg, mapper)
	if err != nil {
		return operator{}, err
	}
	return operator{clusters, settings.Jobs(cfg), settings.Services(cfg, clusters, gateways), origin}, nil
}

// installed reads the configuration of the operator that looks after a namespace from its Deployment, as the program itself reads it
// from its command line, its environment and its file. It fails unless that is one Deployment whose settings can all be read.
func installed(ctx context.Context, c client.Reader, namespace string) (config.Config, string, error) {
	list := &appsv1.DeploymentList{}
	if err := c.List(ctx, list, client.MatchingLabelsSelector{Selector: gather.OperatorSelector()}); err != nil {
		return config.Config{}, "", fmt.Errorf("list its Deployments: %w", err)
	}
	var found config.Config
	var from []string
	for i := range list.Items {
		d := &list.Items[i]
		cfg, elsewhere, err := gather.Configuration(ctx, c, d)
		if err == nil && len(elsewhere) > 0 {
			err = fmt.Errorf("the values of variables %s do not stand in Deployment %s/%s", strings.Join(elsewhere, ", "), d.Namespace, d.Name)
		}
		if err != nil {
			return config.Config{}, "", err
		}
		if len(cfg.WatchNamespaces) == 0 || slices.Contains(cfg.WatchNamespaces, namespace) {
			found, from = cfg, append(from, d.Namespace+"/"+d.Name)
		}
	}
	switch len(from) {
	case 0:
		return config.Config{}, "", fmt.Errorf("no Deployment with the label %s looks after namespace %s", gather.OperatorSelector(), namespace)
	case 1:
		return found, "the settings of Deployment " + from[0], nil
	default:
		return config.Config{}, "", fmt.Errorf("more than one looks after namespace %s: the Deployments %s", namespace, strings.Join(from, ", "))
	}
}
