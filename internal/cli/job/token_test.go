package job

import (
	"context"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
)

// asksForServiceAccounts has the cluster of every RayJob take tokens of service accounts.
func asksForServiceAccounts(ctx context.Context, c client.Client, job *rayv1.RayJob) error {
	job.Spec.RayClusterSpec.AuthOptions = &rayv1.AuthOptions{Mode: rayv1.AuthModeToken, EnableK8sTokenAuth: ptr.To(true)}
	return makeReady(ctx, c, job)
}

func TestTheTokenForTheAPIServerIsNeverHandedToRay(t *testing.T) {
	cases := map[string]struct {
		args     []string
		variable string
		wantCode int
		want     string // of what is sent
	}{
		"given no other, then the command ends and says how to get one": {wantCode: 1},
		"given one in the variable, then that is sent":                  {variable: "of-variable", want: "Bearer of-variable"},
		"given one as a flag, then that is sent":                        {args: []string{"--ray-token", "of-flag"}, variable: "of-variable", want: "Bearer of-flag"},
		"given one as a header, then that is sent":                      {args: []string{"--headers", `{"Authorization": "Bearer of-header"}`}, want: "Bearer of-header"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv(authVariable, tc.variable)
			ray := newFakeRay(t, jobLog)
			w := newWorld(t, ray)
			w.operate = asksForServiceAccounts
			w.Env.Config = func() (*rest.Config, error) { return &rest.Config{BearerToken: "of-the-administrator"}, nil }
			args := append(tc.args, "--name", "j", "--working-dir", sources(t), "--", "python", "main.py")
			if code := w.submit(t, args...); code != tc.wantCode {
				t.Errorf("exit code %d: %s", code, w.ErrOut)
			}
			if got := ray.header.Get("Authorization"); got != tc.want {
				t.Errorf("sent %q, want %q", got, tc.want)
			}
			if told := w.ErrOut.String(); tc.wantCode != 0 && (!strings.Contains(told, "kubectl create token") || !strings.Contains(told, "--ray-token")) {
				t.Errorf("told %q", told)
			}
		})
	}
}

func TestATokenThatIsMissingIsSaidBeforeAnythingIsMade(t *testing.T) {
	t.Setenv(authVariable, "")
	file := write(t, "job.yaml", strings.Replace(interactive, "clusterSelector: {ray.io/cluster: shared}",
		"rayClusterSpec: {authOptions: {mode: token, enableK8sTokenAuth: true}, headGroupSpec: {template: {}}}", 1))
	w := newWorld(t, newFakeRay(t, ""))
	code := w.submit(t, "-f", file, "--working-dir", sources(t), "--", "python", "main.py")
	if code != 1 || !strings.Contains(w.ErrOut.String(), "kubectl create token") || len(w.jobs(t)) != 0 {
		t.Errorf("exit code %d, %d RayJobs: %s", code, len(w.jobs(t)), w.ErrOut)
	}
}

func TestATokenThatIsRefusedIsNotShownAgain(t *testing.T) {
	cases := map[string]struct {
		refuse func(*fakeRay)
		want   string
	}{
		"given Ray refuses it, then that is the end": {func(ray *fakeRay) { ray.RequireToken("right") }, "submit the job: "},
		"given something before Ray refuses it, then that is the end": {func(ray *fakeRay) {
			ray.Inject(fakedashboard.Fault{Endpoint: fakedashboard.EndpointHealth, Code: http.StatusForbidden, Body: "no"})
		}, "the dashboard of RayCluster default/j-x2345 cannot be reached: "},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ray := newFakeRay(t, jobLog)
			tc.refuse(ray)
			w := newWorld(t, ray)
			code := w.submit(t, "--ray-token", "wrong", "--name", "j", "--working-dir", sources(t), "--", "python", "main.py")
			told := w.ErrOut.String()
			if code != 1 || !strings.Contains(told, tc.want) || !strings.Contains(told, "refused the authentication token") {
				t.Errorf("exit code %d: %s", code, told)
			}
			if strings.Contains(told, "Waiting for the dashboard") || strings.Contains(told, "Trying again") {
				t.Errorf("it was tried again: %s", told)
			}
		})
	}
}

func TestWhatIsShownToRay(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c"}, Data: map[string][]byte{"auth_token": []byte("of-secret")}}
	const open, tunnelled = "http://ray.example.com:8265", "http://127.0.0.1:8265"
	cases := map[string]struct {
		address, flag, variable string
		want                    string
		wantSaid                bool
	}{
		"given a forwarded port, then the cluster's own":                        {variable: "of-another", want: "of-secret"},
		"given an address on this machine, then the cluster's own":              {address: tunnelled, want: "of-secret"},
		"given an encrypted address, then the cluster's own":                    {address: "https://ray.example.com", want: "of-secret"},
		"given an address that others can listen to, then nothing, and a word":  {address: open, wantSaid: true},
		"given that and a variable, then the user wants it so":                  {address: open, variable: "of-variable", want: "of-variable"},
		"given that and a flag, then the user wants it so":                      {address: open, flag: "of-flag", want: "of-flag"},
		"given a flag, then it outranks the Secret":                             {flag: "of-flag", want: "of-flag"},
		"given an address of version 6 on this machine, then the cluster's own": {address: "http://[::1]:8265", want: "of-secret"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv(authVariable, tc.variable)
			w := newWorld(t, newFakeRay(t, ""), secret.DeepCopy())
			f := &flags{address: tc.address, rayToken: tc.flag, logColor: "auto"}
			r := &run{env: w.Env, client: w.WithWatch, flags: f, plan: &prepared{}, progress: newProgress(w.Env, f)}
			c := &rayv1.RayCluster{ObjectMeta: secret.ObjectMeta, Spec: rayv1.RayClusterSpec{AuthOptions: &rayv1.AuthOptions{Mode: rayv1.AuthModeToken}}}
			got, err := r.token(t.Context(), c)
			if said := strings.Contains(w.ErrOut.String(), "is not sent"); err != nil || got != tc.want || said != tc.wantSaid {
				t.Errorf("token %q, %v; said %q", got, err, w.ErrOut)
			}
		})
	}
}
