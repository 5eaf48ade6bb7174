package rayservice

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
	"github.com/heliostat-io/heliostat/internal/ray/poll"
	"github.com/heliostat-io/heliostat/internal/raycluster"
)

// modelReplicas is how many replicas the one deployment on each cluster of a world has in all.
const modelReplicas = 4

// controlRound is how long Serve in a world tells a new target capacity before its numbers of replicas follow.
const controlRound = 2 * time.Second

// modelServe is Serve on one cluster.
type modelServe struct {
	config   string
	capacity *int32
	// target are the replicas that are wanted, running those that run; they follow at followAt.
	target, running int
	followAt        time.Time
	// status is that of the application.
	status string
	// silent means that Serve does not answer, dead that no Pod takes requests either. Stuck means that replicas do not
	// follow.
	silent, dead, stuck bool
	put                 *action.Outcome
	// puts are all capacities that were asked for, in their order.
	puts []string
}

// take gives Serve a config.
func (w *world) take(a action.PutServe) {
	node := w.nodes[a.Cluster.GetName()]
	node.put = &action.Outcome{ID: a.Hash, At: w.now}
	if node.silent || node.dead {
		node.put.Err = errors.New("refused")
		return
	}
	var body struct {
		Capacity *int32 `json:"target_capacity"`
	}
	if err := json.Unmarshal(a.Config, &body); err != nil {
		w.t.Fatalf("body %s: %v", a.Config, err)
	}
	node.config, node.capacity, node.followAt = string(a.Config), body.Capacity, w.now.Add(controlRound)
	shown := "all"
	if body.Capacity != nil {
		shown = strconv.Itoa(int(*body.Capacity))
	}
	node.puts = append(node.puts, shown)
}

// evolve brings up Pods, lets replicas follow, refreshes reports and endpoints, and takes up changes of the Gateway.
func (w *world) evolve() {
	for i := range w.s.Clusters {
		w.evolveCluster(&w.s.Clusters[i], i)
	}
	w.s.Services = slices.DeleteFunc(w.s.Services, func(service *corev1.Service) bool {
		owner := metav1.GetControllerOf(service)
		return owner.Kind == rayv1.KindRayCluster && w.s.cluster(owner.Name) == nil
	})
	for _, service := range w.s.Services {
		w.s.Endpoints[service.Name] = w.endpoints(service)
	}
	if w.gatewayDown {
		return
	}
	if g := w.s.Gateway; g != nil {
		g.Status.Conditions = accepted(g.Generation, string(gatewayv1.GatewayConditionAccepted), string(gatewayv1.GatewayConditionProgrammed))
	}
	if r := w.s.Route; r != nil && len(r.Spec.ParentRefs) > 0 {
		r.Status.Parents = []gatewayv1.RouteParentStatus{{ParentRef: r.Spec.ParentRefs[0],
			Conditions: accepted(r.Generation, string(gatewayv1.RouteConditionAccepted), string(gatewayv1.RouteConditionResolvedRefs))}}
	}
}

func accepted(generation int64, kinds ...string) []metav1.Condition {
	var conditions []metav1.Condition
	for _, kind := range kinds {
		meta.SetStatusCondition(&conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind, ObservedGeneration: generation})
	}
	return conditions
}

func (w *world) evolveCluster(c *Cluster, number int) {
	node := w.nodes[c.name()]
	if node == nil {
		node = &modelServe{status: "RUNNING"}
		w.nodes[c.name()] = node
		c.HeadService = raycluster.HeadService(c.Object, w.settings.Clusters)
		c.Pods = twoPods(c.name(), number+len(w.nodes))
	}
	if !w.now.Before(node.followAt) && node.config != "" && !node.stuck {
		node.target = replicasAt(ptr.Deref(node.capacity, 100), modelReplicas)
		// One more or fewer with each pass.
		switch {
		case node.running < node.target:
			node.running++
		case node.running > node.target:
			node.running--
		}
	}
	for i := range c.Pods {
		c.Pods[i].Traffic = &poll.Observation{Asked: w.now, Answered: w.now, Traffic: &dashboard.ServeTraffic{}}
	}
	c.Put = node.put
	c.Report = nil
	if w.asked[c.name()] {
		c.Report = w.report(c, node)
	}
}

func twoPods(cluster string, number int) []Pod {
	address := fmt.Sprintf("10.0.%d.", number)
	return []Pod{node(cluster, rayv1.NodeTypeHead, address+"1"), node(cluster, rayv1.NodeTypeWorker, address+"2")}
}

func (w *world) report(c *Cluster, node *modelServe) *poll.Observation {
	observation := &poll.Observation{Asked: w.now, Answered: w.now, SessionName: "session_" + c.name()}
	if node.silent || node.dead {
		observation.Err, observation.Failures = errors.New("no answer"), leastFailures
		return observation
	}
	details := &dashboard.ServeDetails{Applications: applications(node.config, node.status), Proxies: map[string]dashboard.ServeProxy{}}
	if node.capacity != nil {
		details.TargetCapacity = ptr.To(float64(*node.capacity))
	}
	for name, application := range details.Applications {
		deployment := dashboard.ServeDeployment{Name: "D", Status: rayv1.DeploymentStatusHealthy, TargetNumReplicas: node.target, FewestReplicas: modelReplicas}
		for range node.running {
			deployment.Replicas = append(deployment.Replicas, dashboard.ServeReplica{State: dashboard.ReplicaRunning})
		}
		application.Deployments = map[string]dashboard.ServeDeployment{"D": deployment}
		details.Applications[name] = application
	}
	for _, pod := range c.Pods {
		details.Proxies[pod.Name] = dashboard.ServeProxy{NodeIP: pod.Status.PodIP, Status: healthyProxy}
	}
	observation.Serve = details
	return observation
}

// endpoints are the Pods that take requests behind a Service.
func (w *world) endpoints(service *corev1.Service) []Endpoint {
	c := w.s.cluster(service.Spec.Selector[rayv1.LabelCluster])
	if c == nil || w.nodes[c.name()] == nil || w.nodes[c.name()].dead || service.Spec.Selector[rayv1.LabelServe] == "" {
		return nil
	}
	var endpoints []Endpoint
	for _, pod := range c.Pods {
		endpoints = append(endpoints, Endpoint{Pod: pod.UID, Ready: true})
	}
	return endpoints
}
