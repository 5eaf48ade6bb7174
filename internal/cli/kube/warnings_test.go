package kube_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-io/heliostat/internal/cli/kube"
)

// warning serves one Pod and what is needed to find it, and warns whenever the Pod is read.
func warning(t *testing.T) *httptest.Server {
	t.Helper()
	kind := func(name string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: "v1", Kind: name} }
	answers := map[string]any{
		"/api":  metav1.APIVersions{TypeMeta: kind("APIVersions"), Versions: []string{"v1"}},
		"/apis": metav1.APIGroupList{TypeMeta: kind("APIGroupList")},
		"/api/v1": metav1.APIResourceList{TypeMeta: kind("APIResourceList"), GroupVersion: "v1",
			APIResources: []metav1.APIResource{{Name: "pods", SingularName: "pod", Namespaced: true, Kind: "Pod", Verbs: metav1.Verbs{"get"}}}},
		"/api/v1/namespaces/default/pods/p": corev1.Pod{TypeMeta: kind("Pod"),
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if _, isPod := answer.(corev1.Pod); isPod {
			w.Header().Set("Warning", `299 - "this will go away"`)
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

func TestWarningsOfTheAPIServer(t *testing.T) {
	// Given an API server that warns
	var out, errOut bytes.Buffer
	env := kube.NewEnv(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &errOut}, "kubectl ray", "v0.0.0-test")
	*env.Flags.KubeConfig = "/dev/null"
	*env.Flags.APIServer = warning(t).URL

	// When a command asks it more than once, and with both clients
	c, err := env.Client()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "p"}, &corev1.Pod{}); err != nil {
			t.Fatal(err)
		}
	}
	set, err := env.Clientset()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := set.CoreV1().Pods("default").Get(t.Context(), "p", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}

	// Then the user is told once
	if got, want := errOut.String(), "Warning: this will go away\n"; got != want || out.Len() > 0 {
		t.Errorf("said %q and %q, want %q", out.String(), got, want)
	}
}
