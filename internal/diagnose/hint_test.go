package diagnose

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

func TestATextOfAFindingEndsWithItsHint(t *testing.T) {
	long := strings.Repeat("and so on ", 200)
	for name, tc := range map[string]struct {
		given Finding
		want  string
	}{
		"given its own cause and next step, they are told": {
			Finding{ID: "image-not-found", Object: "Pod p", Message: "container ray: not found", Cause: "No image.", Next: "Correct\nit."},
			"Pod p: container ray: not found. No image. [finding image-not-found: Correct it]"},
		"given none, those of the catalogue are": {
			Finding{ID: "pod-security", Object: "RayCluster demo", Message: "denied."},
			"RayCluster demo: denied. " + Explain("pod-security").Cause + " [finding pod-security: " + strings.TrimSuffix(Explain("pod-security").Next, ".") + "]"},
		"given a cause that repeats the evidence, it is told once": {
			Finding{ID: "spec-invalid", Object: "RayCluster demo", Message: "spec.a: no", Cause: "It breaks a rule: spec.a: no.", Next: "Correct it."},
			"RayCluster demo: spec.a: no. [finding spec-invalid: Correct it]"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.given.String()); diff != "" {
				t.Errorf("the text (-want +got):\n%s", diff)
			}
			if got := HintIn(tc.given.String()); got != tc.given.ID {
				t.Errorf("the id in it is %q, want %q", got, tc.given.ID)
			}
		})
	}
	if got := (Finding{ID: "stalled", Object: "RayJob a", Message: long, Cause: long + "!", Next: long}).String(); len(got) > 1500 || HintIn(got) != "stalled" {
		t.Errorf("a text of %d bytes with the id %q", len(got), HintIn(got))
	}
}

func TestPlainTextHasNoHints(t *testing.T) {
	given := "head: Pod a: Error: b [finding oom-killed: Raise spec.workerGroupSpecs[0] or [more]]\ngroup x: c\ngroup y: d [finding dns-x: e]"
	if diff := cmp.Diff("head: Pod a: Error: b\ngroup x: c\ngroup y: d", Plain(given)); diff != "" {
		t.Errorf("plain text (-want +got):\n%s", diff)
	}
	if got := Plain("nothing [of the kind]"); got != "nothing [of the kind]" {
		t.Errorf("a text without hint became %q", got)
	}
}

// TestEachFindingHasAHintThatCanBeRead is about every id, since scripts read it.
func TestEachFindingHasAHintThatCanBeRead(t *testing.T) {
	for _, entry := range Catalogue() {
		text := "evidence " + Finding{ID: entry.ID}.Hint()
		if HintIn(text) != entry.ID || Plain(text) != "evidence" {
			t.Errorf("of %q the id read is %q, and the rest %q", text, HintIn(text), Plain(text))
		}
	}
}

func TestARefusalHasTheIDThatThePluginFinds(t *testing.T) {
	owner := &rayv1.RayCluster{ObjectMeta: metav1.ObjectMeta{Name: "demo"}}
	for text, want := range map[string]string{
		`pods "a" is forbidden: exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0`:                             "quota-exceeded",
		`pods "a" is forbidden: violates PodSecurity "restricted:latest": privileged`:                                            "pod-security",
		`Internal error occurred: failed calling webhook "w.example.com": connection refused`:                                    "webhook-unreachable",
		`admission webhook "w.example.com" denied the request: no`:                                                               "admission-denied",
		`pods "a" is forbidden: no PriorityClass with name high was found`:                                                       "priority-class-missing",
		`pods is forbidden: User "system:serviceaccount:a:b" cannot create resource "pods" in API group "" in the namespace "n"`: "operator-forbidden",
		`pods "a" is forbidden: maximum cpu usage per Container is 1, but limit is 8`:                                            "limit-range",
		"something else": "",
	} {
		if got := Refusal(owner, text); got.ID != want || got.Found() != (want != "") {
			t.Errorf("%s: found %q, want %q", text, got.ID, want)
		}
	}
}

// TestHintsAreNoEvidence keeps the plugin from finding twice, and with longer words, what the operator has found.
func TestHintsAreNoEvidence(t *testing.T) {
	given := func(hint string) *Snapshot {
		s := healthy()
		text := `pods "a" is forbidden: exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0`
		s.Clusters[0].Status.Conditions = append(s.Clusters[0].Status.Conditions,
			metav1.Condition{Type: rayv1.ConditionReplicaFailure, Status: metav1.ConditionTrue, Reason: "FailedCreateWorkerPod", Message: "group a: " + text + hint},
			metav1.Condition{Type: rayv1.ConditionStalled, Status: metav1.ConditionTrue, Reason: "FailedCreateWorkerPod", Message: "group a: " + text + hint})
		if hint != "" {
			s.Clusters[0].Status.Conditions = append(s.Clusters[0].Status.Conditions,
				metav1.Condition{Type: rayv1.ConditionTroubled, Status: metav1.ConditionTrue, Reason: "QuotaExceeded", Message: "RayCluster demo: " + text + hint})
		}
		return s
	}
	if diff := cmp.Diff(messages(Findings(given(""))), messages(Findings(given(" [finding quota-exceeded: Raise it]")))); diff != "" {
		t.Errorf("findings without and with hints:\n%s", diff)
	}
}
