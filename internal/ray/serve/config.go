// Package serve knows the configurations of Ray Serve: it reads them, finds the mistakes that Serve would refuse, builds
// what is sent, and tells whether a report of Serve shows that it has one.
//
// It knows the fields that decisions need. Every other field is passed on as it is, for Serve takes more with each release.
package serve

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"sigs.k8s.io/yaml"
)

// ErrNoApplications says that a config is empty or has no applications.
var ErrNoApplications = errors.New("the Serve config has no applications")

// The fields of a config that are known here.
const (
	keyApplications   = "applications"
	keyProxyLocation  = "proxy_location"
	keyTargetCapacity = "target_capacity"
	keyHTTPOptions    = "http_options"
	keyGRPCOptions    = "grpc_options"
	keyLoggingConfig  = "logging_config"
	keyName           = "name"
	keyRoutePrefix    = "route_prefix"
	keyImportPath     = "import_path"
	keyDeployments    = "deployments"
	keyNumReplicas    = "num_replicas"
	keyAutoscaling    = "autoscaling_config"
)

const (
	// defaultName and defaultRoute are what Serve gives to an application that says nothing else.
	defaultName  = "default"
	defaultRoute = "/"
)

// Where Serve runs its proxies.
const (
	// EveryNode means the head and every node that has a replica. It is the default.
	EveryNode = "EveryNode"
	// HeadOnly means the head alone.
	HeadOnly = "HeadOnly"
	// Disabled means nowhere: the applications are reached from within Ray only.
	Disabled = "Disabled"
)

// Config is a valid config. It never changes and can be used by many goroutines at once.
type Config struct {
	text string
	// root is the whole config as it comes out of JSON, with json.Number for numbers.
	root map[string]any
	apps []map[string]any
}

// Parse reads a config that is written in YAML, of which JSON is a part, as in spec.serveConfigV2. The error is
// ErrNoApplications if there is nothing to serve; otherwise it names the first field that is wrong, its value and the rule.
func Parse(text string) (*Config, error) {
	encoded, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("the Serve config is no YAML: %w", err)
	}
	var root any
	if err := decode(encoded, &root); err != nil {
		return nil, fmt.Errorf("reading the Serve config: %w", err)
	}
	if root == nil {
		return nil, ErrNoApplications
	}
	config, ok := root.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the Serve config is %s: it must be a mapping with the key %q", shown(root), keyApplications)
	}
	apps, err := check(config)
	if err != nil {
		return nil, err
	}
	return &Config{text: text, root: config, apps: apps}, nil
}

// Text returns what was given to Parse, or YAML for a config that was read back from Serve.
func (c *Config) Text() string { return c.text }

// Body returns the config as Serve takes it, in JSON. With a capacity, in percent, it asks for that part of all replicas,
// in place of what the config says.
func (c *Config) Body(capacity *int32) (json.RawMessage, error) {
	root := c.root
	if capacity != nil {
		root = maps.Clone(c.root)
		root[keyTargetCapacity] = *capacity
	}
	body, err := json.Marshal(root)
	if err != nil {
		return nil, fmt.Errorf("encoding the Serve config: %w", err)
	}
	return body, nil
}

// ApplicationNames returns the names of the applications in the order of the config.
func (c *Config) ApplicationNames() []string {
	names := make([]string, 0, len(c.apps))
	for _, app := range c.apps {
		names = append(names, nameOf(app))
	}
	return names
}

// Hash returns a short text that two configs have in common if they say the same, whatever the order of their keys and
// the way they are written. It is fit for annotations.
func (c *Config) Hash() string {
	// It cannot fail: what was decoded from JSON can be encoded, with the keys in order.
	canonical, _ := json.Marshal(c.root)
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:10])
}

// ProxyLocation returns where proxies are to run: EveryNode, HeadOnly or Disabled.
func (c *Config) ProxyLocation() string {
	if location, ok := c.root[keyProxyLocation].(string); ok {
		return location
	}
	return EveryNode
}

// TargetCapacity returns the part of all replicas that the config itself asks for, in percent; nil if it says nothing.
func (c *Config) TargetCapacity() *float64 {
	capacity, ok := number(c.root[keyTargetCapacity])
	if !ok {
		return nil
	}
	return &capacity
}

// nameOf returns the name of an application.
func nameOf(app map[string]any) string {
	if name, ok := app[keyName].(string); ok {
		return name
	}
	return defaultName
}

// decode reads JSON and keeps numbers as they are written.
func decode(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return decoder.Decode(into)
}

// number returns the value of a JSON number.
func number(value any) (float64, bool) {
	text, ok := value.(json.Number)
	if !ok {
		return 0, false
	}
	parsed, err := text.Float64()
	return parsed, err == nil
}
