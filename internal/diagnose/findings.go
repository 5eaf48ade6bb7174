package diagnose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// objectRule recognizes one kind of trouble in a whole Snapshot.
type objectRule struct {
	id       string
	severity Severity
	// find returns what it found, without id and severity.
	find func(*Snapshot) []Finding
}

// objectRules are all rules about whole objects, worst first.
func objectRules() []objectRule {
	return slices.Concat(
		configurationRules(),
		rightsRules(),
		connectionRules(),
		scalingRules(),
		operatorRules(),
		workRules(),
		securityRules(),
	)
}

// Findings are all that the rules have to say about a Snapshot, worst first. There is at most one finding for each Pod, and
// none where that of another object is the reason.
func Findings(s *Snapshot) []Finding {
	s = s.indexed()
	findings := s.found(func(string) bool { return true })
	if !slices.ContainsFunc(findings, func(f Finding) bool { return f.Severity >= Passing }) {
		findings = append(findings, unexplained(s)...)
	}
	slices.SortStableFunc(findings, Compare)
	return findings
}

// found are the findings of those rules about whole objects whose id is wanted, and those about Pods.
func (s *Snapshot) found(wanted func(id string) bool) []Finding {
	var objects []Finding
	for rank, rule := range objectRules() {
		if !wanted(rule.id) {
			continue
		}
		for _, finding := range rule.find(s) {
			finding.ID, finding.Severity, finding.rank = rule.id, rule.severity, rank
			objects = append(objects, finding)
		}
	}
	findings, reasons := slices.Clone(objects), reasonsFor()
	for _, p := range podFindings(s) {
		follows := func(f Finding) bool {
			return (f.ID == p.ID || slices.Contains(reasons[p.ID], f.ID)) && s.related(p, f)
		}
		if !slices.ContainsFunc(objects, follows) {
			findings = append(findings, p.Finding)
		}
	}
	return findings
}

// Unexplained is the id of the finding for what the operator says and no rule knows.
const Unexplained = "stalled"

// unexplained are the objects with which the operator cannot go on, in its own words. What a RayCluster says stands in the conditions of
// its owner, too, and counts once.
func unexplained(s *Snapshot) []Finding {
	var findings []Finding
	for _, o := range slices.Backward(s.objects()) {
		c := cmp.Or(o.condition(rayv1.ConditionStalled, metav1.ConditionTrue), o.condition(rayv1.ConditionReplicaFailure, metav1.ConditionTrue))
		if c == nil || o.ended || o.meta.DeletionTimestamp != nil || len(findings) > 0 && o.kind != rayv1.KindRayCluster {
			continue
		}
		findings = append(findings, Finding{ID: Unexplained, Severity: Blocking, Reason: c.Reason, Object: o.String(),
			Message: cmp.Or(shortened(c.Message), fmt.Sprintf("its condition %s is True", c.Type)),
			Cause:   fmt.Sprintf("The operator cannot go on with %s; its words stand in the evidence.", o),
			Next: fmt.Sprintf("Do what the evidence asks for; \"kubectl describe %s %s\" and the log of the operator may say more.",
				strings.ToLower(o.kind), o.meta.Name),
			rank: len(objectRules())})
	}
	return findings
}

// related tells whether what was found about another object has to do with a Pod.
func (s *Snapshot) related(p podTrouble, f Finding) bool {
	kind, name, _ := strings.Cut(f.Object, " ")
	cluster := p.pod.Labels[rayv1.LabelCluster]
	switch kind {
	case "Pod":
		other := named(s.Pods, name)
		return other != nil && (other.Name == p.pod.Name || cluster != "" && other.Labels[rayv1.LabelCluster] == cluster)
	case kindSecret, kindConfigMap, kindClaim:
		return names(p.Message, name) || needs(p.pod, kind, name)
	case rayv1.KindRayCluster:
		return name == cluster
	default:
		return cluster != "" && names(f.Message+" "+f.Cause, rayv1.KindRayCluster+" "+cluster)
	}
}

// needs tells whether a Pod refers to an object.
func needs(pod *corev1.Pod, kind, name string) bool {
	if kind == kindClaim {
		return slices.Contains(claimsOf(pod), name)
	}
	return slices.ContainsFunc(podReferences("", "", &pod.Spec), func(r reference) bool { return r.kind == kind && r.name == name })
}

// names tells whether a name stands in a text, and not only as a part of a longer one.
func names(text, name string) bool {
	const inNames = "abcdefghijklmnopqrstuvwxyz0123456789-"
	for from := 0; name != ""; {
		at := strings.Index(text[from:], name)
		if at < 0 {
			return false
		}
		before, after := text[:from+at], text[from+at+len(name):]
		from += at + len(name)
		begins := before == "" || !strings.ContainsAny(before[len(before)-1:], inNames+".")
		ends := after == "" || !strings.ContainsAny(after[:1], inNames) && (after[0] != '.' || len(after) == 1 || !strings.ContainsAny(after[1:2], inNames))
		if begins && ends {
			return true
		}
	}
	return false
}

// reasonsFor are the findings about other objects of which one about a Pod is the consequence, by the id of the latter.
func reasonsFor() map[string][]string {
	connection := []string{"head-service-missing", "head-service-foreign", "head-service-selector", "head-service-port", "policy-blocks-gcs",
		"policy-blocks-dns", idDNS, "mesh-blocks", idTokenMismatch, "tls-mismatch", "worker-not-connected"}
	claim := []string{idClaimMissing, "claim-lost", "claim-no-class", "gcs-storage-not-ready"}
	return map[string][]string{
		idInitWaits:        connection,
		idGCSUnreachable:   connection,
		idClaimPending:     claim,
		idUnschedulable:    claim,
		idVolumeNotMounted: {idSecretMissing, idConfigMapMissing, idKeyMissing, "claim-on-several-nodes"},
		idMultiAttach:      {"claim-on-several-nodes"},
		idContainerConfig:  {idSecretMissing, idConfigMapMissing, idKeyMissing},
		idSidecarEnded:     {"autoscaler-rights-missing"},
	}
}
