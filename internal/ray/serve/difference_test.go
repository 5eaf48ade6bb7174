package serve_test

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
	"github.com/heliostat-io/heliostat/internal/ray/serve"
)

func TestDifferencesAreNamed(t *testing.T) {
	const shop = "applications: [{name: shop, import_path: 'a:b', runtime_env: {env_vars: {TOKEN: s3cret}}, deployments: [{name: D, num_replicas: 2}]}]"
	cases := map[string]struct {
		// had is the config that Serve was given; nothing if empty.
		had, want string
		say       string
	}{
		"given nothing was put":          {want: shop, say: `application "shop" is missing`},
		"given a number":                 {had: strings.Replace(shop, "2", "3", 1), want: shop, say: `application "shop": deployments[0].num_replicas is 3 instead of 2`},
		"given another type":             {had: strings.Replace(shop, "2", "auto", 1), want: shop, say: `application "shop": deployments[0].num_replicas is "auto" instead of 2`},
		"given a secret":                 {had: strings.Replace(shop, "s3cret", "old", 1), want: shop, say: `application "shop": runtime_env.env_vars.TOKEN differs`},
		"given one more deployment":      {had: strings.Replace(shop, "{name: D, num_replicas: 2}", "{name: D, num_replicas: 2}, {name: E}", 1), want: shop, say: `application "shop": deployments differs`},
		"given a field less":             {had: strings.Replace(shop, ", num_replicas: 2", "", 1), want: shop, say: `application "shop": deployments[0].num_replicas is missing`},
		"given a field too many":         {had: shop, want: strings.Replace(shop, ", num_replicas: 2", "", 1), say: `application "shop": deployments[0].num_replicas is set, but not in the config`},
		"given an application too many":  {had: strings.Replace(shop, "applications: [", "applications: [{name: old, route_prefix: /old, import_path: 'a:b'}, ", 1), want: shop, say: `application "old" is not in the config`},
		"given a name that need not be":  {had: app, want: app + "  name: default\n"},
		"given a fraction":               {had: app + "  args: {x: 1.0}\n", want: app + "  args: {x: 1}\n"},
		"given a large number":           {had: app + "  args: {x: 9007199254740993}\n", want: app + "  args: {x: 9007199254740992}\n", say: `application "default": args.x differs`},
		"given text for a number":        {had: app + "  args: {x: '1'}\n", want: app + "  args: {x: 1}\n", say: `application "default": args.x differs`},
		"given a list for text":          {had: app + "  args: {x: [1]}\n", want: app + "  args: {x: a}\n", say: `application "default": args.x differs`},
		"given a mapping for a list":     {had: app + "  args: {x: {}}\n", want: app + "  args: {x: []}\n", say: `application "default": args.x differs`},
		"given null for nothing":         {had: app, want: app + "  route_prefix:\n", say: `application "default": route_prefix is missing`},
		"given logging for all":          {had: "logging_config: {log_level: INFO}\n" + app, want: "logging_config: {log_level: INFO}\n" + app},
		"given other logging for all":    {had: "logging_config: {log_level: INFO}\n" + app, want: "logging_config: {log_level: DEBUG}\n" + app, say: `application "default": logging_config.log_level is "INFO" instead of "DEBUG"`},
		"given logging for all no more":  {had: "logging_config: {log_level: INFO}\n" + app, want: app, say: `application "default": logging_config is set, but not in the config`},
		"given logging of its own":       {had: "logging_config: {log_level: INFO}\n" + app + "  logging_config: {log_level: DEBUG}\n", want: "logging_config: {log_level: INFO}\n" + app + "  logging_config: {log_level: DEBUG}\n"},
		"given a level by its name":      {had: app + "  logging_config: {log_level: WARNING}\n", want: app + "  logging_config: {log_level: 30}\n"},
		"given attributes in any order":  {had: app + "  logging_config: {additional_log_standard_attrs: [b, a]}\n", want: app + "  logging_config: {additional_log_standard_attrs: [a, b, a]}\n"},
		"given other attributes":         {had: app + "  logging_config: {additional_log_standard_attrs: [a]}\n", want: app + "  logging_config: {additional_log_standard_attrs: [b]}\n", say: `application "default": logging_config.additional_log_standard_attrs.b is missing`},
		"given options of the proxies":   {had: "http_options: {port: 8001}\n" + app, want: "http_options: {port: 8002}\nproxy_location: HeadOnly\n" + app},
		"given a capacity":               {had: "target_capacity: 50\n" + app, want: app},
		"given a key that Serve dropped": {had: app + "  deployments: [{name: D, typo: 1}]\n", want: app + "  deployments: [{name: D, typo: 1}]\n", say: `application "default": deployments[0].typo is missing`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			configs := []*serve.Config{}
			if tc.had != "" {
				configs = append(configs, parse(t, tc.had))
			}
			if got := parse(t, tc.want).Difference(report(t, t, configs...)); got != tc.say {
				t.Errorf("the difference is %q, want %q", got, tc.say)
			}
		})
	}
}

func TestReportsThatAreNotWhole(t *testing.T) {
	deployed := map[string]any{"import_path": "a:b"}
	running := dashboard.ServeApplication{Name: "default", Status: "RUNNING", DeployedConfig: deployed}
	cases := map[string]struct {
		given *dashboard.ServeDetails
		// config is app if empty.
		config string
		say    string
	}{
		"given no report": {say: "Serve has not reported yet"},
		"given an application without a config": {say: `application "default" has no config`,
			given: &dashboard.ServeDetails{Applications: map[string]dashboard.ServeApplication{"default": {Status: "RUNNING"}}}},
		"given another one that is being removed": {
			given: &dashboard.ServeDetails{Applications: map[string]dashboard.ServeApplication{"default": running, "old": {Status: "DELETING", DeployedConfig: deployed}}}},
		"given another one that a program deployed": {
			given: &dashboard.ServeDetails{Applications: map[string]dashboard.ServeApplication{"default": running, "theirs": {Status: "RUNNING"}}}},
		"given logging for all that this Ray does not report": {config: "logging_config: {log_level: INFO}\n" + app,
			given: &dashboard.ServeDetails{Applications: map[string]dashboard.ServeApplication{"default": running}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := parse(t, cmp.Or(tc.config, app)).Difference(tc.given); got != tc.say {
				t.Errorf("the difference is %q, want %q", got, tc.say)
			}
		})
	}
}

func TestNumbersAreComparedByValue(t *testing.T) {
	cases := map[string]struct {
		want string
		have json.Number
		same bool
	}{
		"given a fraction is made of a whole number": {want: "2", have: "2.0", same: true},
		"given it is written with an exponent":       {want: "1e20", have: "1e+20", same: true},
		"given another fraction":                     {want: "2", have: "2.5"},
		"given large neighbours":                     {want: "9007199254740993", have: "9007199254740992"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			details := &dashboard.ServeDetails{Applications: map[string]dashboard.ServeApplication{
				"default": {DeployedConfig: map[string]any{"import_path": "a:b", "number": tc.have}}}}
			if got := parse(t, app+"  number: "+tc.want+"\n").Difference(details); (got == "") != tc.same {
				t.Errorf("the difference is %q", got)
			}
		})
	}
}

func TestFieldsThatServeDropsAreTold(t *testing.T) {
	const old = app + "  deployments: [{name: D, num_replicas: 2}]\n"
	const typed = app + "  typo: 1\n  deployments: [{name: D, num_replicas: 2, max_concurrent: 5}]\n"
	cases := map[string]struct {
		had, want string
		dropped   []string
	}{
		"given Serve was given them":       {had: typed, want: typed, dropped: []string{`application "default": deployments[0].max_concurrent`, `application "default": typo`}},
		"given Serve was given them never": {had: old, want: typed, dropped: []string{`application "default": deployments[0].max_concurrent`, `application "default": typo`}},
		"given something else differs":     {had: strings.Replace(old, "2", "3", 1), want: typed},
		"given nothing differs":            {had: old, want: old},
		"given nothing was put":            {want: typed},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			configs := []*serve.Config{}
			if tc.had != "" {
				configs = append(configs, parse(t, tc.had))
			}
			if got := parse(t, tc.want).Dropped(report(t, t, configs...)); !slices.Equal(got, tc.dropped) {
				t.Errorf("dropped are %q, want %q", got, tc.dropped)
			}
		})
	}
}

func TestAConfigIsReadBack(t *testing.T) {
	deployed := map[string]any{"import_path": "a:b"}
	cases := map[string]struct {
		given *dashboard.ServeDetails
		// want is what the config that is read back says; none if empty.
		want string
	}{
		"given no report":         {},
		"given Serve has nothing": {given: &dashboard.ServeDetails{}},
		"given options of the proxies and a capacity": {want: "proxy_location: HeadOnly\nhttp_options: {port: 8001}\ngrpc_options: {port: 9001}\napplications: [{name: default, import_path: 'a:b'}]",
			given: &dashboard.ServeDetails{ProxyLocation: "HeadOnly", TargetCapacity: new(float64), HTTPOptions: map[string]any{"port": 8001}, GRPCOptions: map[string]any{"port": 9001},
				Applications: map[string]dashboard.ServeApplication{"default": {DeployedConfig: deployed}}}},
		"given one is being removed": {want: "applications: [{name: a, import_path: 'a:b'}]",
			given: &dashboard.ServeDetails{Applications: map[string]dashboard.ServeApplication{"a": {DeployedConfig: deployed}, "b": {Status: "DELETING"}}}},
		"given the config of one is not told": {
			given: &dashboard.ServeDetails{Applications: map[string]dashboard.ServeApplication{"a": {DeployedConfig: deployed}, "b": {Status: "RUNNING"}}}},
		"given only one that is being removed": {
			given: &dashboard.ServeDetails{Applications: map[string]dashboard.ServeApplication{"b": {Status: "DELETING"}}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := serve.Reported(tc.given)
			if ok != (tc.want != "") {
				t.Fatalf("it was read back: %v", ok)
			}
			if !ok {
				return
			}
			body := func(config *serve.Config) any {
				body, err := config.Body(nil)
				if err != nil {
					t.Fatal(err)
				}
				return plain(t, body)
			}
			if d := gocmp.Diff(body(parse(t, tc.want)), body(got)); d != "" {
				t.Errorf("read back (-want +got):\n%s", d)
			}
			if again := parse(t, got.Text()); again.Hash() != got.Hash() {
				t.Errorf("the text is another config:\n%s", got.Text())
			}
		})
	}
}
