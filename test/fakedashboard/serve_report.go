package fakedashboard

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
)

// reportServe tells what Serve runs. Before the first config there is no Serve, and little to tell.
func (d *Dashboard) reportServe(w http.ResponseWriter, r *http.Request) {
	if !d.serve.started {
		sendJSON(w, map[string]any{"controller_info": map[string]any{}, "proxies": map[string]any{}, "applications": map[string]any{}, "target_capacity": nil})
		return
	}
	source := r.URL.Query().Get("api_type")
	apps := map[string]any{}
	for name, app := range d.serve.apps {
		if source == "" || source == app.source() {
			apps[name] = app.wire(name, d.serve.capacity)
		}
		app.advance(d.serve.capacity)
	}
	proxies := map[string]any{}
	for i, proxy := range d.serveProxies {
		id := proxy.NodeID
		if id == "" {
			id = fmt.Sprintf("node%02d", i)
		}
		proxies[id] = map[string]any{"node_id": id, "node_ip": proxy.NodeIP, "node_instance_id": proxy.NodeInstanceID,
			"actor_name": "SERVE_PROXY_ACTOR-" + id, "status": proxy.Status}
	}
	options := map[string]any{"host": "0.0.0.0", "port": 8000}
	for key, value := range d.serve.http {
		options[key] = value
	}
	sendJSON(w, map[string]any{
		"controller_info": map[string]any{"actor_name": "SERVE_CONTROLLER_ACTOR"}, "proxy_location": d.serve.location,
		"http_options": options, "grpc_options": map[string]any{"port": 9000, "grpc_servicer_functions": []any{}},
		"target_capacity": d.serve.capacity, "proxies": proxies, "applications": apps,
		"target_groups": []any{}, "restores_unset_config_options": true,
	})
}

func (a *serveApp) source() string {
	if a.imperative {
		return "imperative"
	}
	return "declarative"
}

// wire is the application as Ray writes it.
func (a *serveApp) wire(name string, wanted *float64) map[string]any {
	step := a.script[0]
	route, set := a.config["route_prefix"]
	if !set {
		route = "/"
	}
	out := map[string]any{
		"name": name, "route_prefix": route, "docs_path": nil, "status": step.Status, "message": step.Message,
		"last_deployed_time_s": float64(a.deployed.UnixMilli()) / 1000, "source": a.source(), "deployed_app_config": nil,
		"external_scaler_enabled": false, "deployments": a.deployments(name, step, wanted),
	}
	if a.config != nil {
		out["deployed_app_config"] = a.config
	}
	return out
}

// deployments are those that the config names; an application whose config names none has one.
func (a *serveApp) deployments(app string, step ServeStep, wanted *float64) map[string]any {
	listed, _ := a.config["deployments"].([]any)
	if len(listed) == 0 {
		listed = []any{map[string]any{"name": "Main"}}
	}
	out := map[string]any{}
	for _, item := range listed {
		fields := item.(map[string]any)
		name := fmt.Sprint(fields["name"])
		full := replicasOf(fields)
		running := scaled(full, a.capacity)
		replicas := []any{}
		for i := range running {
			replicas = append(replicas, map[string]any{"replica_id": fmt.Sprintf("%s-%s-%d", app, name, i), "state": replicaState(step.Status),
				"node_ip": "10.0.0.1", "start_time_s": float64(a.deployed.Unix())})
		}
		target := scaled(full, wanted)
		out[name] = map[string]any{
			"name": name, "status": deploymentStatus(step.Status, running, target), "status_trigger": "CONFIG_UPDATE_STARTED", "message": step.Message,
			"deployment_config": fields, "target_num_replicas": target, "required_resources": map[string]any{"CPU": 1}, "replicas": replicas,
		}
	}
	return out
}

// replicasOf is how many replicas the config of a deployment asks for; one where it does not say or leaves it to Serve.
func replicasOf(fields map[string]any) int {
	count, ok := fields["num_replicas"].(json.Number)
	if !ok {
		return 1
	}
	replicas, err := count.Int64()
	if err != nil {
		return 1
	}
	return int(replicas)
}

// scaled is how many of so many replicas Serve wants at a target capacity.
func scaled(replicas int, capacity *float64) int {
	switch {
	case capacity == nil || replicas == 0:
		return replicas
	case *capacity == 0:
		return 0
	}
	return max(1, int(math.Floor(float64(replicas)**capacity/100+0.5)))
}

// replicaState is what the replicas of an application do.
func replicaState(application string) string {
	if application == "RUNNING" || application == "UNHEALTHY" {
		return "RUNNING"
	}
	return "STARTING"
}

// deploymentStatus is the status of the deployments of an application.
func deploymentStatus(application string, running, target int) string {
	switch application {
	case "RUNNING":
		switch {
		case running < target:
			return "UPSCALING"
		case running > target:
			return "DOWNSCALING"
		}
		return "HEALTHY"
	case "UNHEALTHY", "DEPLOY_FAILED":
		return application
	}
	return "UPDATING"
}
