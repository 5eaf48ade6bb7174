package check

import (
	"context"
	"errors"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/heliostat-io/heliostat/internal/cli/clitest"
)

// allowing answers access reviews: all is allowed but the one verb.
func allowing(k *clitest.Kube, but string) {
	c := interceptor.NewClient(k.WithWatch, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			review, ok := object.(*authorizationv1.SelfSubjectAccessReview)
			if !ok {
				return c.Create(ctx, object, options...)
			}
			review.Status.Allowed = review.Spec.ResourceAttributes.Verb != but
			return nil
		},
	})
	k.Env.Client = func() (client.WithWatch, error) { return c, nil }
}

func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		world []string
		but   string
		code  int
		says  []string
	}{
		"an operator that leads": {world: []string{"degraded"}, code: 0, says: []string{
			"heliostat-system/heliostat: 1 of 1 replicas available, image registry.example/heliostat:v0.1.0",
			"heliostat-system/ray-operator-leader is held by heliostat-1", "in namespace default you may get rayclusters"}},
		"a user who may not create": {world: []string{"degraded"}, but: "create", code: 0, says: []string{"you may not create rayclusters, create pods/portforward"}},
		"no operator":               {code: 1, says: []string{"no Deployment of Heliostat or KubeRay in any namespace"}},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			for _, world := range tc.world {
				objects = append(objects, clitest.Load(t, world)...)
			}
			k := clitest.New(objects...)
			allowing(k, tc.but)
			if code := k.Run(t, New); code != tc.code {
				t.Errorf("exit code %d, want %d: %s%s", code, tc.code, k.Out, k.ErrOut)
			}
			for _, want := range tc.says {
				if !strings.Contains(k.Out.String(), want) {
					t.Errorf("it said\n%s\nwant %q", k.Out, want)
				}
			}
		})
	}
}

// TestCheckThatCannotLook: an API server that does not answer is no good news.
func TestCheckThatCannotLook(t *testing.T) {
	k := clitest.New()
	c := interceptor.NewClient(k.WithWatch, interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("connection refused")
		},
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return errors.New("connection refused")
		},
	})
	k.Env.Client = func() (client.WithWatch, error) { return c, nil }
	if code := k.Run(t, New); code != 2 {
		t.Errorf("exit code %d, want 2: %s%s", code, k.Out, k.ErrOut)
	}
}
