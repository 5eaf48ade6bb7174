package report

import (
	"archive/zip"
	"io"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/clitest"
)

// password stands wherever a secret may stand in the world of the test. It must stand nowhere in the report.
const password = "hunter2"

func secrets() []client.Object {
	variable := func(name string) corev1.EnvVar { return corev1.EnvVar{Name: name, Value: password} }
	job := &rayv1.RayJob{
		ObjectMeta: metav1.ObjectMeta{Name: "j", Namespace: "default", UID: "job-uid", Annotations: map[string]string{
			corev1.LastAppliedConfigAnnotation: password, "example.com/token": password}},
		Spec: rayv1.RayJobSpec{
			RuntimeEnvYAML: "env_vars:\n  WHATEVER: " + password + "\npip: [numpy]\n",
			Metadata:       map[string]string{"auth": password},
			RayClusterSpec: &rayv1.RayClusterSpec{HeadGroupSpec: rayv1.HeadGroupSpec{
				RayStartParams: map[string]string{"redis-password": password},
				Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "ray",
					Env: []corev1.EnvVar{variable("REDIS_PASSWORD"), variable("HF_TOKEN"), variable("AWS_SECRET_ACCESS_KEY"), variable("OPENAI_API_KEY")}}}}},
			}},
		},
	}
	broken := &rayv1.RayService{ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "default", UID: "service-uid"},
		Spec: rayv1.RayServiceSpec{ServeConfigV2: "applications: [" + password}}
	return []client.Object{
		job, broken,
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "sec", Namespace: "default"}, Data: map[string][]byte{"the-key": []byte(password)}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "conf", Namespace: "default"}, Data: map[string]string{"the-other-key": password}},
	}
}

func unpack(t *testing.T, file string) map[string]string {
	t.Helper()
	archive, err := zip.OpenReader(file)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	files := map[string]string{}
	for _, f := range archive.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		_, name, _ := strings.Cut(f.Name, "/")
		files[name] = string(text)
	}
	return files
}

func TestAReportHoldsNoSecret(t *testing.T) {
	for _, argument := range []string{"job/j", "service/s"} {
		k := clitest.New(secrets()...)
		file := filepath.Join(t.TempDir(), "report.zip")
		if code := k.Run(t, New, argument, "-f", file); code != 0 {
			t.Fatalf("exit code %d: %s", code, k.ErrOut)
		}
		files := unpack(t, file)
		for name, text := range files {
			if strings.Contains(text, password) {
				t.Errorf("%s: a secret stands in %s:\n%s", argument, name, text)
			}
		}
		for name, want := range map[string]string{"objects/secret-keys.yaml": "the-key", "objects/configmap-keys.yaml": "the-other-key"} {
			if !strings.Contains(files[name], want) {
				t.Errorf("%s: %s has lost the key %s:\n%s", argument, name, want, files[name])
			}
		}
	}
}

func TestAReportKeepsWhatHelps(t *testing.T) {
	k := clitest.New(append(clitest.Load(t, "degraded"), secrets()...)...)
	file := filepath.Join(t.TempDir(), "report.zip")
	if code := k.Run(t, New, "train", "-f", file); code != 0 {
		t.Fatalf("exit code %d: %s", code, k.ErrOut)
	}
	files := unpack(t, file)
	for name, want := range map[string]string{
		"objects/RayCluster/train.yaml":      "groupName: gpu",
		"objects/Pod/train-head-a.yaml":      "nodeName: a-3",
		"operator/Deployment/heliostat.yaml": "registry.example/heliostat:v0.1.0",
		"findings.txt":                       "image-denied (blocking): Pod train-gpu-worker-b",
	} {
		if !strings.Contains(files[name], want) {
			t.Errorf("%s says %q, want %q in it", name, files[name], want)
		}
	}
	if code := k.Run(t, New, "train", "-f", file); code == 0 {
		t.Error("a report that was there already was overwritten")
	}
}
