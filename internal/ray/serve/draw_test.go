package serve_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
	"github.com/heliostat-io/heliostat/internal/ray/serve"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
)

// field draws a value for one field of an application or a deployment.
type field func(t *rapid.T, label string) any

// scalars are values that YAML writes in ways which are easily taken for others.
var scalars = []any{nil, true, false, 0, 1, -7, 1 << 40, 0.5, 1e20, "", "a", "yes", "no", "null", "~", "1", "1e3", "0x1F", "a: b", "- a", "#a", "2026-01-01",
	" a ", "two\nlines\n", "ü€😀", "{a}", "'", `"`, "!x", "&a", "%d"}

func scalar(t *rapid.T, label string) any { return rapid.SampledFrom(scalars).Draw(t, label) }

// free draws any value, as users put below args and user_config.
func free(t *rapid.T, label string) any { return freeTo(t, label, 3) }

func freeTo(t *rapid.T, label string, depth int) any {
	kind := rapid.IntRange(0, 2).Draw(t, label+" kind")
	if depth == 0 || kind == 0 {
		return scalar(t, label)
	}
	n := rapid.IntRange(0, 3).Draw(t, label+" size")
	if kind == 1 {
		list := []any{}
		for i := range n {
			list = append(list, freeTo(t, fmt.Sprintf("%s[%d]", label, i), depth-1))
		}
		return list
	}
	mapping := map[string]any{}
	for range n {
		key := rapid.SampledFrom([]string{"a", "b", "c", "yes", "1", "a b", "ä"}).Draw(t, label+" key")
		mapping[key] = freeTo(t, label+"."+key, depth-1)
	}
	return mapping
}

func freeMapping(t *rapid.T, label string) any { return map[string]any{"x": free(t, label)} }

func fraction(t *rapid.T, label string) any {
	return rapid.SampledFrom([]float64{0.1, 0.25, 1, 2, 30}).Draw(t, label)
}

// appFields are the fields of an application that Serve knows, besides its name, import path and deployments.
var appFields = map[string]field{
	"args":        freeMapping,
	"runtime_env": freeMapping,
	"external_scaler_enabled": func(t *rapid.T, label string) any {
		return rapid.Bool().Draw(t, label)
	},
}

// deploymentFields are fields of a deployment that Serve knows, besides its name.
var deploymentFields = map[string]field{
	"num_replicas": func(t *rapid.T, label string) any {
		return rapid.SampledFrom([]any{0, 1, 2, "auto", nil}).Draw(t, label)
	},
	"max_ongoing_requests":        func(t *rapid.T, label string) any { return rapid.IntRange(1, 4).Draw(t, label) },
	"graceful_shutdown_timeout_s": fraction,
	"user_config":                 freeMapping,
	"ray_actor_options": func(t *rapid.T, label string) any {
		return map[string]any{"num_cpus": fraction(t, label), "resources": freeMapping(t, label)}
	},
}

// some draws values for some of the fields.
func some(t *rapid.T, label string, fields map[string]field) map[string]any {
	out := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if rapid.Bool().Draw(t, label+" has "+name) {
			out[name] = fields[name](t, label+" "+name)
		}
	}
	return out
}

// drawConfig draws a config that Serve would take.
func drawConfig(t *rapid.T) map[string]any {
	apps := []any{}
	for i := range rapid.IntRange(1, 3).Draw(t, "applications") {
		label := fmt.Sprintf("app %d", i)
		app := some(t, label, appFields)
		app["name"] = fmt.Sprintf("app%d", i)
		app["route_prefix"] = fmt.Sprintf("/%d", i)
		app["import_path"] = rapid.SampledFrom([]string{"main:app", "pkg.main:app", "main.app"}).Draw(t, label+" import path")
		deployments := []any{}
		for j := range rapid.IntRange(0, 2).Draw(t, label+" deployments") {
			deployment := some(t, fmt.Sprintf("%s deployment %d", label, j), deploymentFields)
			deployment["name"] = fmt.Sprintf("D%d", j)
			deployments = append(deployments, deployment)
		}
		if len(deployments) > 0 {
			app["deployments"] = deployments
		}
		apps = append(apps, app)
	}
	config := map[string]any{"applications": apps}
	if rapid.Bool().Draw(t, "has http options") {
		config["http_options"] = freeMapping(t, "http options")
	}
	return config
}

// write returns the config as a user writes it.
func write(t *rapid.T, config map[string]any) string {
	encode := rapid.SampledFrom([]func(any) ([]byte, error){
		func(value any) ([]byte, error) { return yaml.Marshal(value) }, json.Marshal,
	}).Draw(t, "language")
	text, err := encode(config)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// tester is what both testing.T and rapid.T are.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

var (
	_ tester = (*testing.T)(nil)
	_ tester = (*rapid.T)(nil)
)

func parse(t tester, text string) *serve.Config {
	t.Helper()
	config, err := serve.Parse(text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return config
}

// report is what a Serve tells that was given the configs, one after the other.
func report(t *testing.T, rt tester, configs ...*serve.Config) *dashboard.ServeDetails {
	rt.Helper()
	network, fake := fakedashboard.NewNetwork(), fakedashboard.NewInProcess()
	network.Add("c:8265", fake)
	client := dashboard.New("http://c:8265", dashboard.WithHTTPClient(network.Client()))
	for _, config := range configs {
		body, err := config.Body(nil)
		if err != nil {
			rt.Fatal(err)
		}
		if err := client.PutServe(t.Context(), body); err != nil {
			rt.Fatal(err)
		}
	}
	details, err := client.Serve(t.Context())
	if err != nil {
		rt.Fatal(err)
	}
	return details
}
