package diagnose

// scalingEntries explain the findings of scalingRules.
func scalingEntries() []Entry {
	return []Entry{
		{ID: "autoscaler-missing", Family: Scaling,
			Symptom: "Autoscaling is on and nothing scales.",
			Cause:   "The head Pod was made before autoscaling was switched on.",
			Next:    "Delete the head Pod when its work may be interrupted."},
		{ID: "autoscaler-cannot-fulfil", Family: Scaling,
			Symptom: "Tasks wait for ever and no worker is added.",
			Cause:   "Something asks for more than a worker of any group has, or all groups are at maxReplicas.",
			Next:    "Add a worker group that is large enough, raise maxReplicas, or ask for less."},
		{ID: "replicas-outside-limits", Family: Scaling,
			Symptom: "There are more or fewer workers than replicas says.",
			Cause:   "replicas lies outside of minReplicas and maxReplicas.",
			Next:    "Change replicas or the limit."},
		{ID: "autoscaler-not-ready", Family: Scaling,
			Symptom: "Autoscaling is on and nothing scales.",
			Cause:   "The container of the autoscaler does not run.",
			Next:    "Read the log of the container autoscaler in the head Pod."},
		{ID: "autoscaler-silent", Family: Scaling,
			Symptom: "Autoscaling is on and nothing scales.",
			Cause:   "The autoscaler hangs before its first look at the cluster.",
			Next:    "Read monitor.log in the head Pod; check that all images have the same version of Ray."},
		{ID: "workers-missing", Family: Scaling,
			Symptom: "There are fewer workers than asked for, and nothing says why.",
			Cause:   "The operator has not made Pods that the spec asks for.",
			Next:    "Read the events of the RayCluster and the log of the operator."},
		{ID: "replicas-overwritten", Family: Scaling,
			Symptom: "The autoscaler adds workers and they go away again.",
			Cause:   "A tool that applies manifests again and again sets replicas back.",
			Next:    "Leave replicas out of the manifest, or make the tool ignore it."},
		{ID: "suspended", Family: Scaling,
			Symptom: "There are no Pods.",
			Cause:   "spec.suspend is true.",
			Next:    "Set spec.suspend to false."},
	}
}
