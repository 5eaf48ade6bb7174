package serve_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/heliostat-io/heliostat/internal/ray/serve"
)

// plain is a value as JSON carries it.
func plain(t tester, value any) any {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestTheBodyIsTheConfig(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		given := drawConfig(rt)
		config := parse(rt, write(rt, given))
		body, err := config.Body(nil)
		if err != nil {
			rt.Fatal(err)
		}
		if d := cmp.Diff(plain(rt, given), plain(rt, body)); d != "" {
			rt.Errorf("the body (-written +sent):\n%s", d)
		}
		capacity := rapid.Int32Range(0, 100).Draw(rt, "capacity")
		with, err := config.Body(&capacity)
		if err != nil {
			rt.Fatal(err)
		}
		given["target_capacity"] = capacity
		if d := cmp.Diff(plain(rt, given), plain(rt, with)); d != "" {
			rt.Errorf("the body with a capacity (-want +sent):\n%s", d)
		}
		if again := parse(rt, string(body)); again.Hash() != config.Hash() {
			rt.Errorf("the hash of the body is %s, that of the config %s", again.Hash(), config.Hash())
		}
	})
}

func TestWhatWasPutIsNoDifference(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		before, config := parse(rt, write(rt, drawConfig(rt))), parse(rt, write(rt, drawConfig(rt)))
		details := report(t, rt, before, config)
		if d := config.Difference(details); d != "" {
			rt.Errorf("Serve has the config, and still: %s", d)
		}
		if dropped := config.Dropped(details); dropped != nil {
			rt.Errorf("Serve has dropped %v", dropped)
		}
		back, ok := serve.Reported(details)
		if !ok {
			rt.Fatal("the config cannot be read back")
		}
		if d := back.Difference(details); d != "" {
			rt.Errorf("the config that was read back is another one: %s", d)
		}
		if d := config.Difference(report(t, rt, back)); d != "" {
			rt.Errorf("the config that was read back does not lead to the same: %s", d)
		}
	})
}

func TestEverySingleChangeIsSeen(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		given := drawConfig(rt)
		details := report(t, rt, parse(rt, write(rt, given)))
		changed := plain(rt, given).(map[string]any)
		what := changeApplications(rt, changed)
		if d := parse(rt, write(rt, changed)).Difference(details); d == "" {
			rt.Errorf("%s is not seen", what)
		}
	})
}

// changeApplications changes one thing about the applications, and says what.
func changeApplications(t *rapid.T, config map[string]any) string {
	apps := config["applications"].([]any)
	i := rapid.IntRange(0, len(apps)-1).Draw(t, "application")
	app := apps[i].(map[string]any)
	switch rapid.SampledFrom([]string{"add", "remove", "rename", "route", "import", "field", "deployment"}).Draw(t, "change") {
	case "remove":
		if len(apps) > 1 {
			config["applications"] = slices.Delete(apps, i, i+1)
			return "a removed application"
		}
	case "rename":
		app["name"] = "renamed"
		return "another name"
	case "route":
		app["route_prefix"] = rapid.SampledFrom([]any{nil, "/other"}).Draw(t, "route")
		return "another route"
	case "import":
		app["import_path"] = "other:app"
		return "another import path"
	case "field":
		return "application: " + changeField(t, app, appFields)
	case "deployment":
		if deployments, ok := app["deployments"].([]any); ok {
			j := rapid.IntRange(0, len(deployments)-1).Draw(t, "deployment")
			return "deployment: " + changeField(t, deployments[j].(map[string]any), deploymentFields)
		}
		app["deployments"] = []any{map[string]any{"name": "New"}}
		return "a first deployment"
	}
	config["applications"] = append(apps, map[string]any{"name": "added", "route_prefix": "/added", "import_path": "a:b"})
	return "an added application"
}

// changeField removes, adds or changes one of the fields.
func changeField(t *rapid.T, of map[string]any, fields map[string]field) string {
	name := rapid.SampledFrom(slices.Sorted(maps.Keys(fields))).Draw(t, "field")
	old, there := of[name]
	switch {
	case there && rapid.Bool().Draw(t, "remove the field"):
		delete(of, name)
		return name + " removed"
	case there:
		of[name] = plain(t, otherThan(t, old, fields[name]))
		return fmt.Sprintf("%s changed from %v to %v", name, old, of[name])
	}
	of[name] = plain(t, fields[name](t, "new "+name))
	return name + " added"
}

// otherThan draws another value for a field; a mapping may differ in one place deep inside.
func otherThan(t *rapid.T, old any, draw field) any {
	mapping, ok := old.(map[string]any)
	if ok && len(mapping) > 0 && rapid.Bool().Draw(t, "deep inside") {
		if inside, ok := mapping["x"]; ok {
			return map[string]any{"x": mutated(t, inside)}
		}
	}
	return rapid.Custom(func(t *rapid.T) any { return draw(t, "other") }).Filter(func(value any) bool {
		return !reflect.DeepEqual(plain(t, value), old)
	}).Draw(t, "other value")
}

// mutated changes one place of a value.
func mutated(t *rapid.T, value any) any {
	switch value := value.(type) {
	case map[string]any:
		keys := slices.Sorted(maps.Keys(value))
		if len(keys) == 0 || rapid.Bool().Draw(t, "add a key") {
			value["new"] = 1
			return value
		}
		key := rapid.SampledFrom(keys).Draw(t, "key")
		value[key] = mutated(t, value[key])
		return value
	case []any:
		if len(value) == 0 || rapid.Bool().Draw(t, "append") {
			return append(value, 1)
		}
		i := rapid.IntRange(0, len(value)-1).Draw(t, "item")
		value[i] = mutated(t, value[i])
		return value
	}
	return rapid.SampledFrom(scalars).Filter(func(other any) bool { return !reflect.DeepEqual(plain(t, other), value) }).Draw(t, "scalar")
}
