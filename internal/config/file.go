package config

import (
	"fmt"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

const (
	fileAPIVersion = "config.ray.io/v1alpha1"
	fileKind       = "Configuration"
)

// readSettings reads a configuration file. Fields that are absent, and numbers and addresses that are empty, have their
// defaults. The second result has one warning for every field that is unknown or stands there twice.
func readSettings(path string, readFile func(string) ([]byte, error)) (settings, []string, error) {
	text, err := readFile(path)
	if err != nil {
		return settings{}, nil, fmt.Errorf("reading the configuration file named by --config: %w", err)
	}
	document, err := yaml.YAMLToJSON(text)
	if err != nil {
		return settings{}, nil, fmt.Errorf("parsing configuration file %s: %w", path, err)
	}

	s := defaultSettings()
	s.file = path
	surplus, err := kjson.UnmarshalStrict(document, &s)
	if err != nil {
		return settings{}, nil, fmt.Errorf("parsing configuration file %s: %w", path, err)
	}
	if s.APIVersion != fileAPIVersion {
		return settings{}, nil, invalid(s.name("", "apiVersion"), s.APIVersion, "must be "+fileAPIVersion)
	}
	if s.Kind != fileKind {
		return settings{}, nil, invalid(s.name("", "kind"), s.Kind, "must be "+fileKind)
	}
	s.defaultEmpty()

	var warnings []string
	for _, e := range surplus {
		warnings = append(warnings, fmt.Sprintf("configuration file %s: %v is ignored", path, e))
	}
	return s, warnings, nil
}

// defaultEmpty replaces empty values that a file may spell out, as the charts of KubeRay do, by the defaults.
func (s *settings) defaultEmpty() {
	d := defaultSettings()
	if s.MetricsAddr == "" {
		s.MetricsAddr = d.MetricsAddr
	}
	if s.ProbeAddr == "" {
		s.ProbeAddr = d.ProbeAddr
	}
	if s.ReconcileConcurrency == 0 {
		s.ReconcileConcurrency = d.ReconcileConcurrency
	}
	if s.Fencing == "" {
		s.Fencing = d.Fencing
	}
	if s.LogFileEncoder == "" {
		s.LogFileEncoder = d.LogFileEncoder
	}
	if s.LogStdoutEncoder == "" {
		s.LogStdoutEncoder = d.LogStdoutEncoder
	}
}
