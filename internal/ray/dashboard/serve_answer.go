package dashboard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// serveAnswer is a report of Serve as Ray writes it. Fields that are not needed are left out, and unknown ones are skipped,
// for their number grew with every release.
type serveAnswer struct {
	ProxyLocation  *string                      `json:"proxy_location"`
	TargetCapacity *float64                     `json:"target_capacity"`
	HTTPOptions    json.RawMessage              `json:"http_options"`
	GRPCOptions    json.RawMessage              `json:"grpc_options"`
	Proxies        map[string]proxyAnswer       `json:"proxies"`
	Applications   map[string]applicationAnswer `json:"applications"`
}

type proxyAnswer struct {
	NodeID         string `json:"node_id"`
	NodeIP         string `json:"node_ip"`
	NodeInstanceID string `json:"node_instance_id"`
	Status         string `json:"status"`
}

type applicationAnswer struct {
	RoutePrefix    string                      `json:"route_prefix"`
	Status         string                      `json:"status"`
	Message        string                      `json:"message"`
	LastDeployed   *float64                    `json:"last_deployed_time_s"`
	DeployedConfig json.RawMessage             `json:"deployed_app_config"`
	Source         string                      `json:"source"`
	Deployments    map[string]deploymentAnswer `json:"deployments"`
}

type deploymentAnswer struct {
	Status            string          `json:"status"`
	StatusTrigger     string          `json:"status_trigger"`
	Message           string          `json:"message"`
	TargetNumReplicas *float64        `json:"target_num_replicas"`
	Config            json.RawMessage `json:"deployment_config"`
	Replicas          []replicaAnswer `json:"replicas"`
}

// deploymentConfig is what Ray made of the code and the config of a deployment. It has one of both numbers.
type deploymentConfig struct {
	NumReplicas *float64 `json:"num_replicas"`
	Autoscaling *struct {
		MinReplicas *float64 `json:"min_replicas"`
	} `json:"autoscaling_config"`
}

type replicaAnswer struct {
	ID     string `json:"replica_id"`
	State  string `json:"state"`
	NodeIP string `json:"node_ip"`
}

const (
	// imperative is the source of an application that a program deployed.
	imperative = "imperative"
	// defaultApplication is the name of an application that was given none.
	defaultApplication = "default"
)

// details checks that the answer is a report of Serve, which always says which applications there are.
func (a serveAnswer) details() (*ServeDetails, error) {
	if a.Applications == nil {
		return nil, fmt.Errorf("%w: it does not say which applications there are", ErrUnexpectedAnswer)
	}
	details := &ServeDetails{
		TargetCapacity: a.TargetCapacity,
		Proxies:        make(map[string]ServeProxy, len(a.Proxies)),
		Applications:   make(map[string]ServeApplication, len(a.Applications)),
	}
	if a.ProxyLocation != nil {
		details.ProxyLocation = *a.ProxyLocation
	}
	var err error
	if details.HTTPOptions, err = object("http_options", a.HTTPOptions); err != nil {
		return nil, err
	}
	if details.GRPCOptions, err = object("grpc_options", a.GRPCOptions); err != nil {
		return nil, err
	}
	for id, proxy := range a.Proxies {
		details.Proxies[id] = ServeProxy{NodeID: id, NodeIP: proxy.NodeIP, NodeInstanceID: proxy.NodeInstanceID, Status: proxy.Status}
	}
	for name, application := range a.Applications {
		// Releases that do not know the parameter by which we ask for those of a config send them all.
		if application.Source == imperative {
			continue
		}
		if name == "" {
			name = defaultApplication
		}
		if details.Applications[name], err = application.details(name); err != nil {
			return nil, err
		}
	}
	return details, nil
}

func (a applicationAnswer) details(name string) (ServeApplication, error) {
	config, err := object("the config of application "+name, a.DeployedConfig)
	if err != nil {
		return ServeApplication{}, err
	}
	application := ServeApplication{
		Name:           name,
		RoutePrefix:    a.RoutePrefix,
		Status:         a.Status,
		Message:        a.Message,
		DeployedConfig: config,
		Deployments:    make(map[string]ServeDeployment, len(a.Deployments)),
	}
	if a.LastDeployed != nil && *a.LastDeployed > 0 {
		application.LastDeployed = time.UnixMilli(int64(*a.LastDeployed * 1000)).UTC()
	}
	for deployment, answer := range a.Deployments {
		application.Deployments[deployment] = answer.details(deployment)
	}
	return application, nil
}

func (a deploymentAnswer) details(name string) ServeDeployment {
	deployment := ServeDeployment{Name: name, Status: a.Status, StatusTrigger: a.StatusTrigger, Message: a.Message}
	if a.TargetNumReplicas != nil {
		deployment.TargetNumReplicas = int(*a.TargetNumReplicas)
	}
	deployment.FewestReplicas = a.fewest()
	for _, replica := range a.Replicas {
		deployment.Replicas = append(deployment.Replicas, ServeReplica(replica))
	}
	return deployment
}

// fewest is the number of replicas at full capacity that the deployment never falls below; 0 if that is not told in a form
// that is known.
func (a deploymentAnswer) fewest() int {
	var config deploymentConfig
	switch err := json.Unmarshal(a.Config, &config); {
	case err != nil:
		return 0
	case config.NumReplicas != nil:
		return int(*config.NumReplicas)
	case config.Autoscaling != nil && config.Autoscaling.MinReplicas != nil:
		return int(*config.Autoscaling.MinReplicas)
	default:
		return 0
	}
}

// object reads a JSON object and keeps its numbers as they are written; nothing and null are nil.
func object(what string, text json.RawMessage) (map[string]any, error) {
	if len(text) == 0 {
		return nil, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var out map[string]any
	if err := decoder.Decode(&out); err != nil {
		return nil, fmt.Errorf("%w: reading %s: %w", ErrUnexpectedAnswer, what, err)
	}
	return out, nil
}
