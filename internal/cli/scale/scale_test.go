package scale

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/clitest"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
)

// cluster has a group of 2 replicas within 1 and 5, and one that says nothing of replicas.
func cluster(changes ...func(*rayv1.RayCluster)) *rayv1.RayCluster {
	c := &rayv1.RayCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c"}}
	c.Spec.WorkerGroupSpecs = []rayv1.WorkerGroupSpec{
		{GroupName: "other", Replicas: ptr.To[int32](1), MinReplicas: ptr.To[int32](1), MaxReplicas: ptr.To[int32](1)},
		{GroupName: "g", Replicas: ptr.To[int32](2), MinReplicas: ptr.To[int32](1), MaxReplicas: ptr.To[int32](5)},
		{GroupName: "plain"},
	}
	for _, change := range changes {
		change(c)
	}
	return c
}

func sizes(t *testing.T, k *clitest.Kube) []size {
	t.Helper()
	c := &rayv1.RayCluster{}
	if err := k.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "c"}, c); err != nil {
		t.Fatal(err)
	}
	var found []size
	for i := range c.Spec.WorkerGroupSpecs {
		found = append(found, sizeOf(&c.Spec.WorkerGroupSpecs[i]))
	}
	return found
}

func TestScale(t *testing.T) {
	const most = 2147483647
	unchanged := []size{{1, 1, 1}, {2, 1, 5}, {0, 0, most}}
	for name, c := range map[string]struct {
		args string
		with func(*rayv1.RayCluster)
		// code is the exit code when it is not the one that goes with whether there is an error.
		code   int
		out    string
		errOut string
		want   []size
	}{
		"replicas": {args: "cluster c -w g -r 4",
			out: "Scaled worker group g of RayCluster default/c: replicas 2 -> 4\n", want: []size{{1, 1, 1}, {4, 1, 5}, {0, 0, most}}},
		"to nothing": {args: "cluster c --worker-group g --replicas 0 --min-replicas 0",
			out: "Scaled worker group g of RayCluster default/c: replicas 2 -> 0, minReplicas 1 -> 0\n", want: []size{{1, 1, 1}, {0, 0, 5}, {0, 0, most}}},
		"all numbers": {args: "cluster c -w g -r 7 --min-replicas 7 --max-replicas 7",
			out:  "Scaled worker group g of RayCluster default/c: replicas 2 -> 7, minReplicas 1 -> 7, maxReplicas 5 -> 7\n",
			want: []size{{1, 1, 1}, {7, 7, 7}, {0, 0, most}}},
		"only what differs": {args: "cluster c -w g -r 2 --max-replicas 6",
			out: "Scaled worker group g of RayCluster default/c: maxReplicas 5 -> 6\n", want: []size{{1, 1, 1}, {2, 1, 6}, {0, 0, most}}},
		"a group without numbers": {args: "cluster c -w plain -r 3",
			out: "Scaled worker group plain of RayCluster default/c: replicas 0 -> 3\n", want: []size{{1, 1, 1}, {2, 1, 5}, {3, 0, most}}},
		"already so": {args: "cluster c -w g -r 2 --min-replicas 1",
			out: "Skipped worker group g of RayCluster default/c: it has replicas 2, minReplicas 1, maxReplicas 5 already\n", want: unchanged},
		"above the maximum": {args: "cluster c -w g -r 6", want: unchanged,
			errOut: "Error: scale worker group g of RayCluster default/c: replicas would be 6 and must not be greater than maxReplicas, which would be 5: give --replicas or --max-replicas, too\n"},
		"below the minimum": {args: "cluster c -w g -r 0", want: unchanged,
			errOut: "Error: scale worker group g of RayCluster default/c: replicas would be 0 and must not be less than minReplicas, which would be 1: give --replicas or --min-replicas, too\n"},
		"the new minimum is above the old replicas": {args: "cluster c -w g --min-replicas 3", want: unchanged,
			errOut: "Error: scale worker group g of RayCluster default/c: replicas would be 2 and must not be less than minReplicas, which would be 3: give --replicas or --min-replicas, too\n"},
		"bounds crossed": {args: "cluster c -w g --min-replicas 9", want: unchanged,
			errOut: "Error: scale worker group g of RayCluster default/c: minReplicas would be 9 and must not be greater than maxReplicas, which would be 5: give --min-replicas or --max-replicas, too\n"},
		"nothing asked": {args: "cluster c -w g", want: unchanged,
			errOut: "Error: nothing to change: give at least one of --replicas, --min-replicas and --max-replicas\n"},
		"negative": {args: "cluster c -w g --max-replicas -2", want: unchanged,
			errOut: "Error: --max-replicas is -2: it must be 0 or more, or -1 to leave the number as it is\n"},
		"no cluster": {args: "cluster d -w g -r 1", want: unchanged, errOut: "Error: no RayCluster \"d\" in namespace \"default\"\n"},
		"no group": {args: "cluster c -w h -r 1", want: unchanged,
			errOut: "Error: no worker group \"h\" in RayCluster default/c: it has other, g, plain\n"},
		"no groups at all": {args: "cluster c -w h -r 1", with: func(c *rayv1.RayCluster) { c.Spec.WorkerGroupSpecs = nil },
			errOut: "Error: no worker group \"h\" in RayCluster default/c: it has none\n"},
		"no group named": {args: "cluster c -r 1", code: kube.ExitCannotLook, want: unchanged, errOut: "Error: required flag(s) \"worker-group\" not set\n"},
		"autoscaler": {args: "cluster c -w g -r 3", with: func(c *rayv1.RayCluster) { c.Spec.EnableInTreeAutoscaling = ptr.To(true) },
			out:    "Scaled worker group g of RayCluster default/c: replicas 2 -> 3\n",
			errOut: "Warning: Ray's autoscaler is on and sets the number of replicas within the bounds\n", want: []size{{1, 1, 1}, {3, 1, 5}, {0, 0, most}}},
		"suspended cluster": {args: "cluster c -w g -r 3", with: func(c *rayv1.RayCluster) { c.Spec.Suspend = ptr.To(true) },
			out:    "Scaled worker group g of RayCluster default/c: replicas 2 -> 3\n",
			errOut: "Warning: RayCluster default/c is suspended: it has no workers until it is resumed\n", want: []size{{1, 1, 1}, {3, 1, 5}, {0, 0, most}}},
		"suspended group": {args: "cluster c -w g -r 3", with: func(c *rayv1.RayCluster) { c.Spec.WorkerGroupSpecs[1].Suspend = ptr.To(true) },
			out:    "Scaled worker group g of RayCluster default/c: replicas 2 -> 3\n",
			errOut: "Warning: worker group g of RayCluster default/c is suspended: it has no workers until it is resumed\n", want: []size{{1, 1, 1}, {3, 1, 5}, {0, 0, most}}},
	} {
		t.Run(name, func(t *testing.T) {
			before := cluster()
			if c.with != nil {
				c.with(before)
			}
			k := clitest.New(before)
			code := k.Run(t, New, strings.Fields(c.args)...)
			if c.code == 0 && strings.HasPrefix(c.errOut, "Error") {
				c.code = kube.ExitFailed
			}
			if code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			if diff := cmp.Diff([]string{c.out, c.errOut}, []string{k.Out.String(), k.ErrOut.String()}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.want, sizes(t, k), cmp.AllowUnexported(size{})); diff != "" {
				t.Errorf("sizes (-want +got):\n%s", diff)
			}
		})
	}
}

// disturbed is a cluster in which somebody writes between the look at it and the patch, the first times.
func disturbed(k *clitest.Kube, times int, disturb func(*rayv1.RayCluster)) {
	patched := 0
	busy := interceptor.NewClient(k.WithWatch, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if patched++; patched <= times {
				other := &rayv1.RayCluster{}
				if err := c.Get(ctx, client.ObjectKeyFromObject(object), other); err != nil {
					return err
				}
				disturb(other)
				if err := c.Update(ctx, other); err != nil {
					return err
				}
			}
			return c.Patch(ctx, object, patch, options...)
		},
	})
	k.Env.Client = func() (client.WithWatch, error) { return busy, nil }
}

func TestSomebodyElseWrites(t *testing.T) {
	const most = 2147483647
	label := func(c *rayv1.RayCluster) { c.Labels = map[string]string{"version": c.ResourceVersion} }
	withoutFirst := func(c *rayv1.RayCluster) { c.Spec.WorkerGroupSpecs = c.Spec.WorkerGroupSpecs[1:] }
	for name, c := range map[string]struct {
		times   int
		disturb func(*rayv1.RayCluster)
		code    int
		out     string
		errOut  string
		want    []size
	}{
		"it does not matter to the group": {times: 2, disturb: label,
			out: "Scaled worker group g of RayCluster default/c: replicas 2 -> 4\n", want: []size{{1, 1, 1}, {4, 1, 5}, {0, 0, most}}},
		"the group has another place in the list": {times: 1, disturb: withoutFirst,
			out: "Scaled worker group g of RayCluster default/c: replicas 2 -> 4\n", want: []size{{4, 1, 5}, {0, 0, most}}},
		"the group is gone": {times: 2, disturb: withoutFirst, code: kube.ExitFailed, want: []size{{0, 0, most}},
			errOut: "Error: no worker group \"g\" in RayCluster default/c: it has plain\n"},
		"the bound is another one": {times: 1, disturb: func(c *rayv1.RayCluster) { c.Spec.WorkerGroupSpecs[1].MaxReplicas = ptr.To[int32](3) },
			code: kube.ExitFailed, want: []size{{1, 1, 1}, {2, 1, 3}, {0, 0, most}},
			errOut: "Error: scale worker group g of RayCluster default/c: replicas would be 4 and must not be greater than maxReplicas, which would be 3: give --replicas or --max-replicas, too\n"},
		"it does not end": {times: 100, disturb: label, code: kube.ExitFailed, want: []size{{1, 1, 1}, {2, 1, 5}, {0, 0, most}},
			errOut: "Error: scale worker group g of RayCluster default/c: somebody changed it at the same time: try again\n"},
	} {
		t.Run(name, func(t *testing.T) {
			// Given somebody else who writes
			k := clitest.New(cluster())
			disturbed(k, c.times, c.disturb)

			// When a group is scaled, then what was written meanwhile counts
			code := k.Run(t, New, "cluster", "c", "-w", "g", "-r", "4")
			if diff := cmp.Diff([]string{c.out, c.errOut}, []string{k.Out.String(), k.ErrOut.String()}); diff != "" || code != c.code {
				t.Errorf("exit code %d, want %d (-want +got):\n%s", code, c.code, diff)
			}
			if diff := cmp.Diff(c.want, sizes(t, k), cmp.AllowUnexported(size{})); diff != "" {
				t.Errorf("sizes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFieldManager(t *testing.T) {
	k := clitest.New(cluster())
	k.Run(t, New, "cluster", "c", "-w", "g", "-r", "4")
	c := &rayv1.RayCluster{}
	if err := k.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "c"}, c); err != nil {
		t.Fatal(err)
	}
	for _, entry := range c.ManagedFields {
		if entry.Manager == kube.FieldManager {
			return
		}
	}
	t.Errorf("no field is managed by %s: %v", kube.FieldManager, c.ManagedFields)
}

func TestCompletion(t *testing.T) {
	second := cluster()
	second.Name, second.Spec.WorkerGroupSpecs = "d", second.Spec.WorkerGroupSpecs[:1]
	for name, c := range map[string]struct{ args, want string }{
		// cobra reminds of flags that must be given.
		"cluster":               {"cluster |", "--worker-group\tName of the worker group. It must be given.\n-w\tName of the worker group. It must be given.\nc\nd\n:4\n"},
		"groups of the cluster": {"cluster d -w |", "other\n:4\n"},
		"groups of all":         {"cluster -w |", "g\nother\nplain\n:4\n"},
	} {
		t.Run(name, func(t *testing.T) {
			k := clitest.New(cluster(), second.DeepCopy())
			args := strings.Fields(c.args)
			args[len(args)-1] = ""
			if diff := cmp.Diff(c.want, k.Complete(t, New, args...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
