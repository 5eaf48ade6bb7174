package chart

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	operator "github.com/heliostat-io/heliostat/internal/rights"
)

// operatorRights are all rights of the operator with default values. Whoever adds one says in the chart's README what it
// is for.
func operatorRights() []string {
	return []string{
		"/events: get list watch",
		"/persistentvolumeclaims: create get list patch watch",
		"/pods/resize: patch",
		"/pods: create delete get list patch watch",
		"/secrets: create delete get list watch",
		"/serviceaccounts: create delete get list patch watch",
		"/services: create delete get list patch watch",
		"batch/jobs: create delete get list watch",
		"discovery.k8s.io/endpointslices: get list watch",
		"events.k8s.io/events: create patch",
		"gateway.networking.k8s.io/gateways: create delete get list patch watch",
		"gateway.networking.k8s.io/httproutes: create delete get list patch watch",
		"networking.k8s.io/ingresses: create delete get list patch watch",
		"policy/poddisruptionbudgets: create delete get list patch watch",
		"ray.io/rayclusters/finalizers: update",
		"ray.io/rayclusters/status: patch",
		"ray.io/rayclusters: create delete get list patch watch",
		"ray.io/raycronjobs/finalizers: update",
		"ray.io/raycronjobs/status: patch",
		"ray.io/raycronjobs: get list watch",
		"ray.io/rayjobs/finalizers: update",
		"ray.io/rayjobs/status: patch",
		"ray.io/rayjobs: create delete get list patch watch",
		"ray.io/rayservices/finalizers: update",
		"ray.io/rayservices/status: patch",
		"ray.io/rayservices: get list patch watch",
		"apps/controllerrevisions: create delete get list watch",
		"rbac.authorization.k8s.io/rolebindings: create delete get list patch watch",
		"rbac.authorization.k8s.io/roles: create delete get list patch watch",
		"route.openshift.io/routes: create delete get list patch watch",
	}
}

// proxyRights are added when dashboards are reached through the API server.
func proxyRights() []string {
	return []string{"/pods/proxy: get", "/services/proxy: create get update"}
}

// leaseRights hold in the namespace of the release only.
func leaseRights() []string {
	return []string{
		"coordination.k8s.io/leases: create",
		"coordination.k8s.io/leases[ray-operator-leader]: get update",
		"events.k8s.io/events: create patch",
	}
}

// fenceRights hold in the whole cluster, for the Holder of this installation only.
func fenceRights() []string {
	return []string{
		"heliostat.io/holders/status[ray-system]: update",
		"heliostat.io/holders: create",
		"heliostat.io/holders[ray-system]: get update",
	}
}

func sorted(lists ...[]string) []string {
	all := slices.Concat(lists...)
	slices.Sort(all)
	return all
}

func TestRightsAreExactlyThese(t *testing.T) {
	cases := map[string]struct {
		values string
		role   string
		want   []string
	}{
		"given nothing, in the cluster":            {role: "ClusterRole/kuberay-operator", want: sorted(operatorRights())},
		"given a single namespace, in the release": {values: "singleNamespaceInstall: true", role: "Role/ray-system/kuberay-operator", want: sorted(operatorRights())},
		"given watched namespaces, in each": {
			values: "{singleNamespaceInstall: true, watchNamespace: [a, b]}", role: "Role/b/kuberay-operator", want: sorted(operatorRights()),
		},
		"given the API server as a proxy, in the cluster": {
			values: "useKubernetesProxy: true", role: "ClusterRole/kuberay-operator", want: sorted(operatorRights(), proxyRights()),
		},
		"given the API server as a proxy, in a namespace": {
			values: "{useKubernetesProxy: true, singleNamespaceInstall: true}", role: "Role/ray-system/kuberay-operator",
			want: sorted(operatorRights(), proxyRights()),
		},
		"given nothing, for leader election": {
			role: "Role/ray-system/kuberay-operator-leader-election", want: sorted(leaseRights()),
		},
		"given nothing, for the fence": {role: "ClusterRole/ray-system-kuberay-operator-fence", want: sorted(fenceRights())},
		"given nothing, for editors of RayClusters": {
			role: "ClusterRole/raycluster-editor-role",
			want: []string{"ray.io/rayclusters/status: get", "ray.io/rayclusters: create delete get list patch update watch"},
		},
		"given nothing, for viewers of RayCronJobs": {
			role: "ClusterRole/raycronjob-viewer-role",
			want: []string{"ray.io/raycronjobs/status: get", "ray.io/raycronjobs: get list watch"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var role rbacv1.ClusterRole // a Role has the same fields that count here
			render(t, tc.values).into(t, tc.role, &role)
			if d := cmp.Diff(tc.want, rights(role.Rules)); d != "" {
				t.Errorf("rights (-want +got):\n%s", d)
			}
		})
	}
}

// TestTheOperatorAsksForWhatTheChartGrants compares the list by which the operator and the plugin ask for rights with the roles of the
// chart: all that can be in use is granted, and nothing is granted that nobody asks for.
func TestTheOperatorAsksForWhatTheChartGrants(t *testing.T) {
	lease := operator.Lease{Namespace: releaseNamespace, Name: "ray-operator-leader"}
	all := operator.Use{Home: releaseNamespace, Lease: lease, Fence: true, Proxy: true, CronJobs: true, Gateways: true, Routes: true}
	less := func(change func(*operator.Use)) operator.Use {
		use := all
		change(&use)
		return use
	}
	const proxy = "useKubernetesProxy: true"
	for name, tc := range map[string]struct {
		values string
		use    operator.Use
		// unasked are granted and not asked for, because the chart does not know what is in use.
		unasked int
	}{
		"given everything":      {proxy, all, 0},
		"given no proxy":        {"", less(func(use *operator.Use) { use.Proxy = false }), 0},
		"given no RayCronJobs":  {proxy, less(func(use *operator.Use) { use.CronJobs = false }), 5},
		"given no Gateway API":  {proxy, less(func(use *operator.Use) { use.Gateways = false }), 12},
		"given no OpenShift":    {proxy, less(func(use *operator.Use) { use.Routes = false }), 6},
		"given no fence needed": {proxy, less(func(use *operator.Use) { use.Fence = false }), 4},
		"given two namespaces": {"{singleNamespaceInstall: true, watchNamespace: [a, b], fencing: required, " + proxy + "}",
			less(func(use *operator.Use) { use.Namespaces = []string{"a", "b"} }), 0},
	} {
		t.Run(name, func(t *testing.T) {
			granted := map[operator.Right]bool{}
			for _, right := range grantedBy(t, render(t, tc.values)) {
				granted[right] = true
			}
			for _, right := range operator.Needed(tc.use) {
				if !granted[right] {
					t.Errorf("the chart does not let it %s", right)
				}
				delete(granted, right)
			}
			if len(granted) != tc.unasked {
				t.Errorf("%d rights are granted and not asked for, want %d: %v", len(granted), tc.unasked, granted)
			}
		})
	}
}

// grantedBy are the single rights that the roles of the operator give, without those for a namespace that hold in all.
func grantedBy(t *testing.T, r rendered) []operator.Right {
	t.Helper()
	var all []operator.Right
	for _, object := range r.objects {
		if object.GetKind() != "ClusterRole" && object.GetKind() != "Role" || !strings.Contains(object.GetName(), "kuberay-operator") {
			continue
		}
		var role rbacv1.ClusterRole // a Role has the same fields that count here
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			all = append(all, single(rule, object.GetNamespace())...)
		}
	}
	return slices.DeleteFunc(all, func(right operator.Right) bool {
		everywhere := right
		everywhere.Namespace = ""
		return right.Namespace != "" && slices.Contains(all, everywhere)
	})
}

func single(rule rbacv1.PolicyRule, namespace string) []operator.Right {
	var all []operator.Right
	for _, verb := range rule.Verbs {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				right := operator.Right{Verb: verb, Group: group, Resource: resource, Namespace: namespace}
				if len(rule.ResourceNames) > 0 {
					right.Name = rule.ResourceNames[0]
				}
				all = append(all, right)
			}
		}
	}
	return all
}

func TestBindingsNameTheServiceAccount(t *testing.T) {
	cases := map[string]struct {
		values  string
		binding string
		want    rbacv1.RoleRef
	}{
		"given nothing": {
			values: "serviceAccount: {name: sa}", binding: "ClusterRoleBinding/kuberay-operator",
			want: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "kuberay-operator"},
		},
		"given another namespace": {
			values: "{singleNamespaceInstall: true, watchNamespace: [a], serviceAccount: {name: sa}}", binding: "RoleBinding/a/kuberay-operator",
			want: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "kuberay-operator"},
		},
		"given leader election": {
			values: "serviceAccount: {name: sa}", binding: "RoleBinding/ray-system/kuberay-operator-leader-election",
			want: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "kuberay-operator-leader-election"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var binding rbacv1.ClusterRoleBinding
			render(t, tc.values).into(t, tc.binding, &binding)
			if d := cmp.Diff(tc.want, binding.RoleRef); d != "" {
				t.Errorf("role (-want +got):\n%s", d)
			}
			want := []rbacv1.Subject{{Kind: "ServiceAccount", Name: "sa", Namespace: releaseNamespace}}
			if d := cmp.Diff(want, binding.Subjects); d != "" {
				t.Errorf("subjects (-want +got):\n%s", d)
			}
		})
	}
}

// TestReadmeExplainsEveryRight compares the table of rights in the README with what the chart grants.
func TestReadmeExplainsEveryRight(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(chartPath, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| `([^`]*)` \\| `([^`]+)` \\| `([a-z ]+)` \\| (.+) \\|$")
	var documented []string
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		group := m[1]
		if group == "core" {
			group = ""
		}
		documented = append(documented, group+"/"+m[2]+": "+m[3])
		if strings.TrimSpace(m[4]) == "" {
			t.Errorf("%s %s has no reason", m[1], m[2])
		}
	}
	if d := cmp.Diff(slices.Compact(sorted(operatorRights(), proxyRights(), leaseRights(), fenceRights())), sorted(documented)); d != "" {
		t.Errorf("table of rights in the README (-granted +documented):\n%s", d)
	}
}
