package create

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/clitest"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
)

// whenWatched does something to the cluster as soon as somebody watches.
func whenWatched(k *clitest.Kube, do func(context.Context, client.WithWatch) error) {
	watched := interceptor.NewClient(k.WithWatch, interceptor.Funcs{
		Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
			opened, err := c.Watch(ctx, list, options...)
			if err != nil {
				return nil, err
			}
			return opened, do(ctx, c)
		},
	})
	k.Env.Client = func() (client.WithWatch, error) { return watched, nil }
}

func setStatus(ctx context.Context, c client.WithWatch, name string, status rayv1.RayClusterStatus) error {
	cluster := &rayv1.RayCluster{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, cluster); err != nil {
		return err
	}
	cluster.Status = status
	return c.Status().Update(ctx, cluster)
}

func condition(kind string, status metav1.ConditionStatus) rayv1.RayClusterStatus {
	return rayv1.RayClusterStatus{Conditions: []metav1.Condition{{
		Type: kind, Status: status, Reason: "Because", Message: "of this", LastTransitionTime: metav1.NewTime(clitest.Now())}}}
}

func TestWait(t *testing.T) {
	for name, c := range map[string]struct {
		do     func(context.Context, client.WithWatch) error
		args   string
		code   int
		out    string
		errOut string
	}{
		"provisioned": {
			do: func(ctx context.Context, c client.WithWatch) error {
				if err := setStatus(ctx, c, "c", condition(rayv1.ConditionRayClusterProvisioned, metav1.ConditionFalse)); err != nil {
					return err
				}
				return setStatus(ctx, c, "c", condition(rayv1.ConditionRayClusterProvisioned, metav1.ConditionTrue))
			},
			out: "Created Ray cluster: c\nRay cluster c is provisioned\n",
		},
		"another cluster is provisioned first": {
			do: func(ctx context.Context, c client.WithWatch) error {
				if err := setStatus(ctx, c, "d", condition(rayv1.ConditionRayClusterProvisioned, metav1.ConditionTrue)); err != nil {
					return err
				}
				return c.Delete(ctx, &rayv1.RayCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c"}})
			},
			code: 1, out: "Created Ray cluster: c\n", errOut: "Error: wait for RayCluster default/c: somebody deleted it\n",
		},
		"stalled, which ends the waiting early": {
			do: func(ctx context.Context, c client.WithWatch) error {
				return setStatus(ctx, c, "c", condition(rayv1.ConditionStalled, metav1.ConditionTrue))
			},
			args: "--timeout 1h", code: kube.ExitFailed, out: "Created Ray cluster: c\n",
			errOut: "Error: wait for RayCluster default/c: it will not be provisioned unless something is changed: Stalled: Because: of this\n",
		},
		"time is over": {
			do:   func(context.Context, client.WithWatch) error { return nil },
			args: "--timeout 50ms", code: kube.ExitTimeout, out: "Created Ray cluster: c\n",
			errOut: "Error: RayCluster default/c is not provisioned after 50ms: no operator has said anything of it\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := clitest.New(&rayv1.RayCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "d"}})
			whenWatched(k, c.do)
			code := k.Run(t, New, append([]string{"cluster", "c", "--wait"}, strings.Fields(c.args)...)...)
			if code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			if diff := cmp.Diff([]string{c.out, c.errOut}, []string{k.Out.String(), k.ErrOut.String()}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWaitOutlivesItsWatch(t *testing.T) {
	expired := apierrors.NewResourceExpired("too old resource version")
	ended := func(events ...watch.Event) watch.Interface {
		changes := make(chan watch.Event, len(events))
		for _, event := range events {
			changes <- event
		}
		close(changes)
		return watch.NewProxyWatcher(changes)
	}
	for name, first := range map[string]struct {
		watch watch.Interface
		err   error
	}{
		"the API server forgot the version": {watch: ended(watch.Event{Type: watch.Error, Object: &expired.ErrStatus})},
		"it is refused because of that":     {err: expired},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// Given a watch that does not last, and a cluster that is provisioned when the next one is opened
			k := clitest.New()
			opened := 0
			unsteady := interceptor.NewClient(k.WithWatch, interceptor.Funcs{
				Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
					if opened++; opened == 1 {
						return first.watch, first.err
					}
					next, err := c.Watch(ctx, list, options...)
					if err != nil {
						return nil, err
					}
					return next, setStatus(ctx, c, "c", condition(rayv1.ConditionRayClusterProvisioned, metav1.ConditionTrue))
				},
			})
			k.Env.Client = func() (client.WithWatch, error) { return unsteady, nil }

			// When somebody waits for the cluster
			code := k.Run(t, New, "cluster", "c", "--wait")

			// Then they see it
			if want := "Created Ray cluster: c\nRay cluster c is provisioned\n"; code != 0 || k.Out.String() != want {
				t.Errorf("exit code %d, said %q and %q, want %q", code, k.Out, k.ErrOut, want)
			}
		})
	}
}

func TestWaitWithoutTheRightToWatch(t *testing.T) {
	// Given somebody who may create, and not watch
	k := clitest.New()
	refusing := interceptor.NewClient(k.WithWatch, interceptor.Funcs{
		Watch: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
			return nil, apierrors.NewForbidden(schema.GroupResource{Group: "ray.io", Resource: "rayclusters"}, "c", errors.New("not you"))
		},
	})
	k.Env.Client = func() (client.WithWatch, error) { return refusing, nil }

	// When they wait, then they are told at once
	code := k.Run(t, New, "cluster", "c", "--wait", "--timeout", "1h")
	want := "Error: wait for RayCluster default/c: watch RayCluster default/c: rayclusters.ray.io \"c\" is forbidden: not you\n"
	if code != kube.ExitFailed || k.ErrOut.String() != want {
		t.Errorf("exit code %d, said %q, want %q", code, k.ErrOut, want)
	}
}

func TestStalled(t *testing.T) {
	for name, c := range map[string]struct {
		generation, observed int64
		status               metav1.ConditionStatus
		want                 bool
	}{
		"it says so":               {1, 1, metav1.ConditionTrue, true},
		"it says the contrary":     {1, 1, metav1.ConditionFalse, false},
		"it spoke of a past spec":  {2, 1, metav1.ConditionTrue, false},
		"it does not say of which": {2, 0, metav1.ConditionTrue, true},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &rayv1.RayCluster{ObjectMeta: metav1.ObjectMeta{Generation: c.generation}, Status: condition(rayv1.ConditionStalled, c.status)}
			cluster.Status.ObservedGeneration = c.observed
			if got := stalled(cluster); got != c.want {
				t.Errorf("stalled: %v, want %v", got, c.want)
			}
		})
	}
}

func TestProvisioned(t *testing.T) {
	for name, c := range map[string]struct {
		status rayv1.RayClusterStatus
		want   bool
		why    string
	}{
		"nothing known":      {rayv1.RayClusterStatus{}, false, ": no operator has said anything of it"},
		"condition":          {condition(rayv1.ConditionRayClusterProvisioned, metav1.ConditionTrue), true, ""},
		"not yet":            {condition(rayv1.ConditionRayClusterProvisioned, metav1.ConditionFalse), false, ": RayClusterProvisioned is False: Because: of this"},
		"stalled":            {condition(rayv1.ConditionStalled, metav1.ConditionTrue), false, ": Stalled: Because: of this"},
		"cannot create Pods": {condition(rayv1.ConditionReplicaFailure, metav1.ConditionTrue), false, ": ReplicaFailure: Because: of this"},
		"head":               {condition(rayv1.ConditionHeadPodReady, metav1.ConditionUnknown), false, ": HeadPodReady is Unknown: Because: of this"},
		"old operator":       {rayv1.RayClusterStatus{State: rayv1.ClusterStateReady}, true, ""},
		"condition over state": {func() rayv1.RayClusterStatus {
			s := condition(rayv1.ConditionRayClusterProvisioned, metav1.ConditionFalse)
			s.State = rayv1.ClusterStateReady
			return s
		}(), false, ": RayClusterProvisioned is False: Because: of this"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &rayv1.RayCluster{Status: c.status}
			if got := provisioned(cluster); got != c.want {
				t.Errorf("provisioned: %v, want %v", got, c.want)
			}
			if got := because(cluster); got != c.why {
				t.Errorf("because %q, want %q", got, c.why)
			}
		})
	}
}
