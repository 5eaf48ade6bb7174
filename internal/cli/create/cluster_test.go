package create

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/clitest"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
)

// offline makes every attempt to talk to a cluster fail.
func offline(t *testing.T) *clitest.Kube {
	t.Helper()
	k := clitest.New()
	k.Env.Client = func() (client.WithWatch, error) {
		t.Error("a cluster was talked to")
		return k.WithWatch, nil
	}
	return k
}

// configFile writes a configuration file and returns its path.
func configFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ray.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Each case prints the object that is in a golden file.
func TestDryRun(t *testing.T) {
	allFlags := "cluster full --namespace team-a --labels team=a --annotations note=x,owner=y --ray-version 2.51.0 " +
		"--head-cpu 1 --head-memory 8Gi --head-gpu 1 --head-ephemeral-storage 10Gi --head-ray-start-params num-cpus=0 " +
		"--head-node-selectors pool=heads --worker-replicas 3 --worker-cpu 500m --worker-memory 1Gi --worker-gpu 2 " +
		"--worker-tpu 4 --worker-ephemeral-storage 5Gi --worker-ray-start-params block=true --num-of-hosts 2 " +
		"--worker-node-selectors cloud.google.com/gke-tpu-accelerator=tpu-v5-lite-podslice,cloud.google.com/gke-tpu-topology=2x4 " +
		"--autoscaler v1 --dry-run"
	for name, args := range map[string]string{
		"defaults":   "cluster plain --dry-run",
		"all-flags":  allFlags,
		"from-file":  "cluster --file testdata/full.yaml --dry-run=client",
		"no-workers": "cluster nobody --file " + configFile(t, "worker-groups: []\n") + " --dry-run=true",
		"least-file": "cluster --file " + configFile(t, "name: least\n") + " -n other --dry-run",
	} {
		t.Run(name, func(t *testing.T) {
			k := offline(t)
			if code := k.Run(t, New, strings.Fields(args)...); code != 0 {
				t.Fatalf("exit code %d: %s", code, k.ErrOut)
			}
			clitest.Golden(t, name+".golden.yaml", k.Out.String())
		})
	}
}

// The image follows the version unless it is chosen.
func TestImage(t *testing.T) {
	for args, want := range map[string]string{
		"":                                    "rayproject/ray:2.52.0",
		"--ray-version 2.60.1":                "rayproject/ray:2.60.1",
		"--image mine:1":                      "mine:1",
		"--image mine:1 --ray-version 2.60.1": "mine:1",
		"--image rayproject/ray:2.52.0 --ray-version 2.60.1": "rayproject/ray:2.52.0",
	} {
		t.Run(args, func(t *testing.T) {
			k := offline(t)
			k.Run(t, New, append([]string{"cluster", "c", "--dry-run"}, strings.Fields(args)...)...)
			if got := strings.Count(k.Out.String(), "image: "+want+"\n"); got != 2 {
				t.Errorf("%d containers have the image %s, want 2:\n%s", got, want, k.Out)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	long := strings.Repeat("a", 54)
	for args, want := range map[string]string{
		"cluster":                                        `the cluster needs a name: give NAME, or a --file with one`,
		"cluster Big":                                    `NAME "Big": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')`,
		"cluster " + long:                                `NAME "` + long + `": it must have at most 53 characters, because names of Services are made from it`,
		"cluster c --head-cpu lots":                      `--head-cpu "lots": it must be a quantity, such as 2, 500m or 4Gi`,
		"cluster c --head-memory=-1Gi":                   `--head-memory "-1Gi": it must not be negative`,
		"cluster c --head-gpu 500m":                      `--head-gpu "500m": it must be a whole number`,
		"cluster c --worker-gpu 1.5":                     `--worker-gpu "1.5": it must be a whole number`,
		"cluster c --worker-memory 4GB":                  `--worker-memory "4GB": it must be a quantity, such as 2, 500m or 4Gi`,
		"cluster c --head-ephemeral-storage x":           `--head-ephemeral-storage "x": it must be a quantity, such as 2, 500m or 4Gi`,
		"cluster c --worker-replicas -1":                 `--worker-replicas "-1": it must not be negative`,
		"cluster c --num-of-hosts 0":                     `--num-of-hosts "0": it must be from 1 to 4096`,
		"cluster c --autoscaler v3":                      `--autoscaler "v3": it must be v1 or v2`,
		"cluster c --ray-version a/b":                    `--ray-version "a/b": it must be a version of Ray, such as 2.52.0`,
		"cluster c --image=":                             `--image "": it must be the name of an image`,
		"cluster c --labels a/b/c=d":                     `--labels "a/b/c": a valid label key`,
		"cluster c --labels a=b/c":                       `--labels "a=b/c": a valid label`,
		"cluster c --head-ray-start-params --num-cpus=1": `--head-ray-start-params "--num-cpus": it must be a flag of ray start without its leading dashes, such as num-cpus`,
		"cluster c --worker-tpu 4":                       `--worker-tpu "4": a group with TPUs must have the node selector cloud.google.com/gke-tpu-accelerator`,
		"cluster c --worker-tpu 4 --worker-node-selectors cloud.google.com/gke-tpu-accelerator=x": `--worker-tpu "4": a group with TPUs must have the node selector cloud.google.com/gke-tpu-topology`,
		"cluster c --wait --timeout 0s":                            `--timeout "0s": it must be more than 0`,
		"cluster --file testdata/full.yaml --image x --head-cpu 1": `--head-cpu, --image: it cannot be given together with --file, which describes the whole cluster`,
		"cluster other --file testdata/full.yaml":                  `NAME "other": it must be the same as name in testdata/full.yaml, which is "full"`,
		"cluster --file testdata/nowhere.yaml":                     `read the configuration: open testdata/nowhere.yaml: no such file or directory`,
		"workergroup headgroup -c c":                               `GROUP "headgroup": it is the name of the head's own group`,
		"workergroup g_ -c c":                                      `GROUP "g_": it must be the name of a group: letters, digits, '-', '_' and '.', with a letter or digit at both ends, at most 63`,
		"workergroup g -c c --worker-replicas 11":                  `--worker-replicas "11": it must not be greater than the maximum, which is 10`,
		"workergroup g -c c --worker-replicas 0":                   `--worker-replicas "0": it must not be less than the minimum, which is 1`,
		"workergroup g -c c --worker-min-replicas 11":              `--worker-min-replicas "11": it must not be greater than the maximum, which is 10`,
		"workergroup g -c c --worker-max-replicas -1":              `--worker-max-replicas "-1": it must not be negative`,
	} {
		t.Run(args, func(t *testing.T) {
			k := offline(t)
			code := k.Run(t, New, strings.Fields(args)...)
			if code != 1 || !strings.HasPrefix(k.ErrOut.String(), "Error: "+want) {
				t.Errorf("exit code %d, said\n%swant\nError: %s", code, k.ErrOut, want)
			}
			if k.Out.Len() > 0 {
				t.Errorf("unexpected output: %s", k.Out)
			}
		})
	}
}

func TestUsageErrors(t *testing.T) {
	for args, want := range map[string]string{
		"cluster a b":                 `accepts at most 1 arg(s), received 2`,
		"cluster c --dry-run=perhaps": `invalid argument "perhaps" for "--dry-run" flag: it must be none, client or server`,
		"workergroup g":               `required flag(s) "ray-cluster" not set`,
		"workergroup -g -c c":         `unknown shorthand flag: 'g' in -g`,
	} {
		t.Run(args, func(t *testing.T) {
			k := offline(t)
			code := k.Run(t, New, strings.Fields(args)...)
			if code != kube.ExitCannotLook || k.ErrOut.String() != "Error: "+want+"\n" {
				t.Errorf("exit code %d, said\n%swant\nError: %s", code, k.ErrOut, want)
			}
		})
	}
}

func TestFileErrors(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"unknown key":             {"name: c\nhead:\n  cpus: 1\n", `unknown field "head.cpus"`},
		"unknown key in a group":  {"name: c\nworker-groups:\n- cpu: 1\n- replica: 1\n", `unknown field "worker-groups[1].replica"`},
		"unknown key of gcsfuse":  {"name: c\ngke:\n  gcsfuse:\n    bucket: x\n", `unknown field "gke.gcsfuse.bucket"`},
		"key in another case":     {"Name: c\n", `unknown field "Name"`},
		"minimum of replicas":     {"name: c\nworker-groups:\n- MinReplicas: 1\n", `unknown field "worker-groups[0].MinReplicas"`},
		"key twice":               {"name: c\nname: d\n", `key "name" already set in map`},
		"no YAML":                 {"name: [\n", `yaml: `},
		"text for a number":       {"name: c\nworker-groups:\n- replicas: many\n", `worker-groups`},
		"a list for a quantity":   {"name: c\nhead:\n  cpu: [1]\n", `[1] is neither a quantity nor a number`},
		"wrong value of the head": {"name: c\nhead:\n  cpu: lots\n", `head.cpu "lots": it must be a quantity, such as 2, 500m or 4Gi`},
		"wrong value of a group":  {"name: c\nworker-groups:\n- {name: a}\n- {name: b, gpu: 0.5}\n", `worker-groups[1].gpu "0.5": it must be a whole number`},
		"no names":                {"name: c\nworker-groups:\n- {name: a}\n- {cpu: 1}\n", `worker-groups[1].name "": it must be the name of a group`},
		"equal names":             {"name: c\nworker-groups:\n- {name: a}\n- {name: a}\n", `worker-groups[1].name "a": it must be different from the names of the other groups`},
		"no name":                 {"head: {}\n", `name "": it must be given`},
		"autoscaler":              {"name: c\nautoscaler: {version: 2}\n", `autoscaler.version`},
		"no version":              {"name: c\nautoscaler: {}\n", `autoscaler.version "": it must be v1 or v2`},
		"no bucket":               {"name: c\ngke: {gcsfuse: {mount-path: /x}}\n", `gke.gcsfuse.bucket-name "": it must be given`},
		"no mount path":           {"name: c\ngke: {gcsfuse: {bucket-name: x}}\n", `gke.gcsfuse.mount-path "": it must be given`},
		"relative mount path":     {"name: c\ngke: {gcsfuse: {bucket-name: x, mount-path: data}}\n", `gke.gcsfuse.mount-path "data": it must start with a slash`},
	} {
		t.Run(name, func(t *testing.T) {
			k := offline(t)
			path := configFile(t, c.text)
			code := k.Run(t, New, "cluster", "--file", path)
			if said := k.ErrOut.String(); code != 1 || !strings.Contains(said, path) || !strings.Contains(said, c.want) {
				t.Errorf("exit code %d, said %q, want the file and %q", code, said, c.want)
			}
		})
	}
}

func TestCreate(t *testing.T) {
	// Given no cluster of that name
	k := clitest.New()

	// When it is created
	if code := k.Run(t, New, "cluster", "c", "-n", "team-a"); code != 0 {
		t.Fatalf("exit code %d: %s", code, k.ErrOut)
	}

	// Then it is there, and its fields are the plugin's
	if got, want := k.Out.String(), "Created Ray cluster: c\n"; got != want {
		t.Errorf("said %q, want %q", got, want)
	}
	c := &rayv1.RayCluster{}
	if err := k.Get(t.Context(), client.ObjectKey{Namespace: "team-a", Name: "c"}, c); err != nil {
		t.Fatal(err)
	}
	if got := c.Spec.WorkerGroupSpecs[0].GroupName; got != "default-group" {
		t.Errorf("the group is called %q", got)
	}
	if len(c.ManagedFields) != 1 || c.ManagedFields[0].Manager != kube.FieldManager || c.ManagedFields[0].Operation != metav1.ManagedFieldsOperationApply {
		t.Errorf("managed fields: %v", c.ManagedFields)
	}

	// And a second time, it is refused, even as a trial
	for _, args := range []string{"cluster c -n team-a", "cluster c -n team-a --dry-run=server"} {
		code := k.Run(t, New, strings.Fields(args)...)
		if want := "Error: RayCluster team-a/c exists already: choose another name, or delete it first\n"; code != 1 || k.ErrOut.String() != want {
			t.Errorf("%s: exit code %d, said %q, want %q", args, code, k.ErrOut, want)
		}
	}
}

func TestDryRunServer(t *testing.T) {
	// Given an API server that completes objects
	k := clitest.New()
	var dryRun []string
	completing := interceptor.NewClient(k.WithWatch, interceptor.Funcs{
		Apply: func(_ context.Context, _ client.WithWatch, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			dryRun = (&client.ApplyOptions{}).ApplyOptions(options).DryRun
			return json.Unmarshal([]byte(`{"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"uid": "u-1", "managedFields": [{"manager": "m"}]}}`), object)
		},
	})
	k.Env.Client = func() (client.WithWatch, error) { return completing, nil }

	// When a cluster is created as a trial there
	if code := k.Run(t, New, "cluster", "plain", "--dry-run=server", "--wait"); code != 0 {
		t.Fatalf("exit code %d: %s", code, k.ErrOut)
	}

	// Then the server is told so, and what it answered is shown
	if diff := cmp.Diff([]string{metav1.DryRunAll}, dryRun); diff != "" {
		t.Errorf("dry run (-want +got):\n%s", diff)
	}
	if got := k.Out.String(); !strings.Contains(got, "  uid: u-1\n") || strings.Contains(got, "managedFields") || strings.Contains(got, "Created") {
		t.Errorf("said %s", got)
	}
}
