package cli

import (
	"cmp"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/heliostat-io/heliostat/internal/cli/kube"
	"github.com/heliostat-io/heliostat/test/conformance/table"
)

// knownFlag is a flag that users of KubeRay's plugin give.
type knownFlag struct {
	// name and shorthand are without dashes.
	name, shorthand string
	// standard is the value when the flag is not given. Lists and maps are empty text.
	standard string
	// bare tells that the flag is given without a value, too.
	bare bool
	// example is a value that is given, where the standard is none that can be.
	example string
}

// knownCommand is a command that users of KubeRay's plugin type.
type knownCommand struct {
	path string
	// aliases may be typed in place of the last word of the path.
	aliases []string
	flags   []knownFlag
}

// knownCommands are the commands of KubeRay's plugin (spec/ecosystem.md, sections 2.1 to 2.9). docs/compatibility.md is made from them.
func knownCommands() []knownCommand {
	const pairs = "key=value"
	all := knownFlag{name: "all-namespaces", shorthand: "A", standard: "false", bare: true}
	of := knownFlag{name: "ray-cluster", shorthand: "c"}
	return []knownCommand{
		{path: "get", aliases: []string{"list"}},
		{path: "get cluster", aliases: []string{"clusters"}, flags: []knownFlag{all}},
		{path: "get workergroup", aliases: []string{"workergroups"}, flags: []knownFlag{all, of}},
		{path: "get node", aliases: []string{"nodes"}, flags: []knownFlag{all, of}},
		{path: "get token"},
		{path: "create cluster", flags: []knownFlag{
			{name: "labels", example: pairs},
			{name: "annotations", example: pairs},
			{name: "ray-version", standard: "2.52.0"},
			{name: "image", standard: "rayproject/ray:2.52.0"},
			{name: "head-cpu", standard: "2"},
			{name: "head-memory", standard: "4Gi"},
			{name: "head-gpu", standard: "0"},
			{name: "head-ephemeral-storage"},
			{name: "head-ray-start-params", example: pairs},
			{name: "head-node-selectors", example: pairs},
			{name: "worker-replicas", standard: "1"},
			{name: "worker-cpu", standard: "2"},
			{name: "worker-memory", standard: "4Gi"},
			{name: "worker-gpu", standard: "0"},
			{name: "worker-tpu", standard: "0"},
			{name: "worker-ephemeral-storage"},
			{name: "worker-ray-start-params", example: pairs},
			{name: "worker-node-selectors", example: pairs},
			{name: "num-of-hosts", standard: "1"},
			{name: "autoscaler"},
			{name: "file"},
			// A switch in KubeRay's plugin. Here it may have a value, too, and "none" is what "false" is there.
			{name: "dry-run", standard: "none", bare: true},
			{name: "wait", standard: "false", bare: true},
			{name: "timeout", standard: "5m0s"},
		}},
		{path: "create workergroup", flags: []knownFlag{
			of,
			{name: "ray-version", standard: "2.52.0"},
			{name: "image", standard: "rayproject/ray:2.52.0"},
			{name: "worker-replicas", standard: "1"},
			{name: "worker-min-replicas", standard: "1"},
			{name: "worker-max-replicas", standard: "10"},
			{name: "num-of-hosts", standard: "1"},
			{name: "worker-cpu", standard: "2"},
			{name: "worker-memory", standard: "4Gi"},
			{name: "worker-gpu", standard: "0"},
			{name: "worker-tpu", standard: "0"},
			{name: "worker-ray-start-params", example: pairs},
			{name: "worker-node-selectors", example: pairs},
		}},
		{path: "delete", flags: []knownFlag{{name: "yes", shorthand: "y", standard: "false", bare: true}}},
		{path: "scale cluster", flags: []knownFlag{
			{name: "worker-group", shorthand: "w"},
			{name: "replicas", shorthand: "r", standard: "-1"},
			{name: "min-replicas", standard: "-1"},
			{name: "max-replicas", standard: "-1"},
		}},
		{path: "version"},
		{path: "session", flags: []knownFlag{{name: "verbose", shorthand: "v", standard: "false", bare: true}}},
		{path: "log", flags: logFlags()},
		{path: "logs", flags: logFlags()},
		{path: "job submit", flags: submitFlags()},
	}
}

// logFlags are those of the download of logs.
func logFlags() []knownFlag {
	return []knownFlag{{name: "out-dir", example: "/tmp"}, {name: "node-type", standard: "all"}, {name: "link", example: "gke"}}
}

// submitFlags are those of job submit (spec/ecosystem.md, section 2.8).
func submitFlags() []knownFlag {
	return []knownFlag{
		{name: "filename", shorthand: "f"},
		{name: "name"},
		{name: "address"},
		{name: "submission-id"},
		{name: "working-dir"},
		{name: "runtime-env"},
		{name: "runtime-env-json"},
		{name: "headers"},
		{name: "verify", standard: "true"},
		{name: "metadata-json"},
		{name: "entrypoint-num-cpus", standard: "0"},
		{name: "entrypoint-num-gpus", standard: "0"},
		{name: "entrypoint-memory", standard: "0"},
		{name: "entrypoint-resources"},
		{name: "log-style", standard: "auto"},
		{name: "log-color", standard: "auto"},
		{name: "no-wait", standard: "false", bare: true},
		{name: "verbose", shorthand: "v", standard: "false", bare: true},
		{name: "dry-run", standard: "none", bare: true},
		{name: "ttl-seconds-after-finished", standard: "0"},
		{name: "ray-version", standard: "2.52.0"},
		{name: "image", standard: "rayproject/ray:2.52.0"},
		{name: "head-cpu", standard: "2"},
		{name: "head-memory", standard: "4Gi"},
		{name: "head-gpu", standard: "0"},
		{name: "worker-replicas", standard: "1"},
		{name: "worker-cpu", standard: "2"},
		{name: "worker-memory", standard: "4Gi"},
		{name: "worker-gpu", standard: "0"},
		{name: "head-node-selectors", example: "key=value"},
		{name: "worker-node-selectors", example: "key=value"},
	}
}

// knownGlobalFlags are kubectl's flags for the connection, which every command takes.
func knownGlobalFlags() []knownFlag {
	return []knownFlag{
		{name: "namespace", shorthand: "n"},
		{name: "context"},
		{name: "kubeconfig"},
		{name: "cluster"},
		{name: "user"},
		{name: "server", shorthand: "s"},
		{name: "token"},
		{name: "as"},
		{name: "as-group"},
		{name: "as-uid"},
		{name: "certificate-authority"},
		{name: "client-certificate"},
		{name: "client-key"},
		{name: "tls-server-name"},
		{name: "insecure-skip-tls-verify", standard: "false", bare: true},
		{name: "request-timeout", standard: "0"},
	}
}

// freshRoot returns the program as it is before any flag is read.
func freshRoot() *cobra.Command {
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard}
	return NewIn(kube.NewEnv(streams, "kubectl ray", "v0.0.0-test"))
}

func find(t *testing.T, path string) *cobra.Command {
	t.Helper()
	cmd, rest, err := freshRoot().Find(strings.Fields(path))
	if err != nil || len(rest) > 0 {
		t.Fatalf("%s is not a command: %v %v", path, rest, err)
	}
	return cmd
}

func TestKnownCommands(t *testing.T) {
	for _, known := range knownCommands() {
		t.Run(known.path, func(t *testing.T) {
			cmd := find(t, known.path)
			words := strings.Fields(known.path)
			parent := strings.Join(words[:len(words)-1], " ")
			for _, alias := range known.aliases {
				if got := find(t, parent+" "+alias); got.Name() != cmd.Name() {
					t.Errorf("%s is the command %s", alias, got.CommandPath())
				}
			}
			for _, flag := range slices.Concat(known.flags, knownGlobalFlags()) {
				checkFlag(t, known.path, flag)
			}
		})
	}
}

// checkFlag proves that the flag exists as it is known, and that each way of giving it is understood.
func checkFlag(t *testing.T, path string, known knownFlag) {
	t.Helper()
	cmd := find(t, path)
	// Parsing nothing brings the flags together that the parents hand down.
	if err := cmd.ParseFlags(nil); err != nil {
		t.Fatal(err)
	}
	flag := cmd.Flags().Lookup(known.name)
	if flag == nil {
		t.Errorf("--%s is unknown", known.name)
		return
	}
	if flag.Shorthand != known.shorthand {
		t.Errorf("--%s has the shorthand %q, want %q", known.name, flag.Shorthand, known.shorthand)
	}
	if got := standard(flag); got != known.standard {
		t.Errorf("--%s is %q when it is not given, want %q", known.name, got, known.standard)
	}
	value := cmp.Or(known.example, known.standard)
	ways := [][]string{{"--" + known.name + "=" + value}}
	if known.bare {
		ways = append(ways, []string{"--" + known.name})
	} else {
		ways = append(ways, []string{"--" + known.name, value})
	}
	if known.shorthand != "" {
		ways = append(ways, []string{"-" + known.shorthand + "=" + value})
	}
	for _, way := range ways {
		// Every way gets a command that has not read a flag yet.
		if err := find(t, path).ParseFlags(way); err != nil {
			t.Errorf("%q is not understood: %v", way, err)
		}
	}
}

// standard is the value of a flag that is not given. An empty list or map is written [].
func standard(flag *pflag.Flag) string {
	if flag.DefValue == "[]" {
		return ""
	}
	return flag.DefValue
}

// TestFlagsWithValues proves that values which users give arrive, for flags whose values have a form of their own.
func TestFlagsWithValues(t *testing.T) {
	for _, c := range []struct{ path, given, flag, want string }{
		{"create cluster", "--labels=a=b,c=d", "labels", "[a=b,c=d]"},
		{"create cluster", "--annotations=a=b", "annotations", "[a=b]"},
		{"create cluster", "--head-ray-start-params=num-cpus=0", "head-ray-start-params", "[num-cpus=0]"},
		{"create cluster", "--worker-node-selectors=cloud.google.com/gke-tpu-topology=2x4", "worker-node-selectors", "[cloud.google.com/gke-tpu-topology=2x4]"},
		{"create cluster", "--timeout=90s", "timeout", "1m30s"},
		{"create cluster", "--dry-run", "dry-run", "client"},
		{"create cluster", "--dry-run=true", "dry-run", "client"},
		{"create cluster", "--dry-run=false", "dry-run", "none"},
		{"create cluster", "--dry-run=client", "dry-run", "client"},
		{"create cluster", "--dry-run=server", "dry-run", "server"},
		{"create workergroup", "-cmine", "ray-cluster", "mine"},
		{"scale cluster", "-r5", "replicas", "5"},
		{"scale cluster", "-wgpu", "worker-group", "gpu"},
		{"delete", "-y", "yes", "true"},
		{"get node", "-A", "all-namespaces", "true"},
	} {
		cmd := find(t, c.path)
		if err := cmd.ParseFlags([]string{c.given}); err != nil {
			t.Errorf("%s %s: %v", c.path, c.given, err)
			continue
		}
		got := cmd.Flags().Lookup(c.flag).Value.String()
		if strings.HasPrefix(got, "[") {
			// A map has no order.
			pairs := strings.Split(strings.Trim(got, "[]"), ",")
			slices.Sort(pairs)
			got = "[" + strings.Join(pairs, ",") + "]"
		}
		if got != c.want {
			t.Errorf("%s %s: --%s is %q, want %q", c.path, c.given, c.flag, got, c.want)
		}
	}
}

// TestCompatibilityTable keeps the section on the plugin in docs/compatibility.md as the lists above are.
func TestCompatibilityTable(t *testing.T) {
	var page strings.Builder
	page.WriteString("# kubectl ray, compared with KubeRay's plugin\n\n" +
		"Every command and flag of KubeRay's plugin is taken with the same meaning; `go test ./internal/cli -run TestKnownCommands` gives each\n" +
		"of them. kubectl's flags for the connection (`--namespace`, `--context`, `--kubeconfig` and the others) go with every command.\n\n" +
		"| command | flags, with what they are when not given |\n|---|---|\n")
	for _, known := range knownCommands() {
		name := known.path
		for _, alias := range known.aliases {
			name += ", " + alias
		}
		var flags []string
		for _, flag := range known.flags {
			text := "`--" + flag.name
			if flag.standard != "" {
				text += "=" + flag.standard
			}
			flags = append(flags, text+"`")
		}
		page.WriteString("| " + name + " | " + cmp.Or(strings.Join(flags, " "), "none") + " |\n")
	}
	table.CheckPart(t, "../../docs/compatibility.md", "plugin", page.String())
}
