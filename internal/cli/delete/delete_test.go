package delete

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/clitest"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
)

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-of-" + name)}
}

// world has one object of each kind, all called a, and the cluster of the job.
func world() []client.Object {
	owned := &rayv1.RayCluster{ObjectMeta: meta("a-of-job")}
	owned.OwnerReferences = []metav1.OwnerReference{{Kind: "RayJob", Name: "a", UID: "uid-of-job", Controller: ptr.To(true)}}
	job := &rayv1.RayJob{ObjectMeta: meta("a")}
	job.UID = "uid-of-job"
	return []client.Object{&rayv1.RayCluster{ObjectMeta: meta("a")}, job, &rayv1.RayService{ObjectMeta: meta("a")},
		&rayv1.RayCronJob{ObjectMeta: meta("a")}, owned}
}

// left are the objects that exist, as TYPE/NAME.
func left(t *testing.T, k *clitest.Kube) []string {
	t.Helper()
	var names []string
	for _, kind := range kube.Kinds() {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(rayv1.GroupVersion.WithKind(string(kind) + "List"))
		if err := k.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		for _, item := range list.Items {
			names = append(names, strings.ToLower(string(kind))+"/"+item.Name)
		}
	}
	return names
}

func TestDelete(t *testing.T) {
	all := []string{"raycluster/a", "raycluster/a-of-job", "rayjob/a", "rayservice/a", "raycronjob/a"}
	without := func(gone ...string) []string {
		var rest []string
		for _, name := range all {
			if !strings.Contains(" "+strings.Join(gone, " ")+" ", " "+name+" ") {
				rest = append(rest, name)
			}
		}
		return rest
	}
	for name, c := range map[string]struct {
		args   string
		typed  string
		code   int
		out    string
		errOut string
		left   []string
	}{
		"a name alone is a cluster's": {args: "a -y", out: "Deleted RayCluster default/a\n", left: without("raycluster/a")},
		"each type": {args: "--yes rayjob/a rayservice/a RayCronJob/a rayclusters.ray.io/a",
			out:  "Deleted RayJob default/a\nDeleted RayService default/a\nDeleted RayCronJob default/a\nDeleted RayCluster default/a\n",
			left: without("raycluster/a", "rayjob/a", "rayservice/a", "raycronjob/a")},
		"named twice": {args: "a cluster/a -y", out: "Deleted RayCluster default/a\n", left: without("raycluster/a")},
		"the answer is y": {args: "rayjob/a", typed: "y\n", out: "Deleted RayJob default/a\n",
			errOut: "Delete RayJob default/a? (y/yes/n/no) ", left: without("rayjob/a")},
		"the answer is YES": {args: "a rayjob/a", typed: " YES \n", out: "Deleted RayCluster default/a\nDeleted RayJob default/a\n",
			errOut: "Delete RayCluster default/a, RayJob default/a? (y/yes/n/no) ", left: without("raycluster/a", "rayjob/a")},
		"the answer is no": {args: "a", typed: "no\n",
			errOut: "Delete RayCluster default/a? (y/yes/n/no) Nothing was deleted.\n", left: all},
		"asked again": {args: "a", typed: "maybe\n\nn\n", left: all,
			errOut: strings.Repeat("Delete RayCluster default/a? (y/yes/n/no) ", 3) + "Nothing was deleted.\n"},
		"no answer": {args: "a", code: 1, left: all,
			errOut: "Delete RayCluster default/a? (y/yes/n/no) Error: nobody answered, so nothing was deleted: answer y or n, or give --yes\n"},
		"one of them is missing": {args: "a rayjob/b rayservice/c -y", code: 1, left: all,
			errOut: "Error: no RayJob \"b\" in namespace \"default\"\nno RayService \"c\" in namespace \"default\"\n"},
		"another type of that name does not count": {args: "b -y", code: 1, left: all, errOut: "Error: no RayCluster \"b\" in namespace \"default\"\n"},
		"unknown type": {args: "pod/a -y", code: 1, left: all,
			errOut: "Error: type \"pod\" is unknown: it must be raycluster, rayjob, rayservice or raycronjob\n"},
		"nothing named": {args: "-y", code: 2, left: all, errOut: "Error: requires at least 1 arg(s), only received 0\n"},
		"its owner would make it anew": {args: "a-of-job -y", out: "Deleted RayCluster default/a-of-job\n",
			errOut: "Warning: RayCluster default/a-of-job belongs to RayJob a, which may make it anew.\n", left: without("raycluster/a-of-job")},
		"together with its owner": {args: "a-of-job rayjob/a -y", out: "Deleted RayCluster default/a-of-job\nDeleted RayJob default/a\n",
			left: without("raycluster/a-of-job", "rayjob/a")},
	} {
		t.Run(name, func(t *testing.T) {
			k := clitest.New(world()...)
			k.In.WriteString(c.typed)
			code := k.Run(t, New, strings.Fields(c.args)...)
			if code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			if diff := cmp.Diff([]string{c.out, c.errOut}, []string{k.Out.String(), k.ErrOut.String()}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.left, left(t, k)); diff != "" {
				t.Errorf("what is left (-want +got):\n%s", diff)
			}
		})
	}
}

func TestErrorsAreCollected(t *testing.T) {
	// Given an API server that refuses to delete the job
	k := clitest.New(world()...)
	refusing := interceptor.NewClient(k.WithWatch, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			deletion := (&client.DeleteOptions{}).ApplyOptions(options)
			if deletion.Preconditions == nil || deletion.Preconditions.UID == nil || *deletion.Preconditions.UID != object.GetUID() {
				return errors.New("the UID is missing")
			}
			if object.GetObjectKind().GroupVersionKind().Kind == "RayJob" {
				return errors.New("not today")
			}
			return c.Delete(ctx, object)
		},
	})
	k.Env.Client = func() (client.WithWatch, error) { return refusing, nil }

	// When the job and something else are deleted
	code := k.Run(t, New, "-y", "rayjob/a", "rayservice/a")

	// Then the other is gone, and the error is told
	if code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	want := []string{"Deleted RayService default/a\n", "Error: delete RayJob default/a: not today\n"}
	if diff := cmp.Diff(want, []string{k.Out.String(), k.ErrOut.String()}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCompletion(t *testing.T) {
	k := clitest.New(world()...)
	got := k.Complete(t, New, "a", "rayjob/a", "")
	if diff := cmp.Diff("a-of-job\nrayservice/a\nraycronjob/a\n:4\n", got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
