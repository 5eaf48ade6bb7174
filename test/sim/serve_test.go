package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
)

const (
	// deployTime is how long Serve takes to bring an application up.
	deployTime = 4 * time.Second
	// sickTime is how long a proxy that has stopped to answer stays so.
	sickTime = 15 * time.Second
)

// Import paths of applications that do not get to run.
const (
	// refused is one that Serve does not take.
	refused = "refused:app"
	// failing is one that Serve takes and cannot bring up.
	failing = "failing:app"
)

// serveLife is Ray Serve as one life of a head knows it. It begins with the first config and is lost with that life.
type serveLife struct {
	session string
	// cluster is the name of the RayCluster.
	cluster string
	// proxiesAt is when the first proxies can come up.
	proxiesAt time.Duration
	apps      map[string]*serveApp
	// proxies are those on the nodes, by the UID of the Pod.
	proxies map[types.UID]*serveProxy
}

// serveApp is one application.
type serveApp struct {
	config map[string]any
	status string
	// readyAt is when it will be up.
	readyAt time.Duration
	// ran means that replicas of it answer: Serve replaces them one by one when the config changes.
	ran bool
}

// serveProxy is the proxy of one node.
type serveProxy struct {
	up bool
	// wellAt is from when on it can come up.
	wellAt time.Duration
}

// serveOf is Serve in a life of a head, nil before the first config.
func (w *world) serveOf(head *corev1.Pod) *serveLife {
	if head == nil {
		return nil
	}
	for _, life := range w.serves {
		if life.session == sessionOf(head) {
			return life
		}
	}
	return nil
}

// headOfCluster is the head Pod of a cluster in which Ray runs, or nil.
func (w *world) headOfCluster(cluster string) *corev1.Pod {
	for _, head := range w.heads() {
		if head.Labels[rayv1.LabelCluster] == cluster {
			return head
		}
	}
	return nil
}

// serveOn is Serve as it runs on a cluster now, nil where it does not.
func (w *world) serveOn(cluster string) *serveLife { return w.serveOf(w.headOfCluster(cluster)) }

// takeConfig is what Serve does with a config: it brings up what is new or changed, and drops what is left out.
func (w *world) takeConfig(head *corev1.Pod, body []byte) reply {
	var config struct {
		Applications []map[string]any `json:"applications"`
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if err := decoder.Decode(&config); err != nil {
		return reply{http.StatusBadRequest, err.Error()}
	}
	w.judgeConfig(head.Labels[rayv1.LabelCluster], body)
	life := w.serveOf(head)
	if life == nil {
		life = &serveLife{session: sessionOf(head), cluster: head.Labels[rayv1.LabelCluster], proxiesAt: w.mono + w.scenario.proxyTime,
			apps: map[string]*serveApp{}, proxies: map[types.UID]*serveProxy{}}
		w.serves = append(w.serves, life)
	}
	wanted := map[string]*serveApp{}
	for _, app := range config.Applications {
		if app["import_path"] == refused {
			return reply{http.StatusBadRequest, "the import path is refused"}
		}
		name := app["name"].(string)
		wanted[name] = w.deploy(life.apps[name], app)
	}
	life.apps = wanted
	w.progressed++
	w.note("Serve on %s takes a config", life.cluster)
	return reply{http.StatusOK, ""}
}

// deploy is an application after it was given a config.
func (w *world) deploy(before *serveApp, config map[string]any) *serveApp {
	if before != nil && text(before.config) == text(config) {
		return before
	}
	return &serveApp{config: config, status: rayv1.AppStatusDeploying, readyAt: w.mono + deployTime, ran: before != nil && before.ran}
}

// serveDeeds are what Serve can do now.
func (w *world) serveDeeds() []*deed {
	var deeds []*deed
	for _, life := range w.serves {
		if head := w.headOfCluster(life.cluster); head == nil || sessionOf(head) != life.session {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(life.apps)) {
			if app := life.apps[name]; app.status == rayv1.AppStatusDeploying && w.mono >= app.readyAt {
				deeds = append(deeds, &deed{"Serve on " + life.cluster + " is done with application " + name, func() { w.deployed(app) }})
			}
		}
		for _, pod := range w.nodes(life.cluster) {
			if proxy := life.proxies[pod.UID]; answers(pod) && w.mono >= life.proxiesAt && (proxy == nil || !proxy.up && w.mono >= proxy.wellAt) {
				deeds = append(deeds, &deed{"the proxy on " + pod.Name + " is up", func() {
					life.proxies[pod.UID] = &serveProxy{up: true}
					w.progressed++
				}})
			}
		}
	}
	return deeds
}

func (w *world) deployed(app *serveApp) {
	w.progressed++
	if app.config["import_path"] == failing {
		app.status = rayv1.AppStatusDeployFailed
		return
	}
	app.status, app.ran = rayv1.AppStatusRunning, true
}

// nodes are the Pods of a cluster.
func (w *world) nodes(cluster string) []*corev1.Pod {
	var nodes []*corev1.Pod
	for _, stored := range w.server.List("Pod") {
		if stored.GetLabels()[rayv1.LabelCluster] == cluster {
			nodes = append(nodes, stored.(*corev1.Pod))
		}
	}
	return nodes
}

// serves tells whether a Pod is of a cluster that was made to run Serve.
func serves(pod *corev1.Pod) bool {
	_, marked := pod.Labels[rayv1.LabelServe]
	return marked
}

// takes tells whether the proxy of a Pod takes requests: it is up, and there is something to pass them to.
func (w *world) takes(pod *corev1.Pod) bool {
	life := w.serveOn(pod.Labels[rayv1.LabelCluster])
	if life == nil || !answers(pod) {
		return false
	}
	proxy := life.proxies[pod.UID]
	return proxy != nil && proxy.up && slices.ContainsFunc(slices.Collect(maps.Values(life.apps)), func(app *serveApp) bool { return app.ran })
}

// probe is what the readiness probe of a Pod says once Ray runs in it. That of a head of Serve asks the proxy only after the
// proxy has answered for the first time.
func (w *world) probe(pod *corev1.Pod) bool {
	if !serves(pod) || w.takes(pod) {
		return true
	}
	life := w.serveOn(pod.Labels[rayv1.LabelCluster])
	return pod.Labels[rayv1.LabelNodeType] == rayv1.NodeTypeHead && (life == nil || life.proxies[pod.UID] == nil || life.proxies[pod.UID].wellAt == 0)
}

// sicken lets a proxy that is up stop to answer for a while, and tells whether there was one.
func (w *world) sicken() bool {
	var well []*serveProxy
	for _, life := range w.serves {
		for _, uid := range slices.Sorted(maps.Keys(life.proxies)) {
			if proxy := life.proxies[uid]; proxy.up {
				well = append(well, proxy)
			}
		}
	}
	if len(well) == 0 {
		return false
	}
	w.excused = true
	*well[w.rng.IntN(len(well))] = serveProxy{wellAt: w.mono + sickTime}
	w.progressed++
	return true
}

// report is what Serve tells of itself.
func (w *world) report(head *corev1.Pod) *dashboard.ServeDetails {
	details := &dashboard.ServeDetails{Proxies: map[string]dashboard.ServeProxy{}, Applications: map[string]dashboard.ServeApplication{}}
	life := w.serveOf(head)
	if life == nil {
		return details
	}
	details.ProxyLocation = "EveryNode"
	for _, pod := range w.nodes(life.cluster) {
		if proxy := life.proxies[pod.UID]; proxy != nil {
			details.Proxies[string(pod.UID)] = dashboard.ServeProxy{NodeID: string(pod.UID), NodeIP: pod.Status.PodIP, Status: proxy.status()}
		}
	}
	for name, app := range life.apps {
		details.Applications[name] = dashboard.ServeApplication{Name: name, RoutePrefix: "/" + name, Status: app.status,
			DeployedConfig: maps.Clone(app.config), Deployments: map[string]dashboard.ServeDeployment{}}
	}
	return details
}

func (p *serveProxy) status() string {
	if p.up {
		return dashboard.ProxyHealthy
	}
	return "UNHEALTHY"
}

// servesAll tells whether all applications of a cluster answer, and with which config.
func (w *world) servesAll(cluster string) bool {
	life := w.serveOn(cluster)
	if life == nil || len(life.apps) == 0 {
		return false
	}
	for _, app := range life.apps {
		if !app.ran {
			return false
		}
	}
	return true
}

// shopConfig is a Serve config with one application.
func shopConfig(version int) string { return appConfig("shop:app", version) }

func appConfig(importPath string, version int) string {
	return strings.TrimSpace(fmt.Sprintf("applications:\n- name: shop\n  import_path: %s\n  args:\n    version: %d\n", importPath, version))
}
