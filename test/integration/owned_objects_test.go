package integration

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/raycluster"
	"github.com/heliostat-io/heliostat/test/harness"
)

// everything asks for one object of each kind that a RayCluster can own.
func everything(cluster *rayv1.RayCluster) {
	cluster.Annotations = map[string]string{
		rayv1.AnnotationEnableServeService: "true", rayv1.AnnotationIngressClass: "nginx", "nginx.ingress.kubernetes.io/x": "y",
		rayv1.AnnotationProtectHead: rayv1.ProtectHeadAlways, rayv1.AnnotationMaxUnavailableWorkers: "1"}
	cluster.Spec.RayVersion = "2.52.0"
	cluster.Spec.EnableInTreeAutoscaling = ptr.To(true)
	cluster.Spec.AuthOptions = &rayv1.AuthOptions{Mode: rayv1.AuthModeToken}
	cluster.Spec.HeadGroupSpec.EnableIngress = ptr.To(true)
	cluster.Spec.HeadServiceAnnotations = map[string]string{"a": "b"}
}

// budgetOfWorkers is the name of the PodDisruptionBudget of the first group.
func budgetOfWorkers(cluster *rayv1.RayCluster) string {
	return raycluster.WorkerBudgetName(cluster.Name, cluster.Spec.WorkerGroupSpecs[0].GroupName)
}

func TestOwnedObjectsAreKept(t *testing.T) {
	g := NewWithT(t)
	c, ns := harness.Connect(t)
	operator := c.Run(t, ns)
	cluster := harness.NewCluster(ns, "demo", everything)
	g.Expect(c.Create(t.Context(), cluster)).To(Succeed())
	get := func(name string, object client.Object) error {
		return c.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: name}, object)
	}
	exists := func(name string, object client.Object) func() bool {
		return func() bool { return get(name, object) == nil && object.GetDeletionTimestamp() == nil }
	}
	gone := func(name string, object client.Object) func() bool {
		return func() bool { return apierrors.IsNotFound(get(name, object)) }
	}

	t.Run("all of them are made", func(t *testing.T) {
		g := NewWithT(t)
		c.BecomesReady(t, cluster)
		for name, object := range map[string]client.Object{"demo-head-svc": &corev1.Service{}, "demo-serve-svc": &corev1.Service{},
			"demo": &rbacv1.Role{}, "demo-head-ingress": &networkingv1.Ingress{},
			"demo-head": &policyv1.PodDisruptionBudget{}, budgetOfWorkers(cluster): &policyv1.PodDisruptionBudget{}} {
			g.Expect(get(name, object)).To(Succeed())
			g.Expect(metav1.IsControlledBy(object, cluster)).To(BeTrue())
		}
		g.Expect(get("demo", &corev1.ServiceAccount{})).To(Succeed())
		g.Expect(get("demo", &rbacv1.RoleBinding{})).To(Succeed())
		secret := &corev1.Secret{}
		g.Expect(get("demo", secret)).To(Succeed())
		g.Expect(secret.Data["auth_token"]).To(HaveLen(44))
	})

	t.Run("at rest nothing is written", func(t *testing.T) {
		operator.Settle(t)
		before := operator.Traffic.Writes()
		c.Edit(t, cluster, func(cluster *rayv1.RayCluster) { cluster.Labels = map[string]string{"touched": "yes"} })
		NewWithT(t).Consistently(operator.Traffic.Writes, 5*time.Second, time.Second).Should(Equal(before))
	})

	t.Run("what others changed or removed comes back", func(t *testing.T) {
		g := NewWithT(t)
		role := &rbacv1.Role{}
		g.Expect(get("demo", role)).To(Succeed())
		role.Rules = role.Rules[:1]
		g.Expect(c.Update(t.Context(), role)).To(Succeed())
		g.Eventually(func() int { _ = get("demo", role); return len(role.Rules) }).Should(Equal(3))
		binding := &rbacv1.RoleBinding{}
		g.Expect(get("demo", binding)).To(Succeed())
		binding.Labels = nil
		g.Expect(c.Update(t.Context(), binding)).To(Succeed())
		g.Eventually(func() string { _ = get("demo", binding); return binding.Labels[rayv1.LabelCluster] }).Should(Equal("demo"))
		g.Expect(c.Delete(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "demo"}})).To(Succeed())
		g.Eventually(exists("demo", &corev1.ServiceAccount{})).Should(BeTrue())
	})

	t.Run("an annotation that is not asked for any more goes", func(t *testing.T) {
		c.Edit(t, cluster, func(cluster *rayv1.RayCluster) { cluster.Spec.HeadServiceAnnotations = nil })
		service := &corev1.Service{}
		NewWithT(t).Eventually(func() map[string]string { _ = get("demo-head-svc", service); return service.Annotations }).
			ShouldNot(HaveKey("a"))
	})

	t.Run("a headless Service that must not be headless any more is made anew", func(t *testing.T) {
		c.Edit(t, cluster, func(cluster *rayv1.RayCluster) { cluster.Spec.HeadGroupSpec.ServiceType = corev1.ServiceTypeNodePort })
		service := &corev1.Service{}
		NewWithT(t).Eventually(func() corev1.ServiceType { _ = get("demo-head-svc", service); return service.Spec.Type }).
			Should(Equal(corev1.ServiceTypeNodePort))
		c.Edit(t, cluster, func(cluster *rayv1.RayCluster) { cluster.Spec.HeadGroupSpec.ServiceType = "" })
		NewWithT(t).Eventually(func() string { _ = get("demo-head-svc", service); return service.Spec.ClusterIP }).
			Should(Equal(corev1.ClusterIPNone))
	})

	t.Run("a lost token is made anew, and all Pods with it", func(t *testing.T) {
		g := NewWithT(t)
		c.BecomesReady(t, cluster)
		old := harness.Names(c.Pods(t, ns, nil))
		g.Expect(c.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "demo"}})).To(Succeed())
		g.Eventually(func() []string {
			c.Kubelet(t, ns)
			return harness.Names(c.Pods(t, ns, nil))
		}).Should(And(HaveLen(len(old)), Not(ContainElement(BeElementOf(old)))))
		c.BecomesReady(t, cluster)
	})

	t.Run("what is switched off goes", func(t *testing.T) {
		g := NewWithT(t)
		c.Edit(t, cluster, func(cluster *rayv1.RayCluster) {
			cluster.Spec.HeadGroupSpec.EnableIngress, cluster.Spec.EnableInTreeAutoscaling = nil, nil
			cluster.Annotations = nil
		})
		g.Eventually(gone("demo-head-ingress", &networkingv1.Ingress{})).Should(BeTrue())
		g.Eventually(gone("demo-serve-svc", &corev1.Service{})).Should(BeTrue())
		g.Eventually(gone("demo", &rbacv1.Role{})).Should(BeTrue())
		g.Eventually(gone("demo-head", &policyv1.PodDisruptionBudget{})).Should(BeTrue())
		g.Eventually(gone(budgetOfWorkers(cluster), &policyv1.PodDisruptionBudget{})).Should(BeTrue())
	})
}

func TestObjectsOfOthersAreLeftAlone(t *testing.T) {
	g := NewWithT(t)
	c, ns := harness.Connect(t)
	c.Run(t, ns)
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: ns, Name: name} }
	ports := []corev1.ServicePort{{Port: 1}}
	foreign := []client.Object{
		&corev1.Service{ObjectMeta: meta("demo-head-svc"), Spec: corev1.ServiceSpec{Ports: ports}},
		&rbacv1.Role{ObjectMeta: meta("demo")}, // without our label, so that the operator's cache does not show it
	}
	for _, object := range foreign {
		g.Expect(c.Create(t.Context(), object)).To(Succeed())
	}
	cluster := harness.NewCluster(ns, "demo", func(cluster *rayv1.RayCluster) { cluster.Spec.EnableInTreeAutoscaling = ptr.To(true) })
	g.Expect(c.Create(t.Context(), cluster)).To(Succeed())

	g.Eventually(func() []corev1.Pod { return c.Pods(t, ns, nil) }).Should(HaveLen(3))
	g.Eventually(func() string { return c.Condition(t, cluster, rayv1.ConditionNameCollision).Message }).
		Should(And(ContainSubstring("Service demo-head-svc"), ContainSubstring("Role demo")))
	g.Eventually(func() []string { return c.EventReasons(t, cluster) }).Should(ContainElements("FailedToCreateService", "FailedToCreateRole"))
	for _, object := range foreign {
		now := object.DeepCopyObject().(client.Object)
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(object), now)).To(Succeed())
		g.Expect(now.GetResourceVersion()).To(Equal(object.GetResourceVersion()))
	}
}
