package gather

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/diagnose"
	"github.com/heliostat-io/heliostat/internal/rights"
)

// reviewer answers what an account may do, and writes down what it was asked.
type reviewer struct {
	// denied are refused.
	denied func(rights.Right) bool
	err    error

	mu    sync.Mutex
	asked []rights.Right
}

func (r *reviewer) May(_ context.Context, right rights.Right) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, right)
	return !r.denied(right), r.err
}

func (r *reviewer) Serves(string) bool { return false }

func makesPods(r rights.Right) bool { return r.Resource == "pods" && r.Verb == "create" }

// running is a Deployment of an operator with arguments.
func running(image string, args ...string) *appsv1.Deployment {
	labels := map[string]string{rayv1.LabelAppName: "kuberay-operator"}
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "home", Name: "kuberay-operator", Labels: labels}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			ServiceAccountName: "sa", Containers: []corev1.Container{{Image: image, Command: []string{"/manager"}, Args: args,
				VolumeMounts: []corev1.VolumeMount{{Name: "config", MountPath: "/etc/kuberay"}}}},
			Volumes: []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}}}}}}}
}

func TestWhatTheOperatorMayNotDo(t *testing.T) {
	const heliostat, user = "heliostat:1", "system:serviceaccount:home:sa"
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "home", Name: "settings"}, Data: map[string]string{
		"config.yaml": "apiVersion: config.ray.io/v1alpha1\nkind: Configuration\nwatchNamespace: a,b\n"}}
	missing := func(namespaces ...string) []rights.Right {
		all := []rights.Right{}
		for _, namespace := range namespaces {
			all = append(all, rights.Right{User: user, Verb: "create", Resource: "pods", Namespace: namespace})
		}
		return all
	}
	nobody := func(rights.Right) bool { return false }
	for name, tc := range map[string]struct {
		deployment *appsv1.Deployment
		denied     func(rights.Right) bool
		err        error
		want       []rights.Right
		gap        string
		asked      int
	}{
		"given all rights, none is missing":                       {deployment: running(heliostat), denied: nobody, want: []rights.Right{}, asked: 80},
		"given all namespaces, a right is missing in all":         {deployment: running(heliostat), denied: makesPods, want: missing(""), asked: 80},
		"given flags, a right is missing in each namespace":       {deployment: running(heliostat, "--watch-namespace=a,b"), denied: makesPods, want: missing("a", "b"), asked: 160},
		"given a configuration file, the same":                    {deployment: running(heliostat, "--config", "/etc/kuberay/config.yaml"), denied: makesPods, want: missing("a", "b"), asked: 160},
		"given a configuration that nobody can read, it is a gap": {deployment: running(heliostat, "--config=/elsewhere"), denied: makesPods, gap: "does not come from a ConfigMap"},
		"given a user who may not ask, one question and a gap":    {deployment: running(heliostat), denied: nobody, err: errors.New("you may not"), gap: "you may not", asked: 1},
		"given many namespaces, a bounded number of questions": {deployment: running(heliostat, "--watch-namespace="+strings.Join(strings.Split("abcdefghijkl", ""), ",")),
			denied: nobody, want: []rights.Right{}, gap: "only 400 of", asked: mostAsked},
		"given KubeRay, nothing is asked": {deployment: running("kuberay:1"), denied: makesPods},
	} {
		t.Run(name, func(t *testing.T) {
			from, reviews := source(t, nothing, tc.deployment, settings), &reviewer{denied: tc.denied, err: tc.err}
			from.Rights = reviews
			s := from.OfOperator(t.Context())
			if !slices.Equal(s.Operator.Refused, tc.want) || (s.Operator.Refused == nil) != (tc.want == nil) {
				t.Errorf("refused: got %v, want %v", s.Operator.Refused, tc.want)
			}
			i := slices.IndexFunc(s.Gaps, func(g diagnose.Gap) bool { return g.What == OperatorRights })
			if (i >= 0) != (tc.gap != "") || i >= 0 && !strings.Contains(s.Gaps[i].Why, tc.gap) {
				t.Errorf("gaps %v, want one that says %q", s.Gaps, tc.gap)
			}
			if n := len(reviews.asked); n < tc.asked || tc.asked <= 1 && n > tc.asked || n > mostAsked {
				t.Errorf("%d rights were asked for, want %d", n, tc.asked)
			}
		})
	}
}

// TestWhatMattersToAnObject: of an operator for many namespaces only that of the object is asked about.
func TestWhatMattersToAnObject(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want []string
	}{
		"given single namespaces, that of the object":               {[]string{"--watch-namespace=ns,other"}, []string{"ns"}},
		"given all namespaces, Pods are made in that of the object": {nil, []string{"ns"}},
		"given namespaces without that of the object, none":         {[]string{"--watch-namespace=other"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			from := source(t, nothing, append(objects, cluster(), running("heliostat:1", tc.args...))...)
			from.Rights = &reviewer{denied: makesPods}
			var got []string
			for _, right := range from.Of(t.Context(), cluster()).Operator.Refused {
				got = append(got, right.Namespace)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("Pods cannot be made in %v, want %v", got, tc.want)
			}
		})
	}
}
