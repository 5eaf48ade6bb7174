package serve

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/heliostat-io/heliostat/internal/excerpt"
)

// check returns the applications of a config that Serve would take, as far as that can be told without Serve. The rules are
// those of Serve, with two exceptions. A route prefix is checked by Serve only when it reports, and then it reports nothing
// any more; and of two entries for one deployment it is not said which one counts.
func check(root map[string]any) ([]map[string]any, error) {
	if location, set := root[keyProxyLocation]; set {
		if !slices.Contains([]any{EveryNode, HeadOnly, Disabled}, location) {
			return nil, wrong(keyProxyLocation, location, "it must be one of EveryNode, HeadOnly, Disabled")
		}
	}
	if capacity := root[keyTargetCapacity]; capacity != nil {
		if percent, ok := number(capacity); !ok || percent < 0 || percent > 100 {
			return nil, wrong(keyTargetCapacity, capacity, "it must be a number from 0 to 100")
		}
	}
	if root[keyApplications] == nil {
		return nil, ErrNoApplications
	}
	apps, err := mappings(keyApplications, root[keyApplications])
	if err != nil {
		return nil, err
	}
	if len(apps) == 0 {
		return nil, ErrNoApplications
	}
	return apps, checkApplications(apps)
}

func checkApplications(apps []map[string]any) error {
	names, routes := unique{}, unique{}
	for i, app := range apps {
		path := fmt.Sprintf("%s[%d]", keyApplications, i)
		if err := checkName(path, app, names); err != nil {
			return err
		}
		if err := checkRoute(path, app, routes); err != nil {
			return err
		}
		if err := checkImportPath(path, app[keyImportPath]); err != nil {
			return err
		}
		for _, key := range []string{"host", "port"} {
			if value, set := app[key]; set {
				return wrong(path+"."+key, value, "Serve takes it below "+keyHTTPOptions+" only, for all applications at once")
			}
		}
		if err := checkDeployments(path+"."+keyDeployments, app); err != nil {
			return err
		}
	}
	return nil
}

func checkName(path string, app map[string]any, names unique) error {
	name, set := app[keyName]
	if text, ok := name.(string); set && (!ok || text == "") {
		return wrong(path+"."+keyName, name, "it must be text that is not empty")
	}
	return names.add(path+"."+keyName, nameOf(app), !set)
}

func checkRoute(path string, app map[string]any, routes unique) error {
	route, set := app[keyRoutePrefix]
	if set && route == nil {
		return nil // not over HTTP
	}
	if !set {
		route = defaultRoute
	}
	text, ok := route.(string)
	if !ok || !strings.HasPrefix(text, "/") {
		return wrong(path+"."+keyRoutePrefix, route, `it must begin with "/", or be null for an application without HTTP`)
	}
	if text != "/" && strings.HasSuffix(text, "/") || strings.ContainsAny(text, "{}") {
		return wrong(path+"."+keyRoutePrefix, route, `it must neither end with "/" nor contain "{" or "}"`)
	}
	return routes.add(path+"."+keyRoutePrefix, text, !set)
}

// checkImportPath wants "module:variable" or "module.variable", with something on both sides.
func checkImportPath(path string, value any) error {
	const rule = `it must be of the form "module:variable" or "module.variable"`
	text, ok := value.(string)
	separator := "."
	if strings.Contains(text, ":") {
		separator = ":"
	}
	first, last := strings.Index(text, separator), strings.LastIndex(text, separator)
	switch {
	case value == nil:
		return fmt.Errorf("%s.%s is missing: %s", path, keyImportPath, rule)
	case !ok, first < 1, last == len(text)-1, separator == ":" && first != last:
		return wrong(path+"."+keyImportPath, value, rule)
	}
	return nil
}

func checkDeployments(path string, app map[string]any) error {
	value, set := app[keyDeployments]
	if !set {
		return nil
	}
	deployments, err := mappings(path, value)
	if err != nil {
		return err
	}
	names := unique{}
	for i, deployment := range deployments {
		at := fmt.Sprintf("%s[%d]", path, i)
		name, _ := deployment[keyName].(string)
		if name == "" {
			return wrong(at+"."+keyName, deployment[keyName], "every deployment must have a name, which is text")
		}
		if err := names.add(at+"."+keyName, name, false); err != nil {
			return err
		}
		if err := checkReplicas(at, deployment); err != nil {
			return err
		}
	}
	return nil
}

func checkReplicas(path string, deployment map[string]any) error {
	replicas := deployment[keyNumReplicas]
	if replicas == nil || replicas == "auto" {
		return nil
	}
	count, isNumber := replicas.(json.Number)
	// ParseUint refuses signs and fractions, as Serve does.
	if _, err := strconv.ParseUint(count.String(), 10, 31); !isNumber || err != nil {
		return wrong(path+"."+keyNumReplicas, replicas, `it must be a whole number that is not negative, or "auto"`)
	}
	if deployment[keyAutoscaling] != nil {
		return wrong(path+"."+keyNumReplicas, replicas, fmt.Sprintf(`a deployment with %s must leave it out or set it to "auto"`, keyAutoscaling))
	}
	return nil
}

// unique holds what is taken already, and by which field.
type unique map[string]string

// add takes the value for the field at path. A field that is not set has the value by default.
func (u unique) add(path, value string, byDefault bool) error {
	if other, taken := u[value]; taken {
		rule := "it must be unique, and " + other + " has the same value"
		if byDefault {
			return fmt.Errorf("%s is not set, which means %q: %s", path, value, rule)
		}
		return wrong(path, value, rule)
	}
	u[value] = path
	return nil
}

// mappings returns the list at path, all of whose items must be mappings.
func mappings(path string, value any) ([]map[string]any, error) {
	list, ok := value.([]any)
	if !ok {
		return nil, wrong(path, value, "it must be a list")
	}
	out := make([]map[string]any, 0, len(list))
	for i, item := range list {
		mapping, ok := item.(map[string]any)
		if !ok {
			return nil, wrong(fmt.Sprintf("%s[%d]", path, i), item, "it must be a mapping")
		}
		out = append(out, mapping)
	}
	return out, nil
}

// wrong is the error for a field that breaks a rule.
func wrong(path string, value any, rule string) error {
	return fmt.Errorf("%s is %s: %s", path, shown(value), rule)
}

// maxShown is how much of a value is shown, in bytes.
const maxShown = 80

// shown is a value as it stands in a message. Of lists and mappings only the kind is told, for they may hold credentials.
func shown(value any) string {
	switch value := value.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "a mapping"
	case []any:
		return "a list"
	case string:
		return strconv.Quote(excerpt.Beginning(value, maxShown))
	}
	return fmt.Sprint(value)
}
