package raycluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

func withAuth(options rayv1.AuthOptions) func(*rayv1.RayCluster) {
	return func(c *rayv1.RayCluster) {
		autoscaled()(c)
		c.Spec.RayVersion, c.Spec.AuthOptions = "2.55.0", &options
	}
}

// authEnv are the variables about authentication, a reference to a Secret as "<secret>/<key>".
func authEnv(container corev1.Container) []string {
	var got []string
	for _, env := range container.Env {
		if !strings.Contains(env.Name, "AUTH") {
			continue
		}
		value := env.Value
		if env.ValueFrom != nil {
			value = env.ValueFrom.SecretKeyRef.Name + "/" + env.ValueFrom.SecretKeyRef.Key
		}
		got = append(got, env.Name+"="+value)
	}
	return got
}

func TestAuthOfContainers(t *testing.T) {
	own := []string{"RAY_AUTH_MODE=token", "RAY_AUTH_TOKEN=demo/auth_token"}
	kubernetes := []string{"RAY_AUTH_MODE=token", "RAY_ENABLE_K8S_TOKEN_AUTH=true"}
	for name, tc := range map[string]struct {
		options rayv1.AuthOptions
		want    []string
		mounted bool
	}{
		"given no mode, authentication is off": {want: []string{"RAY_AUTH_MODE=disabled"}},
		"given it is disabled, it is off":      {options: rayv1.AuthOptions{Mode: rayv1.AuthModeDisabled}, want: []string{"RAY_AUTH_MODE=disabled"}},
		"given a token, it is the operator's":  {options: rayv1.AuthOptions{Mode: rayv1.AuthModeToken}, want: own},
		"given an empty name, it is the operator's": {
			options: rayv1.AuthOptions{Mode: rayv1.AuthModeToken, SecretName: ptr.To("")}, want: own},
		"given a Secret, it is the user's": {
			options: rayv1.AuthOptions{Mode: rayv1.AuthModeToken, SecretName: ptr.To("s")},
			want:    []string{"RAY_AUTH_MODE=token", "RAY_AUTH_TOKEN=s/auth_token"}},
		"given Kubernetes, tokens are those of service accounts": {
			options: rayv1.AuthOptions{Mode: rayv1.AuthModeToken, EnableK8sTokenAuth: ptr.To(true)}, want: kubernetes, mounted: true},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := demoCluster(withAuth(tc.options), func(c *rayv1.RayCluster) {
				groupA(c).Template.Spec.InitContainers = []corev1.Container{{Name: "users"}}
				groupA(c).Template.Spec.Containers = append(groupA(c).Template.Spec.Containers, corev1.Container{Name: "users"})
			})
			head, worker := headOf(cluster), workerOf(cluster)
			for place, container := range map[string]corev1.Container{"head": head.Spec.Containers[0], "autoscaler": head.Spec.Containers[1],
				"worker": worker.Spec.Containers[0], "init container": worker.Spec.InitContainers[1]} {
				if d := cmp.Diff(tc.want, authEnv(container)); d != "" {
					t.Errorf("%s (-want +got):\n%s", place, d)
				}
				mounted := slices.ContainsFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool {
					return m.Name == "ray-token" && m.MountPath == "/var/run/secrets/ray.io/serviceaccount" && m.ReadOnly
				})
				if mounted != tc.mounted {
					t.Errorf("%s has the volume mounted: %v, want %v", place, mounted, tc.mounted)
				}
			}
			if got := slices.Concat(authEnv(worker.Spec.Containers[1]), authEnv(worker.Spec.InitContainers[0])); got != nil {
				t.Errorf("containers of the user have %v", got)
			}
			for _, pod := range []*corev1.Pod{head, worker} {
				if _, volumes := namesIn(pod); slices.Contains(volumes, "ray-token") != tc.mounted {
					t.Errorf("volumes %v", volumes)
				}
			}
		})
	}
}

func TestTheTokenOfACluster(t *testing.T) {
	token := func(w *world) { withAuth(rayv1.AuthOptions{Mode: rayv1.AuthModeToken})(w.Cluster) }
	secretOf := func(w *world) *corev1.Secret { return w.owned(kindSecret, "demo").(*corev1.Secret) }
	later := metav1.NewTime(planNow.Add(time.Hour))

	t.Run("Pods wait until it is there, and say which one they have", func(t *testing.T) {
		w := demo(token)
		first := w.pass(planNow)
		if !slices.Contains(first, "make token demo") || slices.Contains(first, "create head") {
			t.Fatalf("the first pass does %v", first)
		}
		if second := w.pass(planNow); !cmp.Equal(second, []string{"create head", "create a/0", "create a/1"}) {
			t.Fatalf("the second pass does %v", second)
		}
		for _, pod := range w.Pods {
			if len(pod.Annotations[rayv1.AnnotationToken]) != 8 {
				t.Errorf("Pod %s has annotations %v", pod.Name, pod.Annotations)
			}
		}
	})
	roll := []string{"delete head", "delete a/0", "delete a/1"}
	for name, tc := range map[string]struct {
		when func(*world)
		want [][]string
	}{
		"as long as it stays, nothing happens": {when: func(*world) {}, want: [][]string{nil}},
		"a lost one is made anew, and all Pods after it": {
			when: func(w *world) {
				w.Owned = slices.DeleteFunc(w.Owned, func(object client.Object) bool { return kindOf(object) == kindSecret })
			},
			want: [][]string{{"make token demo"}, roll}},
		"an edited one makes all Pods go": {
			when: func(w *world) { secretOf(w).Data["auth_token"] = []byte("edited") }, want: [][]string{roll}},
		"a Secret without one is deleted, so that it is made anew": {
			when: func(w *world) { secretOf(w).Data = nil }, want: [][]string{{"delete demo"}}},
		"Pods of another operator that had it all along stay": {
			when: func(w *world) {
				for _, pod := range w.Pods {
					delete(pod.Annotations, rayv1.AnnotationToken)
				}
			}, want: [][]string{nil}},
		"Pods of another operator that are older than it go": {
			when: func(w *world) {
				for _, pod := range w.Pods {
					delete(pod.Annotations, rayv1.AnnotationToken)
				}
				secretOf(w).CreationTimestamp = later
			}, want: [][]string{roll}},
		"Pods from before authentication stay": {
			when: func(w *world) {
				for _, pod := range w.Pods {
					delete(pod.Annotations, rayv1.AnnotationToken)
					pod.Spec.Containers[0].Env = nil
				}
				secretOf(w).CreationTimestamp = later
			}, want: [][]string{nil}},
	} {
		t.Run(name, func(t *testing.T) {
			w := settled(token)
			tc.when(w)
			var got [][]string
			for range tc.want {
				got = append(got, w.pass(planNow))
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("passes (-want +got):\n%s", d)
			}
		})
	}
	t.Run("with a Secret of the user, or tokens of Kubernetes, none is made", func(t *testing.T) {
		for _, options := range []rayv1.AuthOptions{{Mode: rayv1.AuthModeToken, SecretName: ptr.To("s")},
			{Mode: rayv1.AuthModeToken, EnableK8sTokenAuth: ptr.To(true)}, {}} {
			w := demo(func(w *world) { withAuth(options)(w.Cluster) })
			did := slices.Concat(w.pass(planNow), w.pass(planNow))
			if slices.Contains(did, "make token demo") || !slices.Contains(did, "create head") {
				t.Errorf("given %+v, two passes do %v", options, did)
			}
		}
	})
}

func TestValidateAuth(t *testing.T) {
	token := rayv1.AuthOptions{Mode: rayv1.AuthModeToken}
	kubernetes := rayv1.AuthOptions{Mode: rayv1.AuthModeToken, EnableK8sTokenAuth: ptr.To(true)}
	for name, tc := range map[string]struct {
		options rayv1.AuthOptions
		version string
		creator string
		want    []string
	}{
		"given no mode, any version is fine":   {},
		"given a token and Ray 2.52":           {options: token, version: "2.52.0"},
		"given a token and no version":         {options: token, want: []string{"spec.authOptions.mode"}},
		"given a token and no real version":    {options: token, version: "nightly", want: []string{"spec.authOptions.mode"}},
		"given a token and Ray 2.51":           {options: token, version: "2.51.0", want: []string{"spec.authOptions.mode"}},
		"given Kubernetes and Ray 2.55":        {options: kubernetes, version: "2.55.0"},
		"given Kubernetes and Ray 2.54":        {options: kubernetes, version: "2.54.1", want: []string{"spec.authOptions.enableK8sTokenAuth"}},
		"given Kubernetes without a mode":      {options: rayv1.AuthOptions{EnableK8sTokenAuth: ptr.To(true)}, version: "2.55.0", want: []string{"spec.authOptions.enableK8sTokenAuth"}},
		"given Kubernetes and a RayJob":        {options: kubernetes, version: "2.55.0", creator: "RayJob", want: []string{"spec.authOptions.enableK8sTokenAuth"}},
		"given Kubernetes and a Secret":        {options: rayv1.AuthOptions{Mode: rayv1.AuthModeToken, EnableK8sTokenAuth: ptr.To(true), SecretName: ptr.To("s")}, version: "2.55.0", want: []string{"spec.authOptions.secretName"}},
		"given Kubernetes and an empty Secret": {options: rayv1.AuthOptions{Mode: rayv1.AuthModeToken, EnableK8sTokenAuth: ptr.To(true), SecretName: ptr.To("")}, version: "2.55.0"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, err := range Validate(demoCluster(func(c *rayv1.RayCluster) {
				c.Spec.RayVersion, c.Spec.AuthOptions = tc.version, &tc.options
				c.Labels = map[string]string{rayv1.LabelOriginatedFromKind: tc.creator}
			}), DefaultSettings()) {
				path, _, _ := strings.Cut(err.Error(), ":")
				got = append(got, path)
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("fields (-want +got):\n%s", d)
			}
		})
	}
}
