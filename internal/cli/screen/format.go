package screen

import (
	"encoding/json"
	"fmt"

	"sigs.k8s.io/yaml"
)

// CheckFormat accepts the formats of Marshal, and none.
func CheckFormat(format string) error {
	switch format {
	case "", "json", "yaml":
		return nil
	default:
		return fmt.Errorf("--output %q is unknown: it must be json or yaml", format)
	}
}

// Marshal returns a value as json or yaml, with a newline at the end.
func Marshal(format string, value any) (string, error) {
	if format == "yaml" {
		text, err := yaml.Marshal(value)
		if err != nil {
			return "", fmt.Errorf("write YAML: %w", err)
		}
		return string(text), nil
	}
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return "", fmt.Errorf("write JSON: %w", err)
	}
	return string(text) + "\n", nil
}
