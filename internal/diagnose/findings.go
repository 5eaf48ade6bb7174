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

// Findings are all that the rules have to say about a Snapshot, worst first. There is one finding for each Pod in trouble.
func Findings(s *Snapshot) []Finding {
	var findings []Finding
	for rank, rule := range objectRules() {
		for _, finding := range rule.find(s) {
			finding.ID, finding.Severity, finding.rank = rule.id, rule.severity, rank
			findings = append(findings, finding)
		}
	}
	findings = append(findings, podFindings(s)...)
	slices.SortStableFunc(findings, Compare)
	return findings
}
