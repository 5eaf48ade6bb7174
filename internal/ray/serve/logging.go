package serve

import (
	"encoding/json"
	"maps"
)

// The fields of a logging config that Serve reports in another way than they were given.
const (
	keyLogLevel = "log_level"
	keyLogAttrs = "additional_log_standard_attrs"
)

// logging brings a logging config into a form in which what was given and what is reported can be compared: Serve gives
// numeric levels their names, and returns the attributes once each and in no order.
func logging(value any) any {
	config, ok := value.(map[string]any)
	if !ok {
		return value
	}
	config = maps.Clone(config)
	if level, ok := config[keyLogLevel].(json.Number); ok {
		config[keyLogLevel] = levelName(level)
	}
	if list, ok := config[keyLogAttrs].([]any); ok {
		set := map[string]any{}
		for _, attribute := range list {
			if text, ok := attribute.(string); ok {
				set[text] = true
			}
		}
		config[keyLogAttrs] = set
	}
	return config
}

// levelName is the name that Serve reports for a log level that was given as a number, as in Python. Serve refuses others.
func levelName(level json.Number) string {
	switch level {
	case "0":
		return "NOTSET"
	case "10":
		return "DEBUG"
	case "20":
		return "INFO"
	case "30":
		return "WARNING"
	case "40":
		return "ERROR"
	case "50":
		return "CRITICAL"
	}
	return level.String()
}
