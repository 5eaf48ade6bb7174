package plan

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/clitest"
)

// installedOperator is a Deployment of the operator.
func installedOperator(name string, change func(*corev1.Container)) *appsv1.Deployment {
	container := corev1.Container{Name: rayv1.CreatedByOperator, Image: "heliostat:1", Command: []string{"/manager"}}
	if change != nil {
		change(&container)
	}
	sidecar := corev1.Container{Name: "mesh", Args: []string{"proxy"}}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "home", Name: name, Labels: map[string]string{rayv1.LabelAppName: "kuberay-operator"}},
		Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{sidecar, container},
			Volumes: []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}}},
		}}},
	}
}

// TestThePlanIsThatOfTheOperatorInstalled: a head is named in one of two ways, and which one is a setting.
func TestThePlanIsThatOfTheOperatorInstalled(t *testing.T) {
	const fixed, drawn = "create Pod bare-head ", "create Pod bare-head-"
	setting := func(v corev1.EnvVar) func(*corev1.Container) {
		v.Name = "ENABLE_DETERMINISTIC_HEAD_POD_NAME"
		return func(c *corev1.Container) { c.Env = []corev1.EnvVar{v} }
	}
	args := func(args ...string) func(*corev1.Container) {
		return func(c *corev1.Container) { c.Args = args }
	}
	for name, tc := range map[string]struct {
		given []client.Object
		// want is how the head is made, and with what the plan says it was made.
		want []string
	}{
		"with its settings": {[]client.Object{installedOperator("one", setting(corev1.EnvVar{Value: "true"}))},
			[]string{fixed, "Planned with the settings of Deployment home/one."}},
		"of the one that looks after the namespace": {[]client.Object{installedOperator("one", args("--watch-namespace=other")), installedOperator("two", nil)},
			[]string{drawn, "Planned with the settings of Deployment home/two."}},
		"of none that looks elsewhere": {[]client.Object{installedOperator("one", args("--watch-namespace=other"))},
			[]string{drawn, "the default settings", "looks after namespace default"}},
		"of none of two": {[]client.Object{installedOperator("one", nil), installedOperator("two", nil)},
			[]string{drawn, "the default settings", "home/one, home/two"}},
		"of none whose settings stand elsewhere": {[]client.Object{installedOperator("one", setting(corev1.EnvVar{ValueFrom: &corev1.EnvVarSource{}}))},
			[]string{drawn, "the default settings", "ENABLE_DETERMINISTIC_HEAD_POD_NAME", "home/one"}},
		"of none whose flags are wrong": {[]client.Object{installedOperator("one", args("--burst=many"))},
			[]string{drawn, "the default settings", "many", "home/one"}},
	} {
		t.Run(name, func(t *testing.T) {
			k := clitest.New(append(clitest.Load(t, "bare"), tc.given...)...)
			if code := k.Run(t, New, "bare"); code != 0 {
				t.Fatalf("exit code %d: %s", code, k.ErrOut)
			}
			said := strings.Join(strings.Fields(k.Out.String()), " ")
			for _, want := range tc.want {
				if !strings.Contains(said, want) {
					t.Errorf("the plan lacks %q:\n%s", want, k.Out)
				}
			}
		})
	}
}
