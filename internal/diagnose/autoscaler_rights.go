package diagnose

import (
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/ray"
)

func autoscalerRightsMissing(s *Snapshot) []Finding {
	var findings []Finding
	for _, cluster := range s.autoscalers() {
		object, why := s.autoscalerRights(cluster)
		if why == "" || s.heldBack(cluster) || s.operatorDown() {
			continue // what the operator has not come to make is missing for that reason
		}
		findings = append(findings, Finding{Reason: "AutoscalerForbidden", Object: object, Message: why,
			Cause: fmt.Sprintf("The autoscaler of RayCluster %s cannot read its Pods or write its "+
				"replicas: %s.", cluster.Name, why),
			Next: fmt.Sprintf("The operator makes ServiceAccount, Role and RoleBinding for the autoscaler: read the events "+
				"with \"kubectl describe raycluster %s\" to see "+
				"why it did not; where you named an account in spec.headGroupSpec.template.spec.serviceAccountName, bind "+
				"it to a Role that may get, list, "+
				"watch and patch pods and get and patch rayclusters.ray.io.", cluster.Name)})
	}
	return findings
}

// autoscalerRights is what keeps the autoscaler of a cluster from its work, and the object to look at. Rights that come
// from a ClusterRole are taken to suffice: they are not in the snapshot.
func (s *Snapshot) autoscalerRights(cluster *rayv1.RayCluster) (object, why string) {
	template := &cluster.Spec.HeadGroupSpec.Template.Spec
	if mounts := template.AutomountServiceAccountToken; mounts != nil && !*mounts {
		return "RayCluster " + cluster.Name, "spec.headGroupSpec.template.spec.automountServiceAccountToken is false, so " +
			"it has no credentials"
	}
	name := s.autoscalerAccount(cluster)
	switch {
	case name == "":
		if s.Accounts != nil && template.ServiceAccountName == "" {
			return "RayCluster " + cluster.Name, "there is no ServiceAccount for it"
		}
		return "", ""
	case s.Accounts != nil && named(s.Accounts, name) == nil:
		if template.ServiceAccountName == name {
			return "", "" // told by service-account-missing
		}
		return kindAccount + " " + name, "its ServiceAccount is gone"
	case s.Bindings == nil:
		return "", ""
	}
	return s.bindingTrouble(name)
}

// autoscalerAccount is the account of the head Pod, else the one that the head's template names or that was made for the
// cluster, or empty when there is none.
func (s *Snapshot) autoscalerAccount(cluster *rayv1.RayCluster) string {
	if head := s.head(cluster); head != nil && head.Spec.ServiceAccountName != "" && hasContainer(head, ray.AutoscalerContainer) {
		return head.Spec.ServiceAccountName
	}
	if own := cluster.Spec.HeadGroupSpec.Template.Spec.ServiceAccountName; own != "" {
		return own
	}
	for _, account := range s.Accounts {
		if account.Labels[rayv1.LabelCluster] == cluster.Name {
			return account.Name
		}
	}
	return ""
}

func (s *Snapshot) bindingTrouble(account string) (object, why string) {
	var bound []*rbacv1.RoleBinding
	for _, binding := range s.Bindings {
		is := func(subject rbacv1.Subject) bool {
			return subject.Kind == rbacv1.ServiceAccountKind && subject.Name == account
		}
		if slices.ContainsFunc(binding.Subjects, is) {
			bound = append(bound, binding)
		}
	}
	if len(bound) == 0 {
		return kindAccount + " " + account, "no RoleBinding in the namespace names its ServiceAccount"
	}
	var rules []rbacv1.PolicyRule
	object, why = "RoleBinding "+bound[0].Name, ""
	for _, binding := range bound {
		role := named(s.Roles, binding.RoleRef.Name)
		switch {
		case binding.RoleRef.Kind == "ClusterRole", s.Roles == nil:
			return "", ""
		case role == nil:
			object, why = "RoleBinding "+binding.Name, fmt.Sprintf("there is no Role %s, which the "+
				"RoleBinding names", binding.RoleRef.Name)
		default:
			rules = append(rules, role.Rules...)
		}
	}
	switch {
	case allows(rules, "", "pods", "list") && allows(rules, rayv1.GroupVersion.Group, "rayclusters", "patch"):
		return "", ""
	case why != "":
		return object, why
	default:
		return "Role " + bound[0].RoleRef.Name, "the Role does not let it list pods and patch rayclusters.ray.io"
	}
}

func allows(rules []rbacv1.PolicyRule, group, resource, verb string) bool {
	has := func(all []string, one string) bool { return slices.Contains(all, one) || slices.Contains(all, "*") }
	return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
		return has(r.APIGroups, group) && has(r.Resources, resource) && has(r.Verbs, verb)
	})
}
