package diagnose

import (
	"slices"
	"strings"
	"time"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

const (
	// allPatience is longer than any patience of the rules by which the operator judges.
	allPatience = 15 * time.Minute
	// leastAgain is the pause between two judgements that differ by time alone. Many Pods start one after the other.
	leastAgain = 5 * time.Second
)

// ownRules are the ids of the rules by which the operator judges an object of a kind, besides those about Pods. They are those whose whole
// picture stands in the caches that it has anyway: a rule that concludes from what is not there would give false alarms. Missing too
// are the rules about what the operator itself is about to make, and advice on what works.
func ownRules(kind string) []string {
	refused := []string{"spec-invalid", "name-collision", "operator-forbidden", "owner-reference-refused", "quota-exceeded", "limit-range",
		"pod-security", "webhook-unreachable", "admission-denied", "pod-invalid", "priority-class-missing"}
	switch kind {
	case rayv1.KindRayJob:
		return append(refused, "job-runtime-env", "job-lost", "job-submission-failed", "job-deadline-exceeded", "job-app-failed", "job-failed",
			"job-cluster-missing", "job-retrying", "submitter-failed", "job-status-unknown", "job-waiting")
	case rayv1.KindRayService:
		return append(refused, "serve-config-refused", "serve-app-unhealthy", "serve-start-timeout", "serve-gateway", "upgrade-abandoned",
			"serve-app-starting", "serve-no-endpoints", "upgrade-waiting")
	case rayv1.KindRayCronJob:
		return append(refused, "run-refused")
	default:
		return append(refused, "claim-lost", "claim-on-several-nodes", "gcs-storage-not-ready", "dashboard-localhost", "ingress-no-address",
			"head-service-selector", "head-service-port", "mesh-blocks", "worker-not-connected", "autoscaler-rights-missing",
			"autoscaler-missing", "autoscaler-not-ready")
	}
}

// Own are the findings about the outermost object of a Snapshot that holds what the operator has in its caches, worst first, and
// the time after which there may be others although nothing changes, or zero. Notes are no trouble and not among them. What
// is wrong with a RayCluster below another object stands in the conditions of that cluster.
func Own(s *Snapshot) ([]Finding, time.Duration) {
	now := s.indexed()
	findings := now.own()
	if now.index.again == 0 {
		return findings, 0
	}
	later := *s
	later.Now = s.Now.Add(allPatience)
	if slices.EqualFunc(findings, later.indexed().own(), sameTrouble) {
		return findings, 0
	}
	return findings, max(now.index.again, leastAgain)
}

func sameTrouble(a, b Finding) bool {
	return a.ID == b.ID && a.Object == b.Object && a.Severity == b.Severity && a.Reason == b.Reason
}

// outermost is the kind of the object that the snapshot is about.
func (s *Snapshot) outermost() string {
	switch {
	case s.CronJob != nil:
		return rayv1.KindRayCronJob
	case len(s.Jobs) > 0:
		return rayv1.KindRayJob
	case s.Service != nil:
		return rayv1.KindRayService
	default:
		return rayv1.KindRayCluster
	}
}

func (s *Snapshot) own() []Finding {
	kind := s.outermost()
	ids := ownRules(kind)
	findings := s.found(func(id string) bool { return slices.Contains(ids, id) })
	findings = slices.DeleteFunc(findings, func(f Finding) bool { return f.Severity < Passing || s.isBelow(kind, f) || leftovers(f) })
	if !slices.ContainsFunc(findings, func(f Finding) bool { return f.Severity == Blocking }) {
		for _, f := range unexplained(s) {
			if !s.isBelow(kind, f) {
				findings = append(findings, f)
			}
		}
	}
	slices.SortStableFunc(findings, Compare)
	return findings
}

// isBelow tells whether a finding is about a RayCluster below the object of that kind.
func (s *Snapshot) isBelow(kind string, f Finding) bool {
	return kind != rayv1.KindRayCluster && strings.HasPrefix(f.Object, rayv1.KindRayCluster+" ")
}

// leftovers tells whether a finding is only about Pods of an earlier cluster of the name, which go by themselves.
func leftovers(f Finding) bool {
	if f.ID != "name-collision" {
		return false
	}
	return !slices.ContainsFunc(strings.Split(f.Message, "; "), func(sentence string) bool {
		return !strings.Contains(sentence, "left from an earlier RayCluster of this name")
	})
}
