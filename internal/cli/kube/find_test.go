package kube_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/heliostat-io/heliostat/internal/cli/clitest"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
)

// named is an object of a kind.
func named(kind kube.Kind, name string) client.Object {
	object := kind.New()
	object.SetNamespace("default")
	object.SetName(name)
	return object
}

// failing makes reads of some kinds fail.
func failing(c client.WithWatch, failures map[kube.Kind]error) client.Reader {
	return interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			for kind, err := range failures {
				if fmt.Sprintf("%T", object) == fmt.Sprintf("%T", kind.New()) {
					return err
				}
			}
			return c.Get(ctx, key, object, options...)
		},
	})
}

func TestFind(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "ray.io", Resource: "things"}, "x", errors.New("not you"))
	broken := errors.New("connection refused")
	unserved := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "ray.io", Kind: "RayCronJob"}}
	const readable = "things.ray.io \"x\" is forbidden: not you"
	for name, c := range map[string]struct {
		argument string
		kinds    []kube.Kind
		failures map[kube.Kind]error
		// want is the kind that is found, or empty.
		want kube.Kind
		// err is what is said else, and absent whether that means that there is no such object.
		err    string
		absent bool
	}{
		"a cluster comes first":      {argument: "x", kinds: kube.Kinds(), want: kube.RayCluster},
		"the only one of that name":  {argument: "x", kinds: []kube.Kind{kube.RayService}, want: kube.RayService},
		"a type is taken as it is":   {argument: "service/x", kinds: kube.Kinds(), want: kube.RayService},
		"none of that type":          {argument: "job/x", kinds: []kube.Kind{kube.RayCluster}, err: `no RayJob "x" in namespace "default"`, absent: true},
		"none at all":                {argument: "x", err: `no RayCluster, RayJob, RayService or RayCronJob "x" in namespace "default"`, absent: true},
		"two of that name":           {argument: "x", kinds: []kube.Kind{kube.RayJob, kube.RayCronJob}, err: `"x" in namespace "default" may be one of several objects: write rayjob/x or raycronjob/x`},
		"the API has no such kind":   {argument: "x", failures: map[kube.Kind]error{kube.RayCronJob: unserved}, err: `no RayCluster, RayJob, RayService or RayCronJob "x" in namespace "default"`, absent: true},
		"the API is not installed":   {argument: "x", failures: map[kube.Kind]error{kube.RayCluster: unserved}, err: "read RayCluster default/x: " + unserved.Error()},
		"one may not be read":        {argument: "x", kinds: []kube.Kind{kube.RayService}, failures: map[kube.Kind]error{kube.RayJob: forbidden}, want: kube.RayService},
		"clusters may not be read":   {argument: "x", kinds: []kube.Kind{kube.RayJob}, failures: map[kube.Kind]error{kube.RayCluster: forbidden}, want: kube.RayJob},
		"that type may not be read":  {argument: "job/x", failures: map[kube.Kind]error{kube.RayJob: forbidden}, err: "read RayJob default/x: " + readable},
		"it may be where none looks": {argument: "x", failures: map[kube.Kind]error{kube.RayJob: forbidden}, err: `no RayCluster, RayService or RayCronJob "x" in namespace "default", and other kinds may not be read: read RayJob default/x: ` + readable},
		"nothing may be read": {argument: "x",
			failures: map[kube.Kind]error{kube.RayCluster: forbidden, kube.RayJob: forbidden, kube.RayService: forbidden, kube.RayCronJob: forbidden},
			err: "read RayCluster default/x: " + readable + "\nread RayJob default/x: " + readable +
				"\nread RayService default/x: " + readable + "\nread RayCronJob default/x: " + readable},
		"another trouble": {argument: "x", kinds: []kube.Kind{kube.RayService}, failures: map[kube.Kind]error{kube.RayJob: broken}, err: "read RayJob default/x: connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			for _, kind := range c.kinds {
				objects = append(objects, named(kind, "x"))
			}
			object, target, err := kube.Find(t.Context(), failing(clitest.New(objects...), c.failures), "default", c.argument)
			if c.want == "" {
				if err == nil || err.Error() != c.err || errors.Is(err, kube.ErrNotFound) != c.absent {
					t.Errorf("error %v, want %s; not found: %v, want %v", err, c.err, errors.Is(err, kube.ErrNotFound), c.absent)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if target.Kind != c.want || object.GetName() != "x" || fmt.Sprintf("%T", object) != fmt.Sprintf("%T", c.want.New()) {
				t.Errorf("found %s, a %T, want a %s", target, object, c.want)
			}
		})
	}
}

func TestErrorsOfFindKeepTheirCause(t *testing.T) {
	// Given a kind that may not be read
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "ray.io", Resource: "rayjobs"}, "x", errors.New("not you"))
	reader := failing(clitest.New(), map[kube.Kind]error{kube.RayJob: forbidden})

	// When nothing is found elsewhere
	_, _, err := kube.Find(t.Context(), reader, metav1.NamespaceDefault, "x")

	// Then callers can tell why
	if !apierrors.IsForbidden(err) {
		t.Errorf("the error %v is not that of the API server", err)
	}
}
