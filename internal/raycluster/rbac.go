package raycluster

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/ray"
)

// AutoscalerAccountName returns the name of the service account under which a RayCluster's autoscaler runs: the one that
// the head's template names, else one that is made for it.
func AutoscalerAccountName(cluster *rayv1.RayCluster) string {
	if own := cluster.Spec.HeadGroupSpec.Template.Spec.ServiceAccountName; own != "" {
		return own
	}
	return ShortName(cluster.Name)
}

// autoscalerRights returns the objects that let the autoscaler of a RayCluster scale it, and nothing else that can be
// told apart by name: rights on Pods cannot be limited to those of one cluster. A head that runs already, nil when there
// is none, keeps its rights when the account for new heads is another one.
func autoscalerRights(cluster *rayv1.RayCluster, head *corev1.Pod) []action.Object {
	if !autoscaling(cluster) {
		return nil
	}
	name := ShortName(cluster.Name)
	role := &rbacv1.Role{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kindRole},
		ObjectMeta: ownedMeta(cluster, name),
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch", "patch"}},
			{APIGroups: []string{""}, Resources: []string{"pods/resize"}, Verbs: []string{"patch"}},
			{APIGroups: []string{rayv1.GroupVersion.Group}, Resources: []string{"rayclusters"},
				ResourceNames: []string{cluster.Name}, Verbs: []string{"get", "patch"}},
		},
	}
	binding := &rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kindRoleBinding},
		ObjectMeta: ownedMeta(cluster, name),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kindRole, Name: name},
	}
	accounts := []string{AutoscalerAccountName(cluster)}
	if head != nil && runsAutoscaler(head) {
		accounts = append(accounts, head.Spec.ServiceAccountName)
	}
	for _, account := range slices.Compact(accounts) {
		binding.Subjects = append(binding.Subjects,
			rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: account, Namespace: cluster.Namespace})
	}
	objects := []action.Object{role, binding}
	if cluster.Spec.HeadGroupSpec.Template.Spec.ServiceAccountName == "" {
		objects = append(objects, &corev1.ServiceAccount{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: kindServiceAccount},
			ObjectMeta: ownedMeta(cluster, name),
		})
	}
	return objects
}

func runsAutoscaler(head *corev1.Pod) bool {
	return slices.ContainsFunc(head.Spec.Containers, func(c corev1.Container) bool { return c.Name == ray.AutoscalerContainer })
}

// ownedMeta is the metadata of what belongs to a RayCluster and is found by its label.
func ownedMeta(cluster *rayv1.RayCluster, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:      name,
		Namespace: cluster.Namespace,
		Labels: map[string]string{
			rayv1.LabelCluster:   cluster.Name,
			rayv1.LabelAppName:   rayv1.AppName,
			rayv1.LabelCreatedBy: rayv1.CreatedByOperator,
		},
		OwnerReferences: ownerReferences(cluster),
	}
}

// awaitsAccount tells whether the head cannot be made yet, because the account that is made for its autoscaler is not
// there: the API server would refuse it.
func (p *planner) awaitsAccount() bool {
	users := p.cluster.Spec.HeadGroupSpec.Template.Spec.ServiceAccountName != ""
	return autoscaling(p.cluster) && !users && p.snapshot.standing(kindServiceAccount, AutoscalerAccountName(p.cluster)) == nil
}

// missingAccount says once that the account which the user named is not there. The head is tried nevertheless: the API
// server refuses it with the same complaint, and takes it as soon as the account exists.
func (p *planner) missingAccount() {
	name := p.cluster.Spec.HeadGroupSpec.Template.Spec.ServiceAccountName
	if !autoscaling(p.cluster) || name == "" || p.snapshot.standing(kindServiceAccount, name) != nil {
		return
	}
	note := fmt.Sprintf("service account %s, which the head's template names for the autoscaler, does not exist", name)
	p.notes = append(p.notes, note)
	before := meta.FindStatusCondition(p.snapshot.Cluster.Status.Conditions, rayv1.ConditionValid)
	if before == nil || !strings.Contains(before.Message, note) {
		p.events = append(p.events, *action.Warning("AutoscalerServiceAccountNotFound", "Create", note))
	}
}
