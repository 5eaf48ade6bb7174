package action

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestCreatesOfOneKeyBeginSlowly(t *testing.T) {
	for name, tc := range map[string]struct {
		// refusedAfter is how many Pods there is room for.
		refusedAfter int64
		// most is how many requests may be made for 100 Pods.
		most int64
	}{
		"nothing is admitted": {refusedAfter: 0, most: 1},
		"two are admitted":    {refusedAfter: 2, most: 3},
		"ten are admitted":    {refusedAfter: 10, most: 15},
		"all of them go in":   {refusedAfter: 100, most: 100},
	} {
		t.Run(name, func(t *testing.T) {
			var asked, made atomic.Int64
			e, _ := executor(nil, interceptor.Funcs{Create: func(ctx context.Context, api client.WithWatch, object client.Object, options ...client.CreateOption) error {
				asked.Add(1)
				if made.Add(1) > tc.refusedAfter {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "p", errors.New("exceeded quota"))
				}
				return api.Create(ctx, object, options...)
			}})
			plan := Plan{}
			for i := range 100 {
				pod := owned("u1", "1")
				pod.Name = fmt.Sprint("p", i)
				plan.Actions = append(plan.Actions, Create{Object: pod, Group: "a"})
			}
			result, err := e.Run(t.Context(), &corev1.Pod{}, plan)
			if err != nil {
				t.Fatal(err)
			}
			if got := asked.Load(); got > tc.most {
				t.Errorf("%d requests were made, want at most %d", got, tc.most)
			}
			if got := int64(100 - len(result.Failures)); got != min(tc.refusedAfter, 100) {
				t.Errorf("%d Pods were made, want %d", got, tc.refusedAfter)
			}
		})
	}
}
