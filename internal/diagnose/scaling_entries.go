package diagnose

// scalingEntries explain the findings of scalingRules.
func scalingEntries() []Entry {
	return []Entry{
		entry(Scaling, "autoscaler-missing",
			"Autoscaling is on and nothing scales.",
			"The head Pod was made before autoscaling was switched on.",
			"Delete the head Pod when its work may be interrupted."),
		entry(Scaling, "autoscaler-cannot-fulfil",
			"Tasks wait for ever and no worker is added.",
			"Something asks for more than a worker of any group has, or all groups are at maxReplicas.",
			"Add a worker group that is large enough, raise maxReplicas, or ask for less."),
		entry(Scaling, "replicas-outside-limits",
			"There are more or fewer workers than replicas says.",
			"replicas lies outside of minReplicas and maxReplicas.",
			"Change replicas or the limit."),
		entry(Scaling, "autoscaler-not-ready",
			"Autoscaling is on and nothing scales.",
			"The container of the autoscaler does not run.",
			"Read the log of the container autoscaler in the head Pod."),
		entry(Scaling, "autoscaler-silent",
			"Autoscaling is on and nothing scales.",
			"The autoscaler hangs before its first look at the cluster.",
			"Read monitor.log in the head Pod; check that all images have the same version of Ray."),
		entry(Scaling, "workers-missing",
			"There are fewer workers than asked for, and nothing says why.",
			"The operator has not made Pods that the spec asks for.",
			"Read the events of the RayCluster and the log of the operator."),
		entry(Scaling, "replicas-overwritten",
			"The autoscaler adds workers and they go away again.",
			"A tool that applies manifests again and again sets replicas back.",
			"Leave replicas out of the manifest, or make the tool ignore it."),
		entry(Scaling, "suspended",
			"There are no Pods.",
			"spec.suspend is true.",
			"Set spec.suspend to false."),
	}
}
