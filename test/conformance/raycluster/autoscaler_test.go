package raycluster

import (
	"slices"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

func autoscalerCases() []Case {
	return []Case{
		{Row: 65, Kind: same, Weak: []string{"W41"}, Given: "autoscaler on", When: "the cluster is created", Then: "account, role and binding; the head runs the sidecar under that account",
			How: "W41: the role reaches this RayCluster only", Run: autoscalerIsSetUp},
		{Row: 66, Kind: same, Given: "autoscaler on, an account of the user's that does not exist", When: "the cluster is created", Then: "Warning AutoscalerServiceAccountNotFound", Run: func(e *env) {
			e.Expect(e.said(e.given(autoscaler, account("mine")), corev1.EventTypeWarning, "AutoscalerServiceAccountNotFound")).To(ContainSubstring("mine"))
		}},
		{Row: 67, Kind: better, Weak: []string{"W45", "W30"}, Theirs: "the status stays empty", Given: "the same", When: "the cluster is created", Then: "a condition says so too, and the rest of the status is filled",
			How: "the status is computed field by field", Run: func(e *env) {
				cluster := e.given(autoscaler, account("mine"))
				e.Eventually(func() []string { return e.conditionMessages(cluster) }).Should(ContainElement(ContainSubstring("mine")))
				e.Expect(e.status(cluster).DesiredWorkerReplicas).To(Equal(int32(2)))
			}},
		{Row: 68, Kind: same, Given: "autoscaler of version v2", When: "the cluster is created", Then: "Ray is told, and Pods are never restarted in place", Run: func(e *env) {
			e.given(autoscalerVersion(rayv1.AutoscalerVersionV2))
			head, workers := e.head(), e.haveWorkers(2)
			e.Expect(envOf(head.Spec.Containers[0], "RAY_enable_autoscaler_v2")).To(HaveValue(HaveField("Value", "true")))
			e.Expect(head.Spec.RestartPolicy).To(Equal(corev1.RestartPolicyNever))
			e.Expect(workers[0].Spec.RestartPolicy).To(Equal(corev1.RestartPolicyNever))
		}},
		{Row: 69, Kind: same, Given: "autoscaler of version v2, workers with restartPolicy Always", When: "the cluster is created", Then: "a Warning, no Pods", Run: func(e *env) {
			e.isInvalid(e.given(autoscalerVersion(rayv1.AutoscalerVersionV2), restartPolicy(corev1.RestartPolicyAlways)), invalidSpec, "restartPolicy")
		}},
		{Row: 70, Kind: same, Given: "autoscaler of version v1, an idle time-out of the group", When: "the cluster is created", Then: "a Warning, no Pods", Run: func(e *env) {
			cluster := e.given(autoscalerVersion(rayv1.AutoscalerVersionV1), func(c *rayv1.RayCluster) {
				c.Spec.WorkerGroupSpecs[0].IdleTimeoutSeconds = ptr.To[int32](30)
			})
			e.isInvalid(cluster, invalidSpec, "idleTimeoutSeconds")
		}},
	}
}

func account(name string) edit {
	return func(c *rayv1.RayCluster) { c.Spec.HeadGroupSpec.Template.Spec.ServiceAccountName = name }
}

func autoscalerIsSetUp(e *env) {
	cluster := e.given(autoscaler)
	head := e.head()
	e.Expect(head.Spec.ServiceAccountName).To(Equal(name))
	e.Expect(head.Spec.Containers).To(ContainElement(HaveField("Name", "autoscaler")))
	e.Expect(commandOf(head.Spec.Containers[0])).To(ContainSubstring("--no-monitor"))

	role := &rbacv1.Role{}
	e.Eventually(func() error { return e.read(role, name) }).Should(Succeed())
	allows := func(group, resource, verb string) bool {
		return slices.ContainsFunc(role.Rules, func(rule rbacv1.PolicyRule) bool {
			return slices.Contains(rule.APIGroups, group) && slices.Contains(rule.Resources, resource) && slices.Contains(rule.Verbs, verb)
		})
	}
	for _, verb := range []string{"get", "list", "watch", "patch"} {
		e.Expect(allows("", "pods", verb)).To(BeTrue(), verb)
	}
	e.Expect(allows("", "pods/resize", "patch")).To(BeTrue())
	for _, verb := range []string{"get", "patch"} {
		e.Expect(allows("ray.io", "rayclusters", verb)).To(BeTrue(), verb)
	}
	for _, rule := range role.Rules {
		if slices.Contains(rule.Resources, "rayclusters") {
			e.Expect(rule.ResourceNames).To(Equal([]string{name}))
		}
	}
	binding := &rbacv1.RoleBinding{}
	e.Eventually(func() error { return e.read(binding, name) }).Should(Succeed())
	e.Expect(binding.RoleRef.Name).To(Equal(name))
	e.Expect(binding.Subjects).To(ConsistOf(HaveField("Name", name)))
	e.Eventually(func() error { return e.read(&corev1.ServiceAccount{}, name) }).Should(Succeed())
	e.Expect(metav1.IsControlledBy(role, cluster)).To(BeTrue())
}

func recreateCases() []Case {
	return []Case{
		{Row: 84, Kind: same, Given: "upgradeStrategy Recreate", When: "the image changes", Then: "all Pods are replaced, the head carries the new hash", Run: func(e *env) {
			cluster := e.ready(recreate)
			old, hash := uids(e.pods()), e.head().Annotations[rayv1.AnnotationRecreateHash]
			e.change(cluster, newImage)
			e.allRenewed(old)
			e.Expect(e.head().Annotations[rayv1.AnnotationRecreateHash]).ToNot(Equal(hash))
		}},
		{Row: 85, Kind: same, Given: "no upgradeStrategy", When: "the image changes", Then: "no Pod changes", Run: func(e *env) {
			cluster := e.ready()
			e.changesNoPod(cluster, newImage)
		}},
		{Row: 86, Kind: same, Given: "upgradeStrategy Recreate", When: "replicas, tolerations or upgradeStrategy change", Then: "no Pod is replaced", Run: func(e *env) {
			cluster := e.ready(recreate)
			e.changesNoPod(cluster, func(c *rayv1.RayCluster) {
				c.Spec.HeadGroupSpec.Template.Spec.Tolerations = []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}
			})
			e.changesNoPod(cluster, replicas(3))
			e.changesNoPod(cluster, func(c *rayv1.RayCluster) { c.Spec.UpgradeStrategy = nil })
		}},
		{Row: 87, Kind: better, Weak: []string{"W52"}, Theirs: "only the head's hash is compared, so the workers stay old", Given: "upgradeStrategy Recreate", When: "the head is deleted and the image changed together", Then: "the workers are replaced as well",
			How: "every Pod carries a hash of what made it", Run: func(e *env) {
				cluster := e.ready(recreate)
				old, head := uids(e.pods()), e.head()
				e.operator.Stop() // so that both changes are seen together
				e.Kill(e.t, &head)
				e.Edit(e.t, cluster, newImage)
				e.start()
				e.allRenewed(old)
			}},
		{Row: 88, Kind: better, Weak: []string{"W52"}, Theirs: "everything is made anew", Given: "upgradeStrategy Recreate", When: "suspend: false is added", Then: "no Pod is replaced",
			How: "the hash covers only what decides how a Pod looks", Run: func(e *env) {
				cluster := e.ready(recreate)
				e.changesNoPod(cluster, suspend(ptr.To(false)))
			}},
		{Row: 89, Kind: same, Given: "upgradeStrategy Recreate on the cluster of a RayJob", When: "the cluster is created", Then: "a Warning, no Pods", Run: func(e *env) {
			e.isInvalid(e.given(recreate, labelled(rayv1.LabelOriginatedFromKind, rayv1.KindRayJob)), invalidSpec, "spec.upgradeStrategy.type")
		}},
	}
}

// allRenewed waits until none of the old Pods is left and a full set of new ones is there.
func (e *env) allRenewed(old []string) {
	e.t.Helper()
	e.Eventually(func(g Gomega) {
		g.Expect(e.pods()).To(HaveLen(3))
		for _, pod := range e.pods() {
			g.Expect(old).ToNot(ContainElement(string(pod.UID)))
			g.Expect(pod.Spec.Containers[0].Image).To(Equal("img:2"))
		}
	}).Should(Succeed())
}

// changesNoPod checks that every Pod outlives a change.
func (e *env) changesNoPod(cluster *rayv1.RayCluster, edit edit) {
	e.t.Helper()
	before := uids(e.pods())
	e.change(cluster, edit)
	e.rest()
	for _, pod := range e.pods() {
		e.Expect(pod.DeletionTimestamp).To(BeNil())
	}
	e.Expect(uids(e.pods())).To(ContainElements(before))
}
