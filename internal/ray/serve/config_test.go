package serve_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/heliostat-io/heliostat/internal/ray/serve"
)

// app is the beginning of a config with one application, to which fields can be added.
const app = "applications:\n- import_path: a:b\n"

func TestConfigsThatAreTaken(t *testing.T) {
	cases := map[string]string{
		"the least that there can be":               app,
		"JSON":                                      `{"applications":[{"import_path":"a:b"}]}`,
		"keys that nobody knows":                    "new_key: 1\n" + app + "  newer_key: [x]\n  deployments: [{name: D, newest_key: {}}]\n",
		"a dotted import path":                      "applications: [{import_path: a.b.c}]",
		"a dotted module":                           "applications: [{import_path: 'a.b:c'}]",
		"no HTTP, for several applications":         "applications: [{name: a, import_path: 'a:b', route_prefix: null}, {name: b, import_path: 'a:b', route_prefix: null}]",
		"no applications by other keys":             "proxy_location: HeadOnly\ntarget_capacity: 0\n" + app,
		"a whole capacity":                          "target_capacity: 100\n" + app,
		"a capacity that says nothing":              "target_capacity: null\n" + app,
		"replicas by number":                        app + "  deployments: [{name: D, num_replicas: 3}]\n",
		"replicas by number, autoscaling unset":     app + "  deployments: [{name: D, num_replicas: 3, autoscaling_config: null}]\n",
		"no replicas":                               app + "  deployments: [{name: D, num_replicas: 0}]\n",
		"replicas by Serve":                         app + "  deployments: [{name: D, num_replicas: auto, autoscaling_config: {max_replicas: 4}}]\n",
		"replicas by autoscaling alone":             app + "  deployments: [{name: D, num_replicas: null, autoscaling_config: {max_replicas: 4}}]\n",
		"deployments of one name in two of them":    "applications: [{name: a, route_prefix: /a, import_path: 'a:b', deployments: [{name: D}]}, {name: b, import_path: 'a:b', deployments: [{name: D}]}]",
		"no deployments":                            app + "  deployments: []\n",
		"a key twice, of which the last one counts": app + "  args: {a: 1, a: 2}\n",
	}
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := serve.Parse(text); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestConfigsThatServeWouldRefuse(t *testing.T) {
	two := func(first, second string) string {
		return "applications: [{import_path: 'a:b', " + first + "}, {import_path: 'a:b', " + second + "}]"
	}
	cases := map[string]struct{ text, want string }{
		"no YAML":                         {"a: [", "the Serve config is no YAML: "},
		"text":                            {"hello", `the Serve config is "hello": it must be a mapping with the key "applications"`},
		"a list":                          {"- a", `the Serve config is a list: it must be a mapping with the key "applications"`},
		"an unknown place for proxies":    {"proxy_location: Nowhere\n" + app, `proxy_location is "Nowhere": it must be one of EveryNode, HeadOnly, Disabled`},
		"a place that is no text":         {"proxy_location: null\n" + app, "proxy_location is null: it must be one of EveryNode, HeadOnly, Disabled"},
		"too much capacity":               {"target_capacity: 101\n" + app, "target_capacity is 101: it must be a number from 0 to 100"},
		"too little capacity":             {"target_capacity: -0.5\n" + app, "target_capacity is -0.5: it must be a number from 0 to 100"},
		"a capacity in words":             {"target_capacity: half\n" + app, `target_capacity is "half": it must be a number from 0 to 100`},
		"applications that are no list":   {"applications: {a: b}", "applications is a mapping: it must be a list"},
		"an application that is no map":   {"applications: [a]", `applications[0] is "a": it must be a mapping`},
		"a name that is no text":          {app + "  name: 5\n", "applications[0].name is 5: it must be text that is not empty"},
		"an empty name":                   {app + "  name: ''\n", `applications[0].name is "": it must be text that is not empty`},
		"a name twice":                    {two("name: a, route_prefix: /a", "name: a, route_prefix: /b"), `applications[1].name is "a": it must be unique, and applications[0].name has the same value`},
		"no name twice":                   {two("route_prefix: /a", "route_prefix: /b"), `applications[1].name is not set, which means "default": it must be unique, and applications[0].name has the same value`},
		"a route that is no path":         {app + "  route_prefix: shop\n", `applications[0].route_prefix is "shop": it must begin with "/"`},
		"a route that is no text":         {app + "  route_prefix: [a]\n", `applications[0].route_prefix is a list: it must begin with "/"`},
		"a route that ends in a slash":    {app + "  route_prefix: /shop/\n", `applications[0].route_prefix is "/shop/": it must neither end with "/"`},
		"a route with a wildcard":         {app + "  route_prefix: '/{x}'\n", `applications[0].route_prefix is "/{x}": it must neither end with "/"`},
		"a route twice":                   {two("name: a, route_prefix: /x", "name: b, route_prefix: /x"), `applications[1].route_prefix is "/x": it must be unique, and applications[0].route_prefix has the same value`},
		"a default route twice":           {two("name: a, route_prefix: /", "name: b"), `applications[1].route_prefix is not set, which means "/": it must be unique`},
		"no import path":                  {"applications: [{name: a}]", `applications[0].import_path is missing: it must be of the form "module:variable" or "module.variable"`},
		"an import path that is no text":  {"applications: [{import_path: 5}]", "applications[0].import_path is 5: it must be of the form"},
		"an import path of one part":      {"applications: [{import_path: main}]", `applications[0].import_path is "main": it must be of the form`},
		"an import path without a module": {"applications: [{import_path: ':app'}]", `applications[0].import_path is ":app": it must be of the form`},
		"an import path without an app":   {"applications: [{import_path: 'main:'}]", `applications[0].import_path is "main:": it must be of the form`},
		"an import path with two colons":  {"applications: [{import_path: 'a:b:c'}]", `applications[0].import_path is "a:b:c": it must be of the form`},
		"an import path that ends in dot": {"applications: [{import_path: 'a.b.'}]", `applications[0].import_path is "a.b.": it must be of the form`},
		"a host of its own":               {app + "  host: 0.0.0.0\n", `applications[0].host is "0.0.0.0": Serve takes it below http_options only`},
		"a port of its own":               {app + "  port: 8001\n", "applications[0].port is 8001: Serve takes it below http_options only"},
		"deployments that are no list":    {app + "  deployments: {a: b}\n", "applications[0].deployments is a mapping: it must be a list"},
		"deployments that are null":       {app + "  deployments:\n", "applications[0].deployments is null: it must be a list"},
		"a deployment that is no mapping": {app + "  deployments: [D]\n", `applications[0].deployments[0] is "D": it must be a mapping`},
		"a deployment without a name":     {app + "  deployments: [{num_replicas: 1}]\n", "applications[0].deployments[0].name is null: every deployment must have a name"},
		"a deployment twice":              {app + "  deployments: [{name: D}, {name: D}]\n", `applications[0].deployments[1].name is "D": it must be unique, and applications[0].deployments[0].name has the same value`},
		"negative replicas":               {app + "  deployments: [{name: D, num_replicas: -1}]\n", "applications[0].deployments[0].num_replicas is -1: it must be a whole number that is not negative"},
		"half a replica":                  {app + "  deployments: [{name: D, num_replicas: 1.5}]\n", "applications[0].deployments[0].num_replicas is 1.5: it must be a whole number"},
		"replicas in words":               {app + "  deployments: [{name: D, num_replicas: two}]\n", `applications[0].deployments[0].num_replicas is "two": it must be a whole number`},
		"replicas that are true":          {app + "  deployments: [{name: D, num_replicas: true}]\n", "applications[0].deployments[0].num_replicas is true: it must be a whole number"},
		"replicas by number and by load":  {app + "  deployments: [{name: D, num_replicas: 2, autoscaling_config: {max_replicas: 4}}]\n", `applications[0].deployments[0].num_replicas is 2: a deployment with autoscaling_config must leave it out or set it to "auto"`},
		"a very long value":               {app + "  name: ok\n  route_prefix: " + strings.Repeat("x", 500), "xxx...\": it must begin"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := serve.Parse(tc.text)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v\nwant %s", err, tc.want)
			}
			if errors.Is(err, serve.ErrNoApplications) {
				t.Error("a config that is wrong is called empty")
			}
		})
	}
}

func TestNothingToServe(t *testing.T) {
	for name, text := range map[string]string{
		"given no text": "", "given a comment": "# nothing\n", "given null": "null", "given an empty mapping": "{}",
		"given an empty list of applications": "applications: []", "given no list": "applications:", "given other keys alone": "http_options: {port: 8001}",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := serve.Parse(text); !errors.Is(err, serve.ErrNoApplications) {
				t.Errorf("error is %v", err)
			}
		})
	}
}

func TestWhatAConfigSays(t *testing.T) {
	text := "proxy_location: HeadOnly\ntarget_capacity: 25\napplications: [{name: b, route_prefix: /b, import_path: 'a:b'}, {import_path: 'a:b'}]"
	config := parse(t, text)
	if got, want := config.ApplicationNames(), []string{"b", "default"}; !slices.Equal(got, want) {
		t.Errorf("names are %v, want %v", got, want)
	}
	if got := config.ProxyLocation(); got != "HeadOnly" {
		t.Errorf("proxies run at %s", got)
	}
	if got := config.TargetCapacity(); got == nil || *got != 25 {
		t.Errorf("the capacity is %v, want 25", got)
	}
	if config.Text() != text {
		t.Errorf("the text is %q", config.Text())
	}
	plain := parse(t, app)
	if plain.ProxyLocation() != "EveryNode" || plain.TargetCapacity() != nil {
		t.Errorf("by default proxies run at %s, and the capacity is %v", plain.ProxyLocation(), plain.TargetCapacity())
	}
}

func TestTheHashIsThatOfTheContent(t *testing.T) {
	const text = "applications: [{name: a, import_path: 'a:b', args: {x: 1, y: 2}}]"
	cases := map[string]struct {
		other string
		same  bool
	}{
		"given other words for the same":  {other: "# comment\napplications:\n- args: {y: 2, x: 1}\n  import_path: \"a:b\"\n  name: a\n", same: true},
		"given another value":             {other: "applications: [{name: a, import_path: 'a:b', args: {x: 1, y: 3}}]"},
		"given a value of another type":   {other: "applications: [{name: a, import_path: 'a:b', args: {x: '1', y: 2}}]"},
		"given another key for all of it": {other: "logging_config: {}\n" + text},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := parse(t, text).Hash() == parse(t, tc.other).Hash(); got != tc.same {
				t.Errorf("the same hash: %v, want %v", got, tc.same)
			}
		})
	}
}
