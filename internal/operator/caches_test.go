package operator

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/config"
)

// The memory of the operator, and what a reader of it would find, must not grow with what is not Ray's.
func TestCachesAreNarrow(t *testing.T) {
	options, err := cacheOptions(config.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		object  client.Object
		labels  labels.Set
		visible bool
	}{
		"a Secret of anybody":          {object: &corev1.Secret{}, labels: labels.Set{"app": "shop"}},
		"a Secret of a RayCluster":     {object: &corev1.Secret{}, labels: labels.Set{rayv1.LabelCluster: "demo"}, visible: true},
		"a Role of anybody":            {object: &rbacv1.Role{}, labels: labels.Set{}},
		"an Ingress of anybody":        {object: &networkingv1.Ingress{}, labels: labels.Set{}},
		"a Pod of anybody":             {object: &corev1.Pod{}, labels: labels.Set{}},
		"a slice of anybody's Service": {object: &discoveryv1.EndpointSlice{}, labels: labels.Set{discoveryv1.LabelServiceName: "shop"}},
		"a slice of a Service that leads to Serve": {
			object: &discoveryv1.EndpointSlice{}, labels: labels.Set{discoveryv1.LabelServiceName: "chat-serve-svc", rayv1.LabelServe: "chat-serve"}, visible: true,
		},
		"a worker Pod": {object: &corev1.Pod{}, labels: labels.Set{rayv1.LabelNodeType: rayv1.NodeTypeWorker}, visible: true},
	} {
		t.Run(name, func(t *testing.T) {
			for object, by := range options.ByObject {
				if kindOf(object) == kindOf(tc.object) && by.Label.Matches(tc.labels) != tc.visible {
					t.Errorf("kept in memory: %v, want %v", !tc.visible, tc.visible)
				}
			}
		})
	}
	for object, by := range options.ByObject {
		if kindOf(object) != kindOf(&corev1.ServiceAccount{}) {
			continue
		}
		kept, err := by.Transform(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Secrets: []corev1.ObjectReference{{Name: "s"}}})
		if err != nil || len(kept.(*corev1.ServiceAccount).Secrets) > 0 || kept.(*corev1.ServiceAccount).Name != "a" {
			t.Errorf("of a service account %+v is kept (%v), want no more than its identity", kept, err)
		}
	}
}

func kindOf(object client.Object) string { return fmt.Sprintf("%T", object) }
