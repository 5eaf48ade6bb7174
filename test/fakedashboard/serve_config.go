package fakedashboard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
)

// serveConfig is a config that Serve has looked at.
type serveConfig struct {
	location string
	http     map[string]any
	capacity *float64
	// apps are the configs of the applications by name, without the fields that Ray does not know.
	apps map[string]map[string]any
}

// The fields that Ray 2.60 knows. It passes over others without a word.
var (
	knownApp = []string{"name", "route_prefix", "import_path", "runtime_env", "args", "deployments", "autoscaling_policy",
		"logging_config", "external_scaler_enabled"}
	knownDeployment = []string{"name", "num_replicas", "max_ongoing_requests", "max_queued_requests", "user_config",
		"autoscaling_config", "graceful_shutdown_wait_loop_s", "graceful_shutdown_timeout_s", "health_check_period_s",
		"health_check_timeout_s", "ray_actor_options", "placement_group_bundles", "placement_group_strategy",
		"max_replicas_per_node", "logging_config", "request_router_config"}
)

// putServe takes a config or refuses it.
func (d *Dashboard) putServe(w http.ResponseWriter, body []byte) {
	if !json.Valid(body) {
		sendText(w, http.StatusInternalServerError, "500 Internal Server Error\n\nServer got itself in trouble")
		return
	}
	wanted, refusal := readServeConfig(body)
	if d.serveRefusal != "" {
		refusal = d.serveRefusal
	}
	if refusal != "" {
		sendText(w, http.StatusBadRequest, refusal)
		return
	}
	d.applyServe(wanted)
	d.servePuts++
	w.WriteHeader(http.StatusOK)
}

// readServeConfig reads a config, or returns why Serve refuses it.
func readServeConfig(body []byte) (config serveConfig, refusal string) {
	var root struct {
		Location     *string          `json:"proxy_location"`
		HTTP         map[string]any   `json:"http_options"`
		Logging      any              `json:"logging_config"`
		Capacity     *float64         `json:"target_capacity"`
		Applications []map[string]any `json:"applications"`
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if err := decoder.Decode(&root); err != nil {
		return serveConfig{}, invalid(err.Error())
	}
	if root.Applications == nil {
		return serveConfig{}, invalid("applications\n  Field required [type=missing]")
	}
	config = serveConfig{location: "EveryNode", http: root.HTTP, capacity: root.Capacity, apps: map[string]map[string]any{}}
	if root.Location != nil {
		config.location = *root.Location
	}
	for i, app := range root.Applications {
		if _, ok := app["import_path"].(string); !ok {
			return serveConfig{}, invalid(fmt.Sprintf("applications.%d.import_path\n  Field required [type=missing]", i))
		}
		name, ok := app["name"].(string)
		if !ok {
			name = "default"
		}
		if config.apps[name] != nil {
			return serveConfig{}, invalid(fmt.Sprintf("applications\n  Value error, Found multiple configs for application \"%s\". Please remove all duplicates.", name))
		}
		config.apps[name] = kept(app, root.Logging)
	}
	return config, ""
}

// kept is what Serve keeps of the config of an application.
func kept(app map[string]any, logging any) map[string]any {
	app = only(app, knownApp)
	if app["logging_config"] == nil && logging != nil {
		app["logging_config"] = logging
	}
	if deployments, ok := app["deployments"].([]any); ok {
		known := make([]any, 0, len(deployments))
		for _, deployment := range deployments {
			if fields, ok := deployment.(map[string]any); ok {
				known = append(known, only(fields, knownDeployment))
			}
		}
		app["deployments"] = known
	}
	return app
}

// only returns a copy with these keys alone.
func only(fields map[string]any, known []string) map[string]any {
	fields = maps.Clone(fields)
	maps.DeleteFunc(fields, func(key string, _ any) bool { return !slices.Contains(known, key) })
	return fields
}

// invalid is how Ray begins to refuse a config.
func invalid(cause string) string {
	return "1 validation error for ServeDeploySchema\n" + cause
}
