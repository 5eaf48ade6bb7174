package kube_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/heliostat-io/heliostat/internal/cli/clitest"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
)

// facts are what a command may show.
type facts struct {
	Name  string         `json:"name"`
	Count int            `json:"count,omitempty"`
	Notes map[string]int `json:"notes"`
}

func TestPrintFacts(t *testing.T) {
	shown := facts{Name: "x <y>", Notes: map[string]int{"b": 1, "a": 2}}
	for format, want := range map[string]string{
		kube.OutputJSON: "{\n  \"name\": \"x \\u003cy\\u003e\",\n  \"notes\": {\n    \"a\": 2,\n    \"b\": 1\n  }\n}\n",
		kube.OutputYAML: "name: x <y>\nnotes:\n  a: 2\n  b: 1\n",
	} {
		t.Run(format, func(t *testing.T) {
			var out bytes.Buffer
			if err := kube.PrintFacts(&out, format, shown); err != nil {
				t.Fatal(err)
			}
			text, err := kube.MarshalFacts(format, shown)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{want, want}, []string{out.String(), text}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// show is a command with the flag.
func show(env *kube.Env) *cobra.Command {
	cmd := &cobra.Command{Use: "show", Args: cobra.NoArgs}
	output := kube.AddOutputFlag(cmd, kube.OutputJSON, kube.OutputYAML)
	cmd.RunE = func(*cobra.Command, []string) error {
		return kube.PrintFacts(env.Out, output.Format, []string{output.Format})
	}
	return cmd
}

func TestOutputFlag(t *testing.T) {
	for _, c := range []struct {
		args        []string
		code        int
		out, errOut string
	}{
		{args: []string{"-o", "json"}, out: "[\n  \"json\"\n]\n"},
		{args: []string{"--output=yaml"}, out: "- yaml\n"},
		{args: []string{"-o", "wide"}, code: kube.ExitCannotLook, errOut: "Error: invalid argument \"wide\" for \"-o, --output\" flag: the format must be json or yaml\n"},
		{args: []string{"--output="}, code: kube.ExitCannotLook, errOut: "Error: invalid argument \"\" for \"-o, --output\" flag: the format must be json or yaml\n"},
	} {
		k := clitest.New()
		code := k.Run(t, show, c.args...)
		if diff := cmp.Diff([]string{c.out, c.errOut}, []string{k.Out.String(), k.ErrOut.String()}); diff != "" || code != c.code {
			t.Errorf("%v: exit code %d, want %d (-want +got):\n%s", c.args, code, c.code, diff)
		}
	}
}

func TestOutputFlagCompletes(t *testing.T) {
	if diff := cmp.Diff("json\nyaml\n:4\n", clitest.New().Complete(t, show, "-o", "")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
