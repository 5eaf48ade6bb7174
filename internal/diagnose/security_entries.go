package diagnose

// securityEntries explain the findings of securityRules.
func securityEntries() []Entry {
	return []Entry{
		entry(Security, "dashboard-exposed",
			"The dashboard can be opened from outside without a password.",
			"An Ingress, load balancer or node port leads to the dashboard, and Ray asks for no token.",
			"Set spec.authOptions.mode to token, or close the way from outside."),
	}
}
