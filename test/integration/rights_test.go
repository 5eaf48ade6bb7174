package integration

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
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

// TestAMissingRightIsNamed takes one right of the chart away from an operator: it says so itself, before and after it wants to
// make use of it, and so does the plugin.
func TestAMissingRightIsNamed(t *testing.T) {
	g := NewWithT(t)
	c, _ := harness.Connect(t)
	installed := c.Install(t)
	ns, ray := installed.Namespace, plugin(t, c, installed.Namespace)
	role := &rbacv1.Role{}
	g.Expect(c.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "operator"}, role)).To(Succeed())
	whole := role.DeepCopy().Rules
	role.Rules = withoutRight(whole, "pods", "create")
	g.Expect(c.Update(t.Context(), role)).To(Succeed())
	deployment := operatorDeployment(ns)
	g.Expect(c.Create(t.Context(), deployment)).To(Succeed())
	t.Cleanup(func() { _ = c.Delete(context.Background(), deployment) })
	operator := c.Run(t, ns, harness.Alone(), harness.Transport(func(next http.RoundTripper) http.RoundTripper {
		return as{user: installed.User(), next: next}
	}))

	const right = "create pods in namespace "
	g.Eventually(func() bool { return operator.Says(right + ns) }).Should(BeTrue(), "the log does not name the right")
	g.Eventually(func() []string { return missingRights(t, operator) }).Should(Equal([]string{"create /pods " + ns}))
	g.Eventually(func() []string { return notesAbout(t, c, ns, "RightsMissing") }).Should(ContainElement(ContainSubstring(right + ns)))
	cluster := harness.NewCluster(ns, "demo")
	g.Expect(c.Create(t.Context(), cluster)).To(Succeed())
	g.Eventually(func() metav1.Condition { return c.Condition(t, cluster, rayv1.ConditionPodsHealthy) }).Should(HaveField("Message", And(
		ContainSubstring(`cannot create resource "pods"`),
		ContainSubstring("the operator's ClusterRole, or its Role in namespace "+ns+" must allow it: kubectl auth can-i create pods -n "+ns))))
	g.Expect(ray("check").Out).To(And(MatchRegexp("operator's rights +bad +it may not "+right+ns), ContainSubstring("operator-forbidden: Deployment "+ns)))
	g.Expect(ray("diagnose", "demo")).To(And(HaveField("Code", 1), HaveField("Out", And(
		ContainSubstring("operator-forbidden (blocking)"), MatchRegexp(`may not create pods in namespace\s+`+ns)))))

	role.Rules = whole
	g.Expect(c.Update(t.Context(), role)).To(Succeed())
	g.Eventually(func() []string { return missingRights(t, operator) }).Should(BeEmpty())
	c.BecomesReady(t, cluster)
	g.Expect(ray("check").Out).To(And(MatchRegexp("operator's rights +ok "), Not(ContainSubstring("operator-forbidden"))))
	g.Expect(ray("diagnose", "demo").Out).ToNot(ContainSubstring("operator-forbidden"))
}

// withoutRight are rules without a verb on a resource of the core group.
func withoutRight(rules []rbacv1.PolicyRule, resource, verb string) []rbacv1.PolicyRule {
	var left []rbacv1.PolicyRule
	for _, rule := range rules {
		i := slices.Index(rule.Resources, resource)
		if i < 0 || !slices.Contains(rule.APIGroups, "") {
			left = append(left, rule)
			continue
		}
		others, one := rule.DeepCopy(), rule.DeepCopy()
		others.Resources = slices.Delete(others.Resources, i, i+1)
		one.Resources = []string{resource}
		one.Verbs = slices.DeleteFunc(one.Verbs, func(v string) bool { return v == verb })
		left = append(left, *one)
		if len(others.Resources) > 0 {
			left = append(left, *others)
		}
	}
	return left
}

// operatorDeployment is what the plugin finds an operator by that watches one namespace. Nobody makes its Pods.
func operatorDeployment(ns string) *appsv1.Deployment {
	labels := map[string]string{rayv1.LabelAppName: "heliostat"}
	template := harness.PodTemplate("operator")
	template.Labels = labels
	template.Spec.ServiceAccountName = "operator"
	template.Spec.Containers[0].Args = []string{"--watch-namespace=" + ns, "--enable-leader-election=false"}
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "heliostat", Labels: labels},
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template}}
}

// missingRights are the series of the operator's metric.
func missingRights(t *testing.T, operator *harness.Operator) []string {
	t.Helper()
	families, err := operator.Metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var missing []string
	for _, family := range families {
		if family.GetName() != "heliostat_missing_rights" {
			continue
		}
		for _, series := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range series.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			missing = append(missing, labels["verb"]+" "+labels["group"]+"/"+labels["resource"]+" "+labels["namespace"])
		}
	}
	return missing
}

// notesAbout are the notes of the events with a reason in a namespace.
func notesAbout(t *testing.T, c harness.Cluster, ns, reason string) []string {
	t.Helper()
	events := &eventsv1.EventList{}
	if err := c.List(t.Context(), events, client.InNamespace(ns)); err != nil {
		t.Fatal(err)
	}
	var notes []string
	for _, event := range events.Items {
		if event.Reason == reason {
			notes = append(notes, event.Note)
		}
	}
	return notes
}

// standbyLearnsItsRights: reviews of access write nothing, so no term is needed for them, and the fence lets them pass.
func standbyLearnsItsRights(t *testing.T, s stage) {
	g := NewWithT(t)
	p := s.pair(t, true)
	asked := func(replica *harness.Replica) (accepted, other int) {
		for _, request := range s.log.Of(t, p.User()) {
			switch {
			case request.Resource() != "selfsubjectaccessreviews" || request.Pod() != replica.UID():
			case request.Accepted():
				accepted++
			default:
				other++
			}
		}
		return accepted, other
	}
	for _, replica := range []*harness.Replica{p.first, p.second} {
		g.Eventually(func() int { accepted, _ := asked(replica); return accepted }).Should(BeNumerically(">", 80))
		_, other := asked(replica)
		g.Expect(other).To(BeZero(), "%s is not answered", replica.Pod.Name)
		g.Expect(replica.Says("lacks a right")).To(BeFalse(), "the rights of the chart do not suffice")
	}
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
