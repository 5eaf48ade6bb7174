package chart

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
)

func TestTheFenceIsForThisInstallation(t *testing.T) {
	r := render(t, "serviceAccount: {name: sa}")
	for _, name := range []string{"fence", "holder"} {
		var policy admissionv1.ValidatingAdmissionPolicy
		r.into(t, "ValidatingAdmissionPolicy/ray-system-kuberay-operator-"+name, &policy)
		if got := policy.Spec.MatchConditions[0].Expression; got != "request.userInfo.username == 'system:serviceaccount:ray-system:sa'" {
			t.Errorf("policy %s is for %s", name, got)
		}
		for _, validation := range policy.Spec.Validations {
			// The operator knows the refusals of the fence by these words.
			if text := validation.Message + validation.MessageExpression; !strings.Contains(text, "heliostat fence: ") {
				t.Errorf("policy %s: a refusal says %q", name, text)
			}
		}
	}
	for _, name := range []string{"clusters", "headless", "origins", "ray"} {
		var binding admissionv1.ValidatingAdmissionPolicyBinding
		r.into(t, "ValidatingAdmissionPolicyBinding/ray-system-kuberay-operator-fence-"+name, &binding)
		if binding.Spec.ParamRef.Name != "ray-system" || binding.Spec.PolicyName != "ray-system-kuberay-operator-fence" {
			t.Errorf("binding %s binds %s to Holder %s", name, binding.Spec.PolicyName, binding.Spec.ParamRef.Name)
		}
	}
}

func TestTheFenceNeedsWhatItStandsOn(t *testing.T) {
	const policies, holders = "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy", "heliostat.io/v1alpha1/Holder"
	cases := map[string]struct {
		values string
		served []string
		want   bool
	}{
		"given all is served, it is there":                     {served: []string{policies, holders}, want: true},
		"given an old API server, it is not":                   {served: []string{holders}},
		"given a CRD that was never installed, it is not":      {served: []string{policies}},
		"given it is required, it is there whatever is served": {values: "fencing: required", want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, err := renderFor(t, tc.values, tc.served...)
			if err != nil {
				t.Fatal(err)
			}
			if got := r.has("ValidatingAdmissionPolicy/ray-system-kuberay-operator-fence"); got != tc.want {
				t.Errorf("the fence is there: %t, want %t", got, tc.want)
			}
		})
	}
}
