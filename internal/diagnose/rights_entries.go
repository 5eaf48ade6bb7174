package diagnose

// rightsEntries explain the findings of rightsRules.
func rightsEntries() []Entry {
	return []Entry{
		entry(Rights, "operator-forbidden",
			"Events say \"is forbidden: User system:serviceaccount...\".",
			"The account of the operator lacks a right.",
			"Install the RBAC objects of the operator's chart again, or grant the verb and resource that the message names."),
		entry(Rights, "owner-reference-refused",
			"Events say \"cannot set blockOwnerDeletion\".",
			"The API server checks owner references, and the operator may not set finalizers on the owner.",
			"Allow the operator the verb update on rayclusters/finalizers, rayjobs/finalizers, rayservices/finalizers and "+
				"raycronjobs/finalizers."),
		entry(Rights, "quota-exceeded",
			"Pods are missing; events say \"exceeded quota\".",
			"A ResourceQuota of the namespace leaves no room, or counts resources that the Pods do not specify.",
			"Run \"kubectl describe quota\"; raise it, free what is in use, or lower requests and replicas."),
		entry(Rights, "limit-range",
			"Pods are missing; events speak of a minimum or maximum per container, or of a request that must be less than or "+
				"equal to a limit which nobody wrote.",
			"A LimitRange of the namespace does not allow the resources of a container, or gives it a default limit below its "+
				"own request.",
			"Bring resources in the Pod templates within \"kubectl get limitrange -o yaml\", and write a limit beside each "+
				"request."),
		entry(Rights, "pod-security",
			"Pods are missing; events say \"violates PodSecurity\".",
			"The Pod Security level of the namespace does not allow the Pods.",
			"Set what the message asks for in securityContext of the Pod templates, or lower the level of the namespace."),
		entry(Rights, "webhook-unreachable",
			"Nothing can be made; events say \"failed calling webhook\".",
			"An admission webhook that must be asked does not answer.",
			"Make the Service behind the webhook answer, or remove the configuration of a webhook that is gone."),
		entry(Rights, "admission-denied",
			"Objects are missing; events say \"denied the request\".",
			"An admission webhook or policy denies what the operator wants to write.",
			"Change what the message complains of, or ask the owner of the policy for an exception."),
		entry(Rights, "pod-invalid",
			"Pods are missing; events say `Pod \"...\" is invalid`.",
			"The API server finds a field of the Pod wrong that the operator could not judge.",
			"Correct the field that the message names in the group's Pod template."),
		entry(Rights, "priority-class-missing",
			"No Pod is made; events say \"no PriorityClass with name\".",
			"A Pod template names a PriorityClass that does not exist.",
			"Create the PriorityClass, or correct priorityClassName in the Pod template."),
		entry(Rights, "autoscaler-rights-missing",
			"The autoscaler runs and the number of workers never changes.",
			"ServiceAccount, Role or RoleBinding of the autoscaler is missing or lacks a right.",
			"Let the operator make them, or bind your own account to a Role that may read and patch pods and patch "+
				"rayclusters.ray.io."),
	}
}
