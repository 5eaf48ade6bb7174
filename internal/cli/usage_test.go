package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/heliostat-io/heliostat/internal/cli/kube"
)

// call runs the program without any cluster, and returns what it wrote and its exit code.
func call(t *testing.T, args ...string) (string, int) {
	t.Helper()
	var out bytes.Buffer
	env := kube.NewEnv(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out}, "kubectl ray", "v0.0.0-test")
	*env.Flags.KubeConfig = "/dev/null"
	root := NewIn(env)
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	if err == nil {
		return out.String(), 0
	}
	out.WriteString(err.Error())
	var exit kube.ExitError
	if errors.As(err, &exit) {
		return out.String(), exit.Code
	}
	return out.String(), kube.ExitFailed
}

// leaves are the paths of all commands that have none below them.
func leaves(cmd *cobra.Command) [][]string {
	if !cmd.HasSubCommands() {
		return [][]string{{}}
	}
	var paths [][]string
	for _, sub := range cmd.Commands() {
		for _, path := range leaves(sub) {
			paths = append(paths, append([]string{sub.Name()}, path...))
		}
	}
	return paths
}

func TestUnknownFlagOfEveryCommand(t *testing.T) {
	paths := leaves(freshRoot())
	if len(paths) < 20 {
		t.Fatalf("there are only %d commands", len(paths))
	}
	for _, path := range paths {
		said, code := call(t, append(path, "--no-such-flag")...)
		if want := "unknown flag: --no-such-flag"; code != kube.ExitCannotLook || said != want {
			t.Errorf("%v: exit code %d, said %q, want %d and %q", path, code, said, kube.ExitCannotLook, want)
		}
	}
}

func TestUsageErrors(t *testing.T) {
	for args, want := range map[string]string{
		"stauts":                  `unknown command "stauts" for "kubectl ray": did you mean status?`,
		"xyzzy train":             `unknown command "xyzzy" for "kubectl ray"`,
		"xyzzy --loud":            `unknown command "xyzzy" for "kubectl ray"`,
		"--colour=red":            `unknown flag: --colour`,
		"get gadget":              `unknown command "gadget" for "kubectl ray get"`,
		"job begin":               `unknown command "begin" for "kubectl ray job"`,
		"status":                  `accepts 1 arg(s), received 0`,
		"diagnose a b":            `accepts 1 arg(s), received 2`,
		"delete":                  `requires at least 1 arg(s), only received 0`,
		"version a":               `unknown command "a" for "kubectl ray version"`,
		"scale cluster a":         `required flag(s) "worker-group" not set`,
		"scale cluster a -w g -r": `flag needs an argument: 'r' in -r`,
		"get cluster -o xml":      `invalid argument "xml" for "-o, --output" flag: the format must be json, yaml, wide or name`,
		"wait a --timeout soon":   `invalid argument "soon" for "--timeout" flag: time: invalid duration "soon"`,
		"completion bash a":       `unknown command "a" for "kubectl ray completion bash"`,
	} {
		t.Run(args, func(t *testing.T) {
			said, code := call(t, strings.Fields(args)...)
			if code != kube.ExitCannotLook || said != want {
				t.Errorf("exit code %d, said %q, want %d and %q", code, said, kube.ExitCannotLook, want)
			}
		})
	}
}

func TestHelpIsNoError(t *testing.T) {
	for _, args := range []string{"", "--help", "help", "status --help", "get", "help scale cluster"} {
		if said, code := call(t, strings.Fields(args)...); code != 0 || !strings.Contains(said, "Usage:") {
			t.Errorf("%q: exit code %d, said %q", args, code, said)
		}
	}
}

func TestCompletionIsForThePluginAlone(t *testing.T) {
	for shell, want := range map[string]string{
		"bash": "complete -o default -F __start_kubectl-ray kubectl-ray",
		"zsh":  "#compdef kubectl-ray",
		"fish": "complete -c kubectl-ray",
	} {
		if script, code := call(t, "completion", shell); code != 0 || !strings.Contains(script, want) {
			t.Errorf("%s: exit code %d, and the script does not contain %q", shell, code, want)
		}
	}
}

func TestUsageLine(t *testing.T) {
	if said, _ := call(t, "--help"); !strings.Contains(said, "Usage:\n  kubectl ray [flags]\n  kubectl ray [command]\n") {
		t.Errorf("said\n%s", said)
	}
}
