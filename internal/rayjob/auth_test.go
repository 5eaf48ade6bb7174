package rayjob

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/ray/poll"
)

func TestAJobOnAClusterThatAsksForATokenHasIt(t *testing.T) {
	for name, tc := range map[string]struct {
		options rayv1.AuthOptions
		secret  string
		// env are what the submitter has about authentication.
		env     []string
		volumes int
	}{
		"given no authentication, there is none": {},
		"given the operator's token": {options: rayv1.AuthOptions{Mode: rayv1.AuthModeToken}, secret: "train-bcd4f",
			env: []string{"RAY_AUTH_MODE", "RAY_AUTH_TOKEN"}},
		"given the user's token": {options: rayv1.AuthOptions{Mode: rayv1.AuthModeToken, SecretName: ptr.To("mine")}, secret: "mine",
			env: []string{"RAY_AUTH_MODE", "RAY_AUTH_TOKEN"}},
		"given tokens of Kubernetes, the submitter has its own": {
			options: rayv1.AuthOptions{Mode: rayv1.AuthModeToken, EnableK8sTokenAuth: ptr.To(true)},
			env:     []string{"RAY_AUTH_MODE", "RAY_ENABLE_K8S_TOKEN_AUTH"}, volumes: 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := given(rayv1.JobDeploymentStatusRunning, mode(rayv1.HTTPMode), cluster(rayv1.ClusterStateReady),
				answer(func(o *poll.Observation) { o.JobFound = poll.Missing }))
			s.Cluster.Spec.AuthOptions = &tc.options
			decision := Plan(s, settings, now)
			if decision.Ask.Secret != tc.secret {
				t.Errorf("Ray is asked with the token in %q, want %q", decision.Ask.Secret, tc.secret)
			}
			for _, a := range decision.Actions {
				if submit, ok := a.(action.Submit); ok && submit.Secret != tc.secret {
					t.Errorf("the job is sent with the token in %q, want %q", submit.Secret, tc.secret)
				}
			}
			template, err := submitterTemplate(s.Job, s.Cluster, settings)
			if err != nil {
				t.Fatal(err)
			}
			var env []string
			for _, e := range template.Spec.Containers[0].Env[3:] {
				env = append(env, e.Name)
			}
			if d := cmp.Diff(tc.env, env); d != "" {
				t.Errorf("variables of the submitter (-want +got):\n%s", d)
			}
			if len(template.Spec.Volumes) != tc.volumes {
				t.Errorf("volumes of the submitter: %v", template.Spec.Volumes)
			}
		})
	}
}
