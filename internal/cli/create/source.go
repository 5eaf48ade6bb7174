package create

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagNames are the flags that set what stands at a place of the configuration, where the rule of flagOf does not tell.
func flagNames() map[string]string {
	return map[string]string{
		"name":                          "NAME",
		"autoscaler.version":            "--autoscaler",
		"worker-groups[0].name":         "GROUP",
		"worker-groups[0].num-of-hosts": "--num-of-hosts",
	}
}

// flagOf is the flag that sets what stands at a place of the configuration.
func flagOf(key string) string {
	if name, ok := flagNames()[key]; ok {
		return name
	}
	key = strings.NewReplacer("worker-groups[0].", "worker-", "head.", "head-").Replace(key)
	return "--" + key
}

// asFlag says a problem in terms of flags.
func (p *problem) asFlag() error {
	return &problem{key: flagOf(p.key), value: p.value, rule: p.rule}
}

// fromFile reads the configuration file. The name, if one is given, must be the same as in the file.
func fromFile(file, name string) (*config, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	c, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("read the configuration %s: %w", file, err)
	}
	if name != "" && c.Name != "" && name != c.Name {
		return nil, fmt.Errorf("NAME %q: it must be the same as name in %s, which is %q", name, file, c.Name)
	}
	setDefault(&c.Name, name)
	if p := c.validate(); p != nil {
		return nil, fmt.Errorf("%s: %w", file, p)
	}
	return c, nil
}

// onlyBesideFile returns an error when a flag is given that describes the cluster, which the file does.
func onlyBesideFile(cmd *cobra.Command) error {
	var others []string
	cmd.LocalNonPersistentFlags().VisitAll(func(flag *pflag.Flag) {
		switch flag.Name {
		case "file", "dry-run", "wait", "timeout", "help":
		default:
			if flag.Changed {
				others = append(others, "--"+flag.Name)
			}
		}
	})
	if len(others) == 0 {
		return nil
	}
	return errors.New(strings.Join(others, ", ") + ": it cannot be given together with --file, which describes the whole cluster")
}
