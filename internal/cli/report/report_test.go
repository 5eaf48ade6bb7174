package report

import (
	"archive/zip"
	"io"
	"path/filepath"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/clitest"
)

// password stands wherever a secret may stand in the world of the test. It must stand nowhere in the report.
const password = "hunter2"

func secrets() []client.Object {
	variable := func(name string) corev1.EnvVar { return corev1.EnvVar{Name: name, Value: password} }
	// Only Secrets and ConfigMaps that the objects name are looked at.
	from := []corev1.EnvFromSource{
		{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "sec"}}},
		{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "conf"}}},
	}
	job := &rayv1.RayJob{
		ObjectMeta: metav1.ObjectMeta{Name: "j", Namespace: "default", UID: "job-uid", Annotations: map[string]string{
			corev1.LastAppliedConfigAnnotation: password, "example.com/token": password}},
		Spec: rayv1.RayJobSpec{
			RuntimeEnvYAML: "env_vars:\n  WHATEVER: " + password + "\npip: [numpy]\n",
			Metadata:       map[string]string{"auth": password},
			Entrypoint:     "python train.py --api-key " + password + " --password=" + password + " --db=postgres://me:" + password + "@db/x",
			RayClusterSpec: &rayv1.RayClusterSpec{HeadGroupSpec: rayv1.HeadGroupSpec{
				RayStartParams: map[string]string{"redis-password": password},
				Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "ray", EnvFrom: from,
					Env: []corev1.EnvVar{variable("REDIS_PASSWORD"), variable("HF_TOKEN"), variable("AWS_SECRET_ACCESS_KEY"), variable("OPENAI_API_KEY"), variable("DATABASE_URL"), variable("WHAT_ELSE"), variable("RAY_REDIS_PASSWORD")}}}}},
			}},
		},
	}
	broken := &rayv1.RayService{ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "default", UID: "service-uid"},
		Spec: rayv1.RayServiceSpec{ServeConfigV2: "applications: [" + password, RayClusterConfig: rayv1.RayClusterSpec{HeadGroupSpec: rayv1.HeadGroupSpec{
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "ray", EnvFrom: from}}}}}}}}
	submitter := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "j", Namespace: "default", UID: "submitter-uid", Labels: map[string]string{"ray.io/originated-from-cr-name": "j"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "ray.io/v1", Kind: "RayJob", Name: "j", UID: "job-uid", Controller: ptr.To(true)}}},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "submitter",
			Args: []string{"ray job submit --runtime-env-json '{\"env_vars\": {\"X\": \"" + password + " " + password + "\"}}'"}}}}}}}
	return []client.Object{
		job, broken, submitter,
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
		"objects/RayCluster/default/train.yaml":               "groupName: gpu",
		"objects/Pod/default/train-head-a.yaml":               "nodeName: a-3",
		"operator/Deployment/heliostat-system/heliostat.yaml": "registry.example/heliostat:v0.1.0",
		"findings.txt": "image-denied (blocking): Pod train-gpu-worker-b",
	} {
		if !strings.Contains(files[name], want) {
			t.Errorf("%s says %q, want %q in it", name, files[name], want)
		}
	}
	if code := k.Run(t, New, "train", "-f", file); code == 0 {
		t.Error("a report that was there already was overwritten")
	}
}

// TestWithoutLogsNothingThatProgramsWroteIsPacked is for those whose programs write secrets.
func TestWithoutLogsNothingThatProgramsWroteIsPacked(t *testing.T) {
	job := &rayv1.RayJob{ObjectMeta: metav1.ObjectMeta{Name: "j", Namespace: "default", UID: "job-uid"}, Status: rayv1.RayJobStatus{
		JobDeploymentStatus: "Failed", Reason: rayv1.AppFailed, Message: "it said " + password, PostMortem: &rayv1.RayJobPostMortem{Message: password}}}
	k := clitest.New(job)
	file := filepath.Join(t.TempDir(), "report.zip")
	if code := k.Run(t, New, "job/j", "-f", file, "--logs=false"); code != 0 {
		t.Fatalf("exit code %d: %s", code, k.ErrOut)
	}
	for name, text := range unpack(t, file) {
		if strings.Contains(text, password) {
			t.Errorf("what a program wrote stands in %s:\n%s", name, text)
		}
	}
}

func TestLinesWithoutSecrets(t *testing.T) {
	for text, want := range map[string]string{
		"ray start --head --num-cpus=0":               "ray start --head --num-cpus=0",
		"ray start --redis-password=a --port 6379":    "ray start --redis-password=REDACTED --port 6379",
		"x --token 'a b' --y":                         "x --token REDACTED --y",
		"API_KEY=abc python x.py":                     "API_KEY=REDACTED python x.py",
		"redis://user:pw@redis:6379/0":                "redis://user:REDACTED@redis:6379/0",
		`ray job submit --runtime-env-json '{"a":1}'`: "REDACTED",
	} {
		if got := (redactor{}).line(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
