package check

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/heliostat-io/heliostat/internal/cli/clitest"
)

// allowing answers access reviews: all is allowed but the one verb, and of the operator's account one verb on Pods. Where may is an
// error, the user may not ask for others.
func allowing(k *clitest.Kube, but, operatorBut string, may error) {
	c := interceptor.NewClient(k.WithWatch, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			switch review := object.(type) {
			case *authorizationv1.SelfSubjectAccessReview:
				review.Status.Allowed = review.Spec.ResourceAttributes.Verb != but
				return nil
			case *authorizationv1.SubjectAccessReview:
				asked := review.Spec.ResourceAttributes
				of := review.Spec.User == "system:serviceaccount:heliostat-system:heliostat" && slices.Contains(review.Spec.Groups, "system:serviceaccounts:heliostat-system")
				review.Status.Allowed = of && (asked.Resource != "pods" || asked.Verb != operatorBut)
				return may
			}
			return c.Create(ctx, object, options...)
		},
	})
	k.Env.Client = func() (client.WithWatch, error) { return c, nil }
}

func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		world       []string
		but         string
		operatorBut string
		may         error
		code        int
		says        []string
	}{
		"an operator that leads": {world: []string{"degraded"}, code: 0, says: []string{
			"heliostat-system/heliostat: 1 of 1 replicas available, image registry.example/heliostat:v0.1.0",
			"heliostat-system/ray-operator-leader is held by heliostat-1", "it may do all that it needs", "in namespace default you may get rayclusters"}},
		"a user who may not create": {world: []string{"degraded"}, but: "create", code: 0, says: []string{"you may not create rayclusters, create pods/portforward"}},
		"an operator that may not make Pods": {world: []string{"degraded"}, operatorBut: "create", code: 1, says: []string{
			"it may not create pods in all namespaces", "operator-forbidden: Deployment heliostat-system/heliostat",
			"--as=system:serviceaccount:heliostat-system:heliostat"}},
		"a user who may not ask for others": {world: []string{"degraded"}, may: errors.New("not you"), code: 0, says: []string{"operator's rights   unknown   what it may do is not known", "not you"}},
		"no operator":                       {code: 1, says: []string{"no Deployment of Heliostat or KubeRay in any namespace"}},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			for _, world := range tc.world {
				objects = append(objects, clitest.Load(t, world)...)
			}
			k := clitest.New(objects...)
			allowing(k, tc.but, tc.operatorBut, tc.may)
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

// TestALeaseThatNobodyRenews is judged as the rules judge it.
func TestALeaseThatNobodyRenews(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*coordinationv1.LeaseSpec)
		code   int
		says   string
	}{
		"given its holder is gone": {func(l *coordinationv1.LeaseSpec) {
			l.RenewTime = ptr.To(metav1.NewMicroTime(clitest.Now().Add(-time.Hour)))
		}, 1, "nobody renews Lease"},
		"given its holder has let go": {func(l *coordinationv1.LeaseSpec) { l.HolderIdentity = nil }, 0, "which was released just now"},
		"given its holder is new again": {func(l *coordinationv1.LeaseSpec) {
			l.AcquireTime, l.LeaseTransitions = ptr.To(metav1.NewMicroTime(clitest.Now().Add(-time.Minute))), ptr.To[int32](500)
		}, 1, "changes hands again and again"},
	} {
		t.Run(name, func(t *testing.T) {
			objects := clitest.Load(t, "degraded")
			for _, object := range objects {
				if lease, ok := object.(*coordinationv1.Lease); ok {
					lease.CreationTimestamp = metav1.NewTime(clitest.Now().Add(-24 * time.Hour))
					tc.change(&lease.Spec)
				}
			}
			k := clitest.New(objects...)
			allowing(k, "", "", nil)
			if code := k.Run(t, New); code != tc.code || !strings.Contains(k.Out.String(), tc.says) {
				t.Errorf("exit code %d, want %d, and %q in\n%s%s", code, tc.code, tc.says, k.Out, k.ErrOut)
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
