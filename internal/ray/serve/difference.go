package serve

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
)

// Difference says in what the applications that Serve has differ from those of the config; it is empty if in nothing. It
// names the first field that differs, and never a value that may be a secret. Serve tells all fields that it was given and
// no others, so a field too many counts as one that is missing does. Applications that are being removed do not count.
//
// What Serve tells nothing of is not compared: http_options, grpc_options and proxy_location, which a running Serve takes
// from nobody, and target_capacity, which a controller sets as it goes.
func (c *Config) Difference(d *dashboard.ServeDetails) string {
	found := c.compare(d)
	if len(found) == 0 {
		return ""
	}
	return found[0].text
}

// Dropped returns the fields that Serve was given and does not know, such as "application \"a\": deployments[0].max_replica",
// on the condition that nothing else differs. A controller that has put this very config takes it for applied then: Serve
// passes over fields that its release does not have, and does not report them. Without that knowledge they are a
// difference like any other, for Serve may have had no such field in its last config.
func (c *Config) Dropped(d *dashboard.ServeDetails) []string {
	var fields []string
	for _, difference := range c.compare(d) {
		if !difference.absent {
			return nil
		}
		fields = append(fields, difference.path)
	}
	return fields
}

// difference is one place in which Serve is not as the config wants.
type difference struct {
	path, text string
	// absent is true if Serve lacks a field that the config sets.
	absent bool
}

// compare returns all differences, in the order of the config.
func (c *Config) compare(d *dashboard.ServeDetails) []difference {
	if d == nil {
		return []difference{{text: "Serve has not reported yet"}}
	}
	var found []difference
	wanted := map[string]bool{}
	for _, app := range c.apps {
		name := nameOf(app)
		wanted[name] = true
		path := fmt.Sprintf("application %q", name)
		reported, there := d.Applications[name]
		switch {
		case !there:
			found = append(found, difference{path: path, text: path + " is missing"})
		case reported.DeployedConfig == nil:
			found = append(found, difference{path: path, text: path + " has no config"})
		default:
			walk := comparison{}
			walk.mapping(path+": ", c.effective(app, reported.DeployedConfig), unnamed(reported.DeployedConfig))
			found = append(found, walk.found...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.Applications)) {
		extra := d.Applications[name]
		if !wanted[name] && extra.DeployedConfig != nil && extra.Status != dashboard.ApplicationDeleting {
			path := fmt.Sprintf("application %q", name)
			found = append(found, difference{path: path, text: path + " is not in the config"})
		}
	}
	return found
}

// effective is the config of one application as Serve reports it: with the logging config for all applications where it
// has none of its own. Releases that report it otherwise are met half-way.
func (c *Config) effective(app, reported map[string]any) map[string]any {
	app = unnamed(app)
	common := c.root[keyLoggingConfig]
	if app[keyLoggingConfig] == nil && common != nil && reported[keyLoggingConfig] != nil {
		app[keyLoggingConfig] = common
	}
	return app
}

// unnamed is the config of an application without its name, which is compared before.
func unnamed(app map[string]any) map[string]any {
	app = maps.Clone(app)
	delete(app, keyName)
	return app
}

// comparison walks through what is wanted and what there is.
type comparison struct {
	found []difference
	// hidden is more than zero inside of fields whose values are not to be shown.
	hidden int
}

// secretive tells whether the field often holds credentials.
func secretive(key string) bool {
	return key == "runtime_env" || key == "args" || key == "user_config"
}

func (c *comparison) mapping(prefix string, want, have map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(want)) {
		path := prefix + key
		value, there := have[key]
		if !there {
			c.found = append(c.found, difference{path: path, text: path + " is missing", absent: true})
			continue
		}
		wanted := want[key]
		if key == keyLoggingConfig && c.hidden == 0 {
			wanted, value = logging(wanted), logging(value)
		}
		if secretive(key) {
			c.hidden++
		}
		c.value(path, wanted, value)
		if secretive(key) {
			c.hidden--
		}
	}
	for _, key := range slices.Sorted(maps.Keys(have)) {
		if _, wanted := want[key]; !wanted {
			c.found = append(c.found, difference{path: prefix + key, text: prefix + key + " is set, but not in the config"})
		}
	}
}

func (c *comparison) value(path string, want, have any) {
	switch wanted := want.(type) {
	case map[string]any:
		if there, ok := have.(map[string]any); ok {
			c.mapping(path+".", wanted, there)
			return
		}
	case []any:
		if there, ok := have.([]any); ok && len(there) == len(wanted) {
			for i := range wanted {
				c.value(fmt.Sprintf("%s[%d]", path, i), wanted[i], there[i])
			}
			return
		}
	default:
		if same(want, have) {
			return
		}
	}
	text := path + " differs"
	if c.hidden == 0 && shown(have) != shown(want) {
		text = fmt.Sprintf("%s is %s instead of %s", path, shown(have), shown(want))
	}
	c.found = append(c.found, difference{path: path, text: text})
}

// same compares two values that are neither lists nor mappings. Numbers are the same if their values are: Serve makes 1.0
// of a 1 where it wants a fraction.
func same(want, have any) bool {
	wanted, isNumber := want.(json.Number)
	there, alsoNumber := have.(json.Number)
	if !isNumber || !alsoNumber {
		return isScalar(have) && want == have
	}
	wantedInt, err1 := wanted.Int64()
	thereInt, err2 := there.Int64()
	if err1 == nil && err2 == nil {
		return wantedInt == thereInt
	}
	wantedFloat, ok1 := number(wanted)
	thereFloat, ok2 := number(there)
	return ok1 && ok2 && wantedFloat == thereFloat
}

// isScalar tells whether the value is neither a list nor a mapping, which cannot be compared with ==.
func isScalar(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}
