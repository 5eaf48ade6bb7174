package harness

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// InstallGatewayAPI makes the API server serve the Gateway API. Only operators that are started afterwards use it.
func (c Cluster) InstallGatewayAPI(t testing.TB) {
	t.Helper()
	installed.Lock()
	defer installed.Unlock()
	key := "gateway API at " + c.REST.Host
	if installed.hosts[key] {
		return
	}
	find := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api")
	find.Dir = root(t)
	module, err := find.Output()
	if err != nil {
		t.Fatalf("find the module of the Gateway API: %v", err)
	}
	// Only what the operator uses: each kind costs the API server a while.
	crds := t.TempDir()
	for _, kind := range []string{"gateways", "httproutes"} {
		file := "gateway.networking.k8s.io_" + kind + ".yaml"
		text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(module)), "config", "crd", "standard", file))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(crds, file), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	installFrom(t, c.REST, crds)
	installed.hosts[key] = true
}

// Gateways plays an implementation of the Gateway API once: it takes up each Gateway and each HTTPRoute of the namespace in its
// present generation.
func (c Cluster) Gateways(t testing.TB, namespace string) {
	t.Helper()
	gateways, routes := &gatewayv1.GatewayList{}, &gatewayv1.HTTPRouteList{}
	for _, list := range []client.ObjectList{gateways, routes} {
		if err := c.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range gateways.Items {
		gateway := &gateways.Items[i]
		base := gateway.DeepCopy()
		isTrue(&gateway.Status.Conditions, gateway.Generation, string(gatewayv1.GatewayConditionAccepted), string(gatewayv1.GatewayConditionProgrammed))
		c.takeUp(t, gateway, base, equality.Semantic.DeepEqual(gateway.Status, base.Status))
	}
	for i := range routes.Items {
		route := &routes.Items[i]
		base := route.DeepCopy()
		if len(route.Status.Parents) != len(route.Spec.ParentRefs) {
			route.Status.Parents = make([]gatewayv1.RouteParentStatus, len(route.Spec.ParentRefs))
		}
		for j, parent := range route.Spec.ParentRefs {
			status := &route.Status.Parents[j]
			status.ParentRef, status.ControllerName = parent, "test.heliostat.io/gateways"
			isTrue(&status.Conditions, route.Generation, string(gatewayv1.RouteConditionAccepted), string(gatewayv1.RouteConditionResolvedRefs))
		}
		c.takeUp(t, route, base, equality.Semantic.DeepEqual(route.Status, base.Status))
	}
}

func isTrue(conditions *[]metav1.Condition, generation int64, kinds ...string) {
	for _, kind := range kinds {
		meta.SetStatusCondition(conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind, ObservedGeneration: generation})
	}
}

// takeUp writes the status, unless it is as it was. An object that is gone meanwhile is left alone.
func (c Cluster) takeUp(t testing.TB, object, base client.Object, same bool) {
	t.Helper()
	if same {
		return
	}
	if err := c.Status().Patch(t.Context(), object, client.MergeFrom(base)); client.IgnoreNotFound(err) != nil {
		t.Fatalf("take up %T %s: %v", object, object.GetName(), err)
	}
}
