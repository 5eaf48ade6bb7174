package kube

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// Formats of output besides the one for people.
const (
	// OutputJSON is one document of JSON, indented.
	OutputJSON = "json"
	// OutputYAML is one document of YAML.
	OutputYAML = "yaml"
	// OutputWide is a table with more columns.
	OutputWide = "wide"
	// OutputName is one line TYPE/NAME for each object.
	OutputName = "name"
)

// Output is the value of the flag --output, empty when it is not given. It takes only the formats that it was made with.
type Output struct {
	// Format is one of the formats, or empty.
	Format  string
	allowed []string
}

// AddOutputFlag gives the command the flag -o/--output with these formats.
func AddOutputFlag(cmd *cobra.Command, formats ...string) *Output {
	output := &Output{allowed: formats}
	cmd.Flags().VarP(output, "output", "o", "Output format: "+alternatives(formats)+".")
	// It fails only for a flag that does not exist, and this one was made in the line above.
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	return output
}

// String returns the format.
func (o *Output) String() string { return o.Format }

// Type is the word for the value in the help.
func (o *Output) Type() string { return "string" }

// Set takes a format that the command can write.
func (o *Output) Set(format string) error {
	if !slices.Contains(o.allowed, format) {
		return fmt.Errorf("the format must be %s", alternatives(o.allowed))
	}
	o.Format = format
	return nil
}

func alternatives(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// MarshalFacts returns facts as JSON, indented by 2 blanks, or with OutputYAML as YAML, in the names of their json tags and
// with a newline at the end.
func MarshalFacts(format string, facts any) (string, error) {
	if format == OutputYAML {
		text, err := yaml.Marshal(facts)
		if err != nil {
			return "", fmt.Errorf("write the output as YAML: %w", err)
		}
		return string(text), nil
	}
	text, err := json.MarshalIndent(facts, "", "  ")
	if err != nil {
		return "", fmt.Errorf("write the output as JSON: %w", err)
	}
	return string(text) + "\n", nil
}

// PrintFacts writes what MarshalFacts returns.
func PrintFacts(out io.Writer, format string, facts any) error {
	text, err := MarshalFacts(format, facts)
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, text)
	return err
}
