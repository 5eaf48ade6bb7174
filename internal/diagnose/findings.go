package diagnose

import "slices"

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
	var findings []Finding
	found := map[string]bool{}
	for rank, rule := range objectRules() {
		for _, finding := range rule.find(s) {
			finding.ID, finding.Severity, finding.rank = rule.id, rule.severity, rank
			findings = append(findings, finding)
			found[rule.id] = true
		}
	}
	for _, finding := range podFindings(s) {
		if !found[finding.ID] && !slices.ContainsFunc(reasonsFor()[finding.ID], func(id string) bool { return found[id] }) {
			findings = append(findings, finding)
		}
	}
	slices.SortStableFunc(findings, Compare)
	return findings
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
