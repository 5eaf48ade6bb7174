package gather

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/diagnose"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(s), rayv1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	return s
}

// source reads from memory; lists and objects of the forbidden kinds are refused.
func source(t *testing.T, forbidden func(runtime.Object) bool, objects ...client.Object) Source {
	t.Helper()
	c := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if forbidden(object) {
				return errors.New("you may not")
			}
			return c.Get(ctx, key, object, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if forbidden(list) {
				return errors.New("you may not")
			}
			return c.List(ctx, list, options...)
		},
	}).Build()
	return Source{Client: c, Now: func() time.Time { return now }}
}

func nothing(runtime.Object) bool { return false }

func controlled(kind, name string, by types.UID) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "ray.io/v1", Kind: kind, Name: "owner", UID: by, Controller: ptr.To(true)}}}
}

func cluster() *rayv1.RayCluster {
	return &rayv1.RayCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "uid-c"}}
}

// TestWhatIsEmptyIsKnown tells a list that was read and is empty from one that could not be read: rules are silent only about
// the latter.
func TestWhatIsEmptyIsKnown(t *testing.T) {
	s := source(t, nothing, cluster()).Of(t.Context(), cluster())
	for name, isNil := range map[string]bool{
		"Pods": s.Pods == nil, "Services": s.Services == nil, "Slices": s.Slices == nil, "Secrets": s.Secrets == nil, "ConfigMaps": s.ConfigMaps == nil,
		"Claims": s.Claims == nil, "Accounts": s.Accounts == nil, "Roles": s.Roles == nil, "Bindings": s.Bindings == nil, "Policies": s.Policies == nil,
		"Nodes": s.Nodes == nil, "StorageClasses": s.StorageClasses == nil, "IngressClasses": s.IngressClasses == nil,
		"Deployments": s.Operator.Deployments == nil, "CRDFields": s.Operator.CRDFields == nil,
	} {
		if isNil {
			t.Errorf("%s were read and are not known", name)
		}
	}
	if len(s.Gaps) > 0 {
		t.Errorf("gaps: %v", s.Gaps)
	}
}

func TestWhatCannotBeReadIsAGap(t *testing.T) {
	s := source(t, func(object runtime.Object) bool {
		switch object.(type) {
		case *corev1.Secret, *corev1.NodeList:
			return true
		default:
			return false
		}
	}).Of(t.Context(), referring("a", "b"))
	if s.Secrets != nil || s.Nodes != nil {
		t.Errorf("Secrets %v and Nodes %v could not be read, and are not nil", s.Secrets, s.Nodes)
	}
	want := []diagnose.Gap{{What: "Secrets", Why: "you may not"}, {What: "Nodes", Why: "you may not"}}
	if diff := cmp.Diff(want, s.Gaps); diff != "" {
		t.Error(diff)
	}
}

// TestTheChain reads what belongs to an object and nothing else, whatever its name and labels.
func TestTheChain(t *testing.T) {
	job := &rayv1.RayJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "j", UID: "uid-j"}}
	made := &rayv1.RayCluster{ObjectMeta: controlled("RayJob", "made", "uid-j")}
	shared := cluster()
	uses := &rayv1.RayJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "uses", UID: "uid-uses"}, Status: rayv1.RayJobStatus{RayClusterName: "c"}}
	selects := &rayv1.RayJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "selects", UID: "uid-selects"},
		Spec: rayv1.RayJobSpec{ClusterSelector: map[string]string{rayv1.LabelCluster: "c"}}}
	objects := []client.Object{job, made, shared, uses, selects,
		&corev1.Pod{ObjectMeta: controlled("RayCluster", "of-made", "uid-made")},
		&corev1.Pod{ObjectMeta: controlled("RayCluster", "of-shared", "uid-c")},
		&corev1.Pod{ObjectMeta: controlled("RayCluster", "of-another", "uid-another")},
	}
	for _, tc := range []struct {
		of             client.Object
		clusters, pods []string
	}{
		{job, []string{"made"}, []string{"of-made"}},
		{uses, []string{"c"}, []string{"of-shared"}},
		{selects, []string{"c"}, []string{"of-shared"}},
		{shared, []string{"c"}, []string{"of-shared"}},
	} {
		s := source(t, nothing, objects...).Of(t.Context(), tc.of)
		if diff := cmp.Diff(tc.clusters, names(s.Clusters)); diff != "" {
			t.Errorf("clusters of %s: %s", tc.of.GetName(), diff)
		}
		if diff := cmp.Diff(tc.pods, names(s.Pods)); diff != "" {
			t.Errorf("Pods of %s: %s", tc.of.GetName(), diff)
		}
	}
}

// referring is a cluster whose head takes variables from Secrets and ConfigMaps of these names.
func referring(names ...string) *rayv1.RayCluster {
	c := cluster()
	container := corev1.Container{Name: "ray"}
	for _, name := range names {
		of := corev1.LocalObjectReference{Name: name}
		container.EnvFrom = append(container.EnvFrom, corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: of}},
			corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: of}})
	}
	c.Spec.HeadGroupSpec.Template.Spec.Containers = []corev1.Container{container}
	return c
}

// TestOnlyWhatIsReferredToIsRead reads no Secret that the objects do not name: most of a namespace are nobody's business.
func TestOnlyWhatIsReferredToIsRead(t *testing.T) {
	at := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	var asked []string
	s := source(t, func(object runtime.Object) bool {
		switch object.(type) {
		case *corev1.SecretList, *corev1.ConfigMapList:
			asked = append(asked, "a list")
		}
		return false
	},
		&corev1.Secret{ObjectMeta: at("ns", "s"), Data: map[string][]byte{"k": []byte("secret")}},
		&corev1.Secret{ObjectMeta: at("ns", "private"), Data: map[string][]byte{"k": []byte("secret")}},
		&corev1.Secret{ObjectMeta: at("elsewhere", "gone")},
		&corev1.ConfigMap{ObjectMeta: at("ns", "s"), Data: map[string]string{"b": ""}, BinaryData: map[string][]byte{"a": nil}},
	).Of(t.Context(), referring("s", "gone"))
	if diff := cmp.Diff(diagnose.Keys{"s": {"k"}}, s.Secrets); diff != "" {
		t.Errorf("Secrets: %s", diff)
	}
	if diff := cmp.Diff(diagnose.Keys{"s": {"a", "b"}}, s.ConfigMaps); diff != "" {
		t.Errorf("ConfigMaps: %s", diff)
	}
	if len(asked) > 0 {
		t.Errorf("asked for %v", asked)
	}
}

// TestOperators finds those of other names by what their chart writes into the Pod template.
func TestOperators(t *testing.T) {
	deployment := func(name, app, component string) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "n-" + name, Name: name, Labels: map[string]string{rayv1.LabelAppName: app}}}
		d.Spec.Template.Labels = map[string]string{rayv1.LabelAppComponent: component}
		d.Spec.Selector = &metav1.LabelSelector{MatchLabels: d.Spec.Template.Labels}
		return d
	}
	other := deployment("web", "web", "frontend")
	for name, tc := range map[string]struct {
		there []client.Object
		want  []string
	}{
		"none":                      {[]client.Object{other}, nil},
		"one of the usual name":     {[]client.Object{other, deployment("a", "heliostat", "kuberay-operator")}, []string{"a"}},
		"one of another name":       {[]client.Object{other, deployment("b", "ray-team", "kuberay-operator")}, []string{"b"}},
		"one that changed its Pods": {[]client.Object{other, deployment("c", "kuberay-operator", "mine")}, []string{"c"}},
	} {
		s := source(t, nothing, tc.there...).OfOperator(t.Context())
		if diff := cmp.Diff(tc.want, names(s.Operator.Deployments)); diff != "" || s.Operator.Deployments == nil {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func names[T client.Object](objects []T) []string {
	var all []string
	for _, object := range objects {
		all = append(all, object.GetName())
	}
	slices.Sort(all)
	return all
}

// TestLogsOfTroubleOnly reads few logs: each is a request to a node.
func TestLogsOfTroubleOnly(t *testing.T) {
	running := func(since time.Duration, ready bool, restarts int32) corev1.ContainerStatus {
		return corev1.ContainerStatus{Ready: ready, RestartCount: restarts,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now.Add(-since))}}}
	}
	ended := corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}}
	for name, tc := range map[string]struct {
		container string
		status    corev1.ContainerStatus
		want      string
	}{
		"one that works":              {"ray", running(time.Hour, true, 3), ""},
		"one that has just started":   {"ray", running(time.Second, false, 0), ""},
		"one that does not get ready": {"ray", running(time.Hour, false, 0), "now"},
		"one that failed":             {"ray", ended, "now"},
		"one that fails again":        {"ray", running(time.Second, false, 2), "before"},
		"the autoscaler, always":      {"autoscaler", running(time.Hour, true, 0), "now"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: controlled("RayCluster", "p", "uid-c")}
			tc.status.Name = tc.container
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{tc.status}
			from := source(t, nothing, cluster(), pod)
			from.Tail = func(_ context.Context, _, _, _ string, previous bool) (string, error) {
				if previous {
					return "before", nil
				}
				return "now", nil
			}
			s := from.Of(t.Context(), cluster())
			if got := s.Logs[diagnose.LogKey("p", tc.container)]; got != tc.want {
				t.Errorf("read %q, want %q", got, tc.want)
			}
		})
	}
}
