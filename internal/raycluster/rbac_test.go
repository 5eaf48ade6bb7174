package raycluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

func TestAutoscalerRights(t *testing.T) {
	long := strings.Repeat("d", 53)
	for name, tc := range map[string]struct {
		cluster *rayv1.RayCluster
		head    *corev1.Pod
		// want are kind and name of the objects, and whom the binding binds.
		want []string
	}{
		"given no autoscaler, there are none": {cluster: demoCluster()},
		"given an autoscaler, it has an account of its own": {cluster: demoCluster(autoscaled()),
			want: []string{"Role demo", "RoleBinding demo of demo to demo", "ServiceAccount demo"}},
		"given an account of the user, it is bound": {
			cluster: demoCluster(autoscaled(), func(c *rayv1.RayCluster) { c.Spec.HeadGroupSpec.Template.Spec.ServiceAccountName = "mine" }),
			want:    []string{"Role demo", "RoleBinding demo of demo to mine"}},
		"given a head that runs under an earlier account, both are bound": {
			cluster: demoCluster(autoscaled()),
			head: headOf(demoCluster(autoscaled(), func(c *rayv1.RayCluster) {
				c.Spec.HeadGroupSpec.Template.Spec.ServiceAccountName = "mine"
			})), want: []string{"Role demo", "RoleBinding demo of demo to demo to mine", "ServiceAccount demo"}},
		"given a head without autoscaler, its account is not bound": {
			cluster: demoCluster(autoscaled()),
			head:    headOf(demoCluster(func(c *rayv1.RayCluster) { c.Spec.HeadGroupSpec.Template.Spec.ServiceAccountName = "mine" })),
			want:    []string{"Role demo", "RoleBinding demo of demo to demo", "ServiceAccount demo"}},
		"given a long name, all have the same short one": {
			cluster: demoCluster(autoscaled(), func(c *rayv1.RayCluster) { c.Name = long }),
			want: []string{"Role " + ShortName(long), "RoleBinding " + ShortName(long) + " of " + ShortName(long) + " to " + ShortName(long),
				"ServiceAccount " + ShortName(long)}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, object := range autoscalerRights(tc.cluster, tc.head) {
				text := kindOf(object) + " " + object.GetName()
				if binding, ok := object.(*rbacv1.RoleBinding); ok {
					text += " of " + binding.RoleRef.Name
					for _, subject := range binding.Subjects {
						text += " to " + subject.Name
					}
				}
				got = append(got, text)
				if object.GetNamespace() != "ml" || object.GetOwnerReferences()[0].UID != "u-1" || object.GetLabels()["ray.io/cluster"] != tc.cluster.Name {
					t.Errorf("%s does not belong to the cluster: %v", text, object)
				}
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("objects (-want +got):\n%s", d)
			}
		})
	}
}

func TestAutoscalerMayChangeItsOwnClusterOnly(t *testing.T) {
	role := autoscalerRights(demoCluster(autoscaled()), nil)[0].(*rbacv1.Role)
	want := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch", "patch"}},
		{APIGroups: []string{""}, Resources: []string{"pods/resize"}, Verbs: []string{"patch"}},
		{APIGroups: []string{"ray.io"}, Resources: []string{"rayclusters"}, ResourceNames: []string{"demo"}, Verbs: []string{"get", "patch"}},
	}
	if d := cmp.Diff(want, role.Rules); d != "" {
		t.Errorf("rules (-want +got):\n%s", d)
	}
}

func TestTheHeadWaitsForItsAccount(t *testing.T) {
	w := demo(func(w *world) { autoscaled()(w.Cluster) })
	if first := w.pass(planNow); slices.Contains(first, "create head") || !slices.Contains(first, "create a/0") {
		t.Errorf("the first pass does %v, want all but the head", first)
	}
	if second := w.pass(planNow); !cmp.Equal(second, []string{"create head"}) {
		t.Errorf("the second pass does %v, want the head", second)
	}
}

func TestAMissingAccountIsToldOnce(t *testing.T) {
	mine := func(w *world) {
		autoscaled()(w.Cluster)
		w.Cluster.Spec.HeadGroupSpec.Template.Spec.ServiceAccountName = "mine"
	}
	account := &corev1.ServiceAccount{}
	account.Name = "mine"
	told := func(w *world) int {
		count := 0
		for _, event := range Plan(w.Snapshot, w.settings, planNow).Events {
			if event.Reason == "AutoscalerServiceAccountNotFound" {
				count++
			}
		}
		return count
	}

	w := demo(mine)
	if told(w) != 1 {
		t.Error("the missing account is not told")
	}
	did := strings.Join(w.pass(planNow), ", ")
	if !strings.Contains(did, "apply demo-head-svc") || !strings.Contains(did, "create a/0") {
		t.Errorf("the plan is %s, want all that does not depend on the account", did)
	}
	if told(w) != 0 {
		t.Error("the missing account is told again")
	}
	if says := w.message(rayv1.ConditionValid); !strings.Contains(says, "service account mine") {
		t.Errorf("condition Valid says %q", says)
	}
	if w.pass(planNow.Add(time.Minute)); len(w.Pods) != 3 {
		t.Error("the head is not tried")
	}
	w = demo(mine, func(w *world) { w.Named[objectKey(kindServiceAccount, "mine")] = account })
	if told(w) != 0 {
		t.Error("an account that is there is told to be missing")
	}
}
