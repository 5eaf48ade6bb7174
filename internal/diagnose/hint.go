package diagnose

import (
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/excerpt"
)

// Limits of the parts of a text, in bytes, so that its hint is never cut off by those for conditions and events.
const (
	maxEvidence = 500
	maxCause    = 400
	maxHint     = 420
)

// hintAt is a hint at the end of a line.
var hintAt = regexp.MustCompile(`(?m) *\[finding ([a-z0-9-]+): .*\]$`)

// Hint is how the operator names a finding at the end of its own texts, for people and for scripts: "[finding ID: what to do]".
func (f Finding) Hint() string {
	next := strings.TrimSuffix(oneLine(f.Explained().Next), ".")
	return "[finding " + f.ID + ": " + excerpt.Beginning(next, maxHint-len("[finding : ]")-len(f.ID)) + "]"
}

// String is all about a finding on one line: object, evidence, cause and hint.
func (f Finding) String() string {
	evidence, cause := excerpt.Beginning(oneLine(f.Message), maxEvidence), oneLine(f.Explained().Cause)
	text := f.Object
	if evidence != "" {
		text += ": " + strings.TrimSuffix(evidence, ".") + "."
	}
	// Some causes repeat the evidence.
	if cause != "" && (evidence == "" || !strings.Contains(cause, strings.TrimSuffix(evidence, "."))) {
		text += " " + excerpt.Beginning(cause, maxCause)
	}
	return text + " " + f.Hint()
}

// HintIn is the id of the finding that a text ends with, or empty.
func HintIn(text string) string {
	m := hintAt.FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	return m[1]
}

// Plain is a text without hints.
func Plain(text string) string {
	if !strings.Contains(text, "[finding ") {
		return text
	}
	return hintAt.ReplaceAllString(text, "")
}

// plain are conditions without hints: rules read what is wrong from them, and a hint is what a rule has made of that.
func plain(conditions []metav1.Condition) []metav1.Condition {
	hinted := func(c metav1.Condition) bool { return strings.Contains(c.Message, "[finding ") }
	if !slices.ContainsFunc(conditions, hinted) {
		return conditions
	}
	conditions = slices.Clone(conditions)
	for i := range conditions {
		conditions[i].Message = Plain(conditions[i].Message)
	}
	return conditions
}

// Refusal is the finding about a write for an object that the API server did not take, by its text; the zero Finding when no
// rule knows the text.
func Refusal(owner runtime.Object, text string) Finding {
	kind := refusalOf(text)
	if kind == notRefused {
		return Finding{}
	}
	var s Snapshot
	switch o := owner.(type) {
	case *rayv1.RayCluster:
		s.Clusters = []*rayv1.RayCluster{o}
	case *rayv1.RayJob:
		s.Jobs = []*rayv1.RayJob{o}
	case *rayv1.RayService:
		s.Service = o
	case *rayv1.RayCronJob:
		s.CronJob = o
	default:
		return Finding{}
	}
	s.told = []refusal{{kind, s.objects()[0].String(), oneLine(text)}}
	for _, rule := range rightsRules() {
		if rule.id == "autoscaler-rights-missing" {
			continue // it is about no refusal
		}
		for _, finding := range rule.find(&s) {
			finding.ID, finding.Severity = rule.id, rule.severity
			return finding
		}
	}
	return Finding{}
}

// Explains tells whether a finding is what a line of a condition speaks of.
func (f Finding) Explains(reason, line string) bool {
	kind := refusalOf(line)
	switch {
	case kind != notRefused && kind == refusalOf(f.Message):
		return true
	case strings.HasPrefix(f.Object, "Pod "):
		return names(line, strings.TrimPrefix(f.Object, "Pod ")) && (f.Reason == reason || strings.Contains(line, ": "+f.Reason))
	default:
		return f.Reason == reason
	}
}
