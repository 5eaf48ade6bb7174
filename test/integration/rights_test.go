package integration

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/harness"
)

// as sends all requests in the name of a user.
type as struct {
	user string
	next http.RoundTripper
}

func (a as) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("Impersonate-User", a.user)
	return a.next.RoundTrip(request)
}

// TestRightsOfTheChartSuffice runs an operator with the rights that the chart gives it in a namespace, and no others. The
// API server lets nobody grant what they do not have, so these include what the autoscaler's Role grants.
func TestRightsOfTheChartSuffice(t *testing.T) {
	g := NewWithT(t)
	c, ns := harness.Connect(t)
	c.Run(t, ns, harness.Alone(), chartRights(t, c, ns))

	cluster := harness.NewCluster(ns, "demo", everything)
	g.Expect(c.Create(t.Context(), cluster)).To(Succeed())
	c.BecomesReady(t, cluster)
	for _, object := range []client.Object{&corev1.ServiceAccount{}, &corev1.Secret{}, &rbacv1.Role{}, &rbacv1.RoleBinding{}} {
		g.Eventually(func() error { return c.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "demo"}, object) }).Should(Succeed())
	}
	// The second apply of an object is a patch.
	c.Edit(t, cluster, func(cluster *rayv1.RayCluster) {
		cluster.Annotations[rayv1.AnnotationIngressClass] = "other"
		cluster.Spec.HeadServiceAnnotations["a"] = "c"
		cluster.Spec.HeadGroupSpec.Template.Spec.ServiceAccountName = "mine"
	})
	ingress := &networkingv1.Ingress{}
	g.Eventually(func() *string {
		_ = c.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "demo-head-ingress"}, ingress)
		return ingress.Spec.IngressClassName
	}).Should(HaveValue(Equal("other")))
	binding := &rbacv1.RoleBinding{}
	g.Eventually(func() []rbacv1.Subject {
		_ = c.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "demo"}, binding)
		return binding.Subjects
	}).Should(HaveLen(2))
}

// chartRights lets an operator do what the chart allows it in a namespace, and nothing else.
func chartRights(t *testing.T, c harness.Cluster, ns string) harness.Option {
	t.Helper()
	g := NewWithT(t)
	text, err := os.ReadFile(filepath.Join("..", "..", "charts", "heliostat", "files", "rules.yaml"))
	g.Expect(err).ToNot(HaveOccurred())
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "operator"}}
	g.Expect(yaml.Unmarshal(text, &role.Rules)).To(Succeed())
	g.Expect(c.Create(t.Context(), role)).To(Succeed())
	g.Expect(c.Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "operator-in-" + ns}},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
	})).To(Succeed())
	return harness.Transport(func(next http.RoundTripper) http.RoundTripper {
		return as{user: "operator-in-" + ns, next: next}
	})
}
