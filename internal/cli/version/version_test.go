package version

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/heliostat-io/heliostat/internal/cli/clitest"
)

func deployment(namespace, name, label string, containers ...corev1.Container) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app.kubernetes.io/name": label}},
		Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](2),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: containers}}},
		Status: appsv1.DeploymentStatus{ReadyReplicas: 1},
	}
}

// served makes the API server serve resources of ray.io/v1, and some of its own.
func served(k *clitest.Kube, resources ...string) {
	set := fake.NewClientset()
	set.Resources = []*metav1.APIResourceList{{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{{Name: "deployments"}}}}
	if len(resources) > 0 {
		list := &metav1.APIResourceList{GroupVersion: "ray.io/v1"}
		for _, name := range resources {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: name})
		}
		set.Resources = append(set.Resources, list)
	}
	k.Env.Clientset = func() (kubernetes.Interface, error) { return set, nil }
}

func TestVersion(t *testing.T) {
	operator := corev1.Container{Name: "kuberay-operator", Image: "registry.example:5000/heliostat:v0.9.0"}
	for name, c := range map[string]struct {
		args      string
		objects   []client.Object
		resources []string
		out       string
		errOut    string
	}{
		"an operator, whatever its installation": {
			objects: []client.Object{
				deployment("ray", "kuberay-operator", "kuberay-operator", corev1.Container{Name: "mesh", Image: "mesh:1"}, operator),
				deployment("a", "kustomized", "kuberay", corev1.Container{Name: "manager", Image: "quay.io/kuberay/operator@sha256:abc"}),
				deployment("b", "own", "heliostat", corev1.Container{Name: "heliostat", Image: "heliostat"}),
				deployment("c", "web", "web", corev1.Container{Name: "web", Image: "web:7"}),
			},
			resources: []string{"rayjobs", "rayclusters", "rayclusters/status"},
			out: "kubectl ray plugin version: v0.0.0-test\n" +
				"Ray operator version: sha256:abc (Deployment a/kustomized, image quay.io/kuberay/operator@sha256:abc, 1 of 2 ready)\n" +
				"Ray operator version: latest (Deployment b/own, image heliostat, 1 of 2 ready)\n" +
				"Ray operator version: v0.9.0 (Deployment ray/kuberay-operator, image registry.example:5000/heliostat:v0.9.0, 1 of 2 ready)\n" +
				"rayclusters.ray.io: v1\n" +
				"rayjobs.ray.io: v1\n",
		},
		"nothing installed": {
			out: "kubectl ray plugin version: v0.0.0-test\n",
			errOut: "Warning: no operator was found: no Deployment in any namespace has the label app.kubernetes.io/name in (heliostat,kuberay,kuberay-operator)\n" +
				"Warning: the API server serves no kind of ray.io: its CRDs are not installed\n",
		},
		"as JSON": {
			args:      "-o json",
			objects:   []client.Object{deployment("ray", "op", "kuberay-operator", operator)},
			resources: []string{"rayclusters"},
			out: `{
  "plugin": "v0.0.0-test",
  "operators": [
    {
      "namespace": "ray",
      "deployment": "op",
      "image": "registry.example:5000/heliostat:v0.9.0",
      "version": "v0.9.0",
      "replicas": 2,
      "ready": 1
    }
  ],
  "crds": [
    {
      "name": "rayclusters.ray.io",
      "versions": [
        "v1"
      ]
    }
  ]
}
`,
		},
		"nothing as YAML": {
			args:      "-o yaml",
			resources: []string{"rayclusters"},
			out: `crds:
- name: rayclusters.ray.io
  versions:
  - v1
operators: []
plugin: v0.0.0-test
warnings:
- 'no operator was found: no Deployment in any namespace has the label app.kubernetes.io/name
  in (heliostat,kuberay,kuberay-operator)'
`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := clitest.New(c.objects...)
			served(k, c.resources...)
			if code := k.Run(t, New, strings.Fields(c.args)...); code != 0 {
				t.Errorf("exit code %d, want 0", code)
			}
			if diff := cmp.Diff([]string{c.out, c.errOut}, []string{k.Out.String(), k.ErrOut.String()}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNotAllowedToLook(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "", errors.New("not you"))
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"forbidden": {forbidden, `Warning: the operator cannot be looked for, because you may not list Deployments in all namespaces: deployments.apps is forbidden: not you` + "\n"},
		"no answer": {errors.New("connection refused"), "Warning: the operator cannot be looked for: connection refused\n"},
	} {
		t.Run(name, func(t *testing.T) {
			k := clitest.New()
			served(k, "rayclusters")
			refusing := interceptor.NewClient(k.WithWatch, interceptor.Funcs{
				List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return c.err },
			})
			k.Env.Client = func() (client.WithWatch, error) { return refusing, nil }
			if code := k.Run(t, New); code != 0 {
				t.Errorf("exit code %d, want 0", code)
			}
			out := "kubectl ray plugin version: v0.0.0-test\nrayclusters.ray.io: v1\n"
			if diff := cmp.Diff([]string{out, c.want}, []string{k.Out.String(), k.ErrOut.String()}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTag(t *testing.T) {
	for image, want := range map[string]string{
		"operator":                         "latest",
		"operator:v1":                      "v1",
		"host:5000/operator":               "latest",
		"host:5000/team/operator:v1":       "v1",
		"host/operator@sha256:abc":         "sha256:abc",
		"host:5000/operator:v1@sha256:abc": "v1",
	} {
		if got := tag(image); got != want {
			t.Errorf("tag(%q) = %q, want %q", image, got, want)
		}
	}
}
