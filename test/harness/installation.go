package harness

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	heliostatv1alpha1 "github.com/heliostat-io/heliostat/api/heliostat/v1alpha1"
	"github.com/heliostat-io/heliostat/internal/config"
)

// account is the service account of every installation.
const account = "operator"

// Installation is what the chart installs, in a namespace of its own: service account, rights, and the fence.
type Installation struct {
	Cluster
	// Namespace is that of the operator and of the objects that it looks after.
	Namespace string
}

// Install makes the namespace, the account and its rights.
func (c Cluster) Install(t testing.TB) Installation {
	t.Helper()
	i := Installation{Cluster: c, Namespace: c.NewNamespace(t)}
	rights := []rbacv1.PolicyRule{
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create", "get", "update"}},
	}
	var rules []rbacv1.PolicyRule
	i.read(t, "rules.yaml", &rules)
	name, subjects := i.Namespace, []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: i.Namespace, Name: account}}
	meta := metav1.ObjectMeta{Namespace: i.Namespace, Name: account}
	for _, object := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: meta},
		&rbacv1.Role{ObjectMeta: meta, Rules: append(rules, rights...)},
		&rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: account}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"heliostat.io"}, Resources: []string{"holders"}, Verbs: []string{"create"}},
			{APIGroups: []string{"heliostat.io"}, Resources: []string{"holders"}, ResourceNames: []string{name}, Verbs: []string{"get", "update"}},
			{APIGroups: []string{"heliostat.io"}, Resources: []string{"holders/status"}, ResourceNames: []string{name}, Verbs: []string{"update"}},
		}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}},
	} {
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	return i
}

// Fence makes the admission policies of the chart, in its order.
func (i Installation) Fence(t testing.TB) {
	t.Helper()
	var fence struct {
		Fence struct {
			Policy   admissionv1.ValidatingAdmissionPolicySpec
			Bindings map[string]admissionv1.ValidatingAdmissionPolicyBindingSpec
		}
		Holder struct {
			Policy admissionv1.ValidatingAdmissionPolicySpec
		}
	}
	i.read(t, "fence.yaml", &fence)
	policy := func(name string, spec admissionv1.ValidatingAdmissionPolicySpec) {
		i.create(t, &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: i.Namespace + "-" + name}, Spec: spec})
	}
	binding := func(name, of string, spec admissionv1.ValidatingAdmissionPolicyBindingSpec) {
		spec.PolicyName = i.Namespace + "-" + of
		spec.ValidationActions = []admissionv1.ValidationAction{admissionv1.Deny}
		i.create(t, &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: i.Namespace + "-" + name}, Spec: spec})
	}
	policy("holder", fence.Holder.Policy)
	binding("holder", "holder", admissionv1.ValidatingAdmissionPolicyBindingSpec{})
	policy("fence", fence.Fence.Policy)
	for _, name := range slices.Sorted(maps.Keys(fence.Fence.Bindings)) {
		spec := fence.Fence.Bindings[name]
		spec.ParamRef = &admissionv1.ParamRef{Name: i.Namespace, ParameterNotFoundAction: ptr.To(admissionv1.AllowAction)}
		binding("fence-"+name, "fence", spec)
	}
}

func (i Installation) create(t testing.TB, object client.Object) {
	t.Helper()
	if err := i.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// read reads a file of the chart, with the words in capitals replaced as the chart does.
func (i Installation) read(t testing.TB, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), "charts", "heliostat", "files", file))
	if err != nil {
		t.Fatal(err)
	}
	names := strings.NewReplacer("NAMESPACE", i.Namespace, "ACCOUNT", account)
	if err := yaml.UnmarshalStrict([]byte(names.Replace(string(text))), into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// User is how the API server names the account.
func (i Installation) User() string { return "system:serviceaccount:" + i.Namespace + ":" + account }

// NewPod makes the Pod of a replica. There are no nodes: it is there for its UID.
func (i Installation) NewPod(t testing.TB, name string) *corev1.Pod {
	t.Helper()
	template := PodTemplate("operator")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: i.Namespace, Name: name}, Spec: template.Spec}
	pod.Spec.ServiceAccountName = account
	i.create(t, pod)
	// It is not the business of a test's kubelet.
	i.SetPod(t, pod, Ready)
	return pod
}

// Token is a token of the account, bound to the Pod if there is one.
func (i Installation) Token(t testing.TB, pod *corev1.Pod) string {
	t.Helper()
	request := &authenticationv1.TokenRequest{}
	if pod != nil {
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}
	}
	of := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: i.Namespace, Name: account}}
	if err := i.SubResource("token").Create(t.Context(), of, request); err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// As is a client with the token of a Pod, or with one that is bound to none.
func (i Installation) As(t testing.TB, pod *corev1.Pod) client.Client {
	t.Helper()
	connection := rest.AnonymousClientConfig(i.REST)
	connection.BearerToken = i.Token(t, pod)
	as, err := client.New(connection, client.Options{Scheme: i.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return as
}

// Holder reads the Holder; the empty one stands for none.
func (i Installation) Holder(t testing.TB) heliostatv1alpha1.Holder {
	t.Helper()
	holder := heliostatv1alpha1.Holder{}
	if err := i.Get(t.Context(), client.ObjectKey{Name: i.Namespace}, &holder); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return holder
}

// LeaseKey is the key of the Lease.
func (i Installation) LeaseKey() client.ObjectKey {
	return client.ObjectKey{Namespace: i.Namespace, Name: config.LeaseName}
}
