package action

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestAMissingRightIsToldWithWhoMustGrantIt(t *testing.T) {
	const mustAllow = "the operator's ClusterRole, or its Role in namespace ns must allow it: kubectl auth can-i create pods -n ns --as=u"
	forbidden := func(text string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New(text))
	}
	for name, tc := range map[string]struct {
		err    error
		denied int
	}{
		"given a right is missing":  {forbidden(`User "u" cannot create resource "pods" in API group "" in the namespace "ns"`), 1},
		"given a quota is exceeded": {forbidden("exceeded quota: q"), 0},
		"given another error":       {errors.New(`User "u" cannot create resource "pods" in API group "" in the namespace "ns"`), 0},
	} {
		t.Run(name, func(t *testing.T) {
			pod := owned("u1", "1")
			e, recorder := executor(nil, interceptor.Funcs{
				Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return tc.err },
				SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
					return tc.err
				},
			})
			denied := 0
			e.Denied = func() { denied++ }
			plan := Plan{Actions: []Action{Create{Object: pod, Group: "a", Failed: Warning("FailedToDoIt", "Do", "it did not work")}}}
			result, err := e.Run(t.Context(), pod, plan)
			if err != nil || denied != tc.denied {
				t.Errorf("got %v; a missing right was noticed %d times, want %d", err, denied, tc.denied)
			}
			holds := NewHolds()
			holds.Record("u1", plan, result, time.Now())
			if said := strings.HasSuffix(holds.Of("u1")["a"].Message, mustAllow); said != (tc.denied > 0) {
				t.Errorf("what is held back says %q", holds.Of("u1")["a"].Message)
			}
			drain(recorder)

			_, err = e.Run(t.Context(), pod, Plan{Status: &StatusWrite{Object: pod, Base: pod}})
			events := drain(recorder)
			if err == nil || denied != 2*tc.denied || len(events) != tc.denied {
				t.Errorf("a refused status: got %v, noticed %d times, events %v", err, denied, events)
			}
			for _, event := range events {
				if !strings.Contains(event, "FailedToWriteStatus") || !strings.HasSuffix(event, mustAllow) {
					t.Errorf("the event says %q", event)
				}
			}
		})
	}
}
