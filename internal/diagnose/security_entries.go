package diagnose

// securityEntries explain the findings of securityRules.
func securityEntries() []Entry {
	return []Entry{
		{ID: "dashboard-exposed", Family: Security,
			Symptom: "The dashboard can be opened from outside without a password.",
			Cause:   "An Ingress, load balancer or node port leads to the dashboard, and Ray asks for no token.",
			Next:    "Set spec.authOptions.mode to token, or close the way from outside."},
	}
}
