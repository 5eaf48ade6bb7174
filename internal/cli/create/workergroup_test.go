package create

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/clitest"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
)

func TestWorkerGroup(t *testing.T) {
	const added = "Updated Ray cluster default/c with new worker group\n"
	for name, c := range map[string]struct {
		args   string
		groups []string
		ray    string
		out    string
		errOut string
		want   []string
	}{
		"one more":  {args: "workergroup new -c c", groups: []string{"old"}, out: added, want: []string{"old", "new"}},
		"the first": {args: "workergroup new --ray-cluster c", out: added, want: []string{"new"}},
		"a name twice": {args: "workergroup old -c c", groups: []string{"old"}, want: []string{"old"},
			errOut: "Error: RayCluster default/c has a worker group \"old\" already: choose another name\n"},
		"no cluster": {args: "workergroup new -c d", groups: []string{"old"}, want: []string{"old"},
			errOut: "Error: no RayCluster \"d\" in namespace \"default\"\n"},
		"another version of Ray": {args: "workergroup new -c c", ray: "2.40.0", out: added, want: []string{"new"},
			errOut: "Warning: RayCluster default/c runs Ray 2.40.0, and workers of Ray 2.52.0 cannot join it: give --ray-version or --image.\n"},
		"the version of the cluster": {args: "workergroup new -c c --ray-version 2.40.0", ray: "2.40.0", out: added, want: []string{"new"}},
		"an image of one's own":      {args: "workergroup new -c c --image mine:1", ray: "2.40.0", out: added, want: []string{"new"}},
	} {
		t.Run(name, func(t *testing.T) {
			k := clitest.New(clusterWith(c.ray, c.groups...))
			code := k.Run(t, New, strings.Fields(c.args)...)
			if failed := strings.HasPrefix(c.errOut, "Error"); failed != (code == 1) {
				t.Errorf("exit code %d", code)
			}
			if diff := cmp.Diff([]string{c.out, c.errOut}, []string{k.Out.String(), k.ErrOut.String()}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			var got []string
			for _, group := range groupsOf(t, k) {
				got = append(got, group.GroupName)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("groups (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSomebodyElseChangesTheCluster(t *testing.T) {
	for name, c := range map[string]struct {
		times  int
		group  string
		code   int
		out    string
		errOut string
		want   []string
	}{
		"another group": {times: 1, group: "other", out: "Updated Ray cluster default/c with new worker group\n", want: []string{"old", "other", "new"}},
		"a group of the same name": {times: 1, group: "new", code: kube.ExitFailed, want: []string{"old", "new"},
			errOut: "Error: RayCluster default/c has a worker group \"new\" already: choose another name\n"},
		"again and again": {times: 4, group: "g", code: kube.ExitFailed, want: []string{"old", "g", "g", "g", "g"},
			errOut: "Error: add worker group new to RayCluster default/c: somebody changed it at the same time: try again\n"},
	} {
		t.Run(name, func(t *testing.T) {
			// Given somebody who adds a group between the look at the cluster and the patch
			k := clitest.New(clusterWith("", "old"))
			patched := 0
			busy := interceptor.NewClient(k.WithWatch, interceptor.Funcs{
				Patch: func(ctx context.Context, w client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
					if patched++; patched <= c.times {
						other := &rayv1.RayCluster{}
						if err := w.Get(ctx, client.ObjectKeyFromObject(object), other); err != nil {
							return err
						}
						other.Spec.WorkerGroupSpecs = append(other.Spec.WorkerGroupSpecs, rayv1.WorkerGroupSpec{GroupName: c.group})
						if err := w.Update(ctx, other); err != nil {
							return err
						}
					}
					return w.Patch(ctx, object, patch, options...)
				},
			})
			k.Env.Client = func() (client.WithWatch, error) { return busy, nil }

			// When a group is added, then what was written meanwhile counts
			code := k.Run(t, New, "workergroup", "new", "-c", "c")
			if diff := cmp.Diff([]string{c.out, c.errOut}, []string{k.Out.String(), k.ErrOut.String()}); diff != "" || code != c.code {
				t.Errorf("exit code %d, want %d (-want +got):\n%s", code, c.code, diff)
			}
			var got []string
			for _, group := range groupsOf(t, k) {
				got = append(got, group.GroupName)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("groups (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWorkerGroupContent(t *testing.T) {
	// Given a cluster without workers
	k := clitest.New(clusterWith("2.52.0"))

	// When a group is added with every flag
	args := "workergroup g -c c --ray-version 2.52.0 --worker-replicas 2 --worker-min-replicas 2 --worker-max-replicas 4 " +
		"--num-of-hosts 2 --worker-cpu 3 --worker-memory 5Gi --worker-gpu 1 --worker-tpu 4 --worker-ray-start-params block=true " +
		"--worker-node-selectors cloud.google.com/gke-tpu-accelerator=x,cloud.google.com/gke-tpu-topology=2x4"
	if code := k.Run(t, New, strings.Fields(args)...); code != 0 {
		t.Fatalf("exit code %d: %s", code, k.ErrOut)
	}

	// Then the group has what they say
	text, err := yaml.Marshal(groupsOf(t, k))
	if err != nil {
		t.Fatal(err)
	}
	clitest.Golden(t, "workergroup.golden.yaml", string(text))
}

func clusterWith(version string, groups ...string) *rayv1.RayCluster {
	c := &rayv1.RayCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c"}, Spec: rayv1.RayClusterSpec{RayVersion: version}}
	for _, name := range groups {
		c.Spec.WorkerGroupSpecs = append(c.Spec.WorkerGroupSpecs, rayv1.WorkerGroupSpec{GroupName: name})
	}
	return c
}

func groupsOf(t *testing.T, k *clitest.Kube) []rayv1.WorkerGroupSpec {
	t.Helper()
	c := &rayv1.RayCluster{}
	if err := k.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "c"}, c); err != nil {
		t.Fatal(err)
	}
	return c.Spec.WorkerGroupSpecs
}
