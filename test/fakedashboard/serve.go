package fakedashboard

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
)

// ServeStep is one station in the life of a Serve application.
type ServeStep struct {
	// Status is the word that Ray uses for the application, such as "RUNNING". That of its deployments follows from it.
	Status string
	// Message is what Ray says about the status.
	Message string
	// Reads is how often Serve is asked while the application is in this step, before it moves on; 0 means once. The last
	// step of a script stays.
	Reads int
}

// ServeSteps returns one step for each status.
func ServeSteps(statuses ...string) []ServeStep {
	steps := make([]ServeStep, 0, len(statuses))
	for _, status := range statuses {
		steps = append(steps, ServeStep{Status: status})
	}
	return steps
}

// ServeProxy is a Serve proxy as the dashboard reports it.
type ServeProxy struct {
	NodeID, NodeIP, NodeInstanceID, Status string
}

// serveState is what Serve keeps. It is lost with the GCS.
type serveState struct {
	// started is true from the first config on.
	started  bool
	location string
	http     map[string]any
	capacity *float64
	apps     map[string]*serveApp
}

// serveApp is an application as Serve keeps it.
type serveApp struct {
	config   map[string]any
	script   []ServeStep
	reads    int
	deployed time.Time
	// imperative is true if a program deployed it.
	imperative bool
	// capacity is the one that the running replicas follow; lag is how many reads they still need to reach the wanted one.
	capacity *float64
	lag      int
}

// ScriptServe sets the life of the application of that name from now on, whether it is there yet or not. Every config that
// changes the application begins the script again.
func (d *Dashboard) ScriptServe(app string, steps ...ServeStep) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.serveScripts[app] = slices.Clone(steps)
	if there, ok := d.serve.apps[app]; ok {
		there.follow(steps)
	}
}

// SetDefaultServeScript sets the life of applications without a script of their own that are deployed from now on. It is
// DEPLOYING, then RUNNING otherwise.
func (d *Dashboard) SetDefaultServeScript(steps ...ServeStep) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.defaultServeScript = slices.Clone(steps)
}

// SetServeStep moves an application that is there to a step, where it stays until its config changes. It panics if there is
// no such application.
func (d *Dashboard) SetServeStep(app string, step ServeStep) {
	d.mu.Lock()
	defer d.mu.Unlock()
	there, ok := d.serve.apps[app]
	if !ok {
		panic(fmt.Sprintf("fakedashboard: there is no Serve application %q", app))
	}
	there.follow([]ServeStep{step})
}

// SetServeLag sets how often Serve is asked until running replicas have followed a new target capacity; at once otherwise.
func (d *Dashboard) SetServeLag(reads int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.serveLag = reads
}

// RefuseServe makes Serve refuse every config as invalid, in these words; empty ends that.
func (d *Dashboard) RefuseServe(words string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.serveRefusal = words
}

// SetServeProxies sets the proxies that Serve reports once it was started. There are none otherwise.
func (d *Dashboard) SetServeProxies(proxies ...ServeProxy) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.serveProxies = slices.Clone(proxies)
}

// DeployServe records a config that someone else has put. It counts as no put. It panics if the config is no valid one.
func (d *Dashboard) DeployServe(config string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	wanted, refusal := readServeConfig([]byte(config))
	if refusal != "" {
		panic("fakedashboard: " + refusal)
	}
	d.applyServe(wanted)
}

// RunServe records an application that a program has deployed, without a config.
func (d *Dashboard) RunServe(app string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.serve.started = true
	d.serve.apps[app] = &serveApp{imperative: true, script: ServeSteps("RUNNING"), deployed: time.Now()}
}

// ServePuts is how many configs Serve has taken, over all restarts.
func (d *Dashboard) ServePuts() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.servePuts
}

// LastServePut is the body of the last config that arrived, whatever became of it; nil before the first.
func (d *Dashboard) LastServePut() []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.lastServePut)
}

// ServeApplications returns the names of the applications, sorted.
func (d *Dashboard) ServeApplications() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.serve.apps))
}

// LoseServe plays a Serve whose records are gone although the head, and with it the session, is the same.
func (d *Dashboard) LoseServe() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.serve = newServeState()
}

func newServeState() serveState { return serveState{apps: map[string]*serveApp{}} }

// applyServe takes over a config: what it leaves out goes, and what it changes is deployed again. The lock is held.
func (d *Dashboard) applyServe(wanted serveConfig) {
	if !d.serve.started {
		// A running Serve keeps these options, whatever the config says.
		d.serve.started, d.serve.location, d.serve.http = true, wanted.location, wanted.http
	}
	d.serve.capacity = wanted.capacity
	maps.DeleteFunc(d.serve.apps, func(name string, app *serveApp) bool {
		return wanted.apps[name] == nil && !app.imperative
	})
	for name, config := range wanted.apps {
		app, there := d.serve.apps[name]
		if !there {
			app = &serveApp{capacity: wanted.capacity}
			d.serve.apps[name] = app
		}
		if !there || !sameJSON(app.config, config) || app.script[0].Status == "DEPLOY_FAILED" {
			app.follow(d.serveScript(name))
		}
		if !sameJSON(app.capacity, wanted.capacity) {
			app.lag = d.serveLag
		}
		if app.lag == 0 {
			app.capacity = wanted.capacity
		}
		app.config, app.imperative, app.deployed = config, false, time.Now()
	}
}

func (d *Dashboard) serveScript(app string) []ServeStep {
	if script, ok := d.serveScripts[app]; ok {
		return script
	}
	return d.defaultServeScript
}

func (a *serveApp) follow(script []ServeStep) {
	a.script, a.reads = slices.Clone(script), 0
}

// advance counts one read.
func (a *serveApp) advance(wanted *float64) {
	if a.lag > 0 {
		a.lag--
	}
	if a.lag == 0 {
		a.capacity = wanted
	}
	a.reads++
	if len(a.script) < 2 || a.reads < max(1, a.script[0].Reads) {
		return
	}
	a.script, a.reads = a.script[1:], 0
}

// sameJSON tells whether two values are written alike.
func sameJSON(a, b any) bool {
	left, err1 := json.Marshal(a)
	right, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && string(left) == string(right)
}
