package serve

import (
	"maps"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
)

// Reported reads back the config that Serve has, for a cluster of which no other record exists. It is false when Serve has
// no applications, or does not tell the config of one of them: part of a config would remove the rest if it were put.
// Applications that are being removed are left out, and so is the target capacity. What Serve does not report, the logging
// config of its own processes, is lost.
func Reported(d *dashboard.ServeDetails) (*Config, bool) {
	if d == nil {
		return nil, false
	}
	apps := []any{}
	for _, name := range slices.Sorted(maps.Keys(d.Applications)) {
		app := d.Applications[name]
		if app.Status == dashboard.ApplicationDeleting {
			continue
		}
		if app.DeployedConfig == nil {
			return nil, false
		}
		config := maps.Clone(app.DeployedConfig)
		config[keyName] = name
		apps = append(apps, config)
	}
	root := map[string]any{keyApplications: apps}
	if d.ProxyLocation != "" {
		root[keyProxyLocation] = d.ProxyLocation
	}
	for key, options := range map[string]map[string]any{keyHTTPOptions: d.HTTPOptions, keyGRPCOptions: d.GRPCOptions} {
		if len(options) > 0 {
			root[key] = options
		}
	}
	text, err := yaml.Marshal(root)
	if err != nil {
		return nil, false
	}
	config, err := Parse(string(text))
	return config, err == nil
}
