package conformance

import (
	"fmt"
	"slices"
	"strings"
)

// deliberateDifference is a difference from the reference that is meant, with the reason.
type deliberateDifference struct {
	// version is the version that differs, or empty for all.
	version string
	// path is the end of the path, so that one entry covers a field wherever a RayCluster or RayJob spec is embedded.
	// A path that starts with "=" is compared as a whole, with an optional kind in front: "=RayJob.spec". One that ends
	// with "..." besides covers what is inside as well.
	path string
	// inside covers every path within this embedded Kubernetes type instead.
	inside string
	// attribute is the attribute that differs; "path" stands for a path that only one side has.
	attribute string
	// ours is what we say.
	ours string
	// reason says why we differ. A manifest that runs today is never refused by it.
	reason string
}

func (e deliberateDifference) covers(d difference) bool {
	if e.version != "" && e.version != d.version || e.attribute != d.attribute || e.ours != d.ours {
		return false
	}
	if e.inside != "" {
		return e.inside == d.inside
	}
	if whole, found := strings.CutPrefix(e.path, "="); found {
		if within, all := strings.CutSuffix(whole, "..."); all {
			return strings.HasPrefix(d.kind+d.path, within)
		}
		return whole == d.kind+d.path
	}
	return d.path == e.path || strings.HasSuffix(d.path, e.path)
}

// deliberateDifferences is the whole table. Most entries refuse, when it is applied, what never ran anywhere.
func deliberateDifferences() []deliberateDifference {
	return slices.Concat(additions(), nameRules(), clusterRules(), jobRules(), serviceRules(), newerKubernetes())
}

func additions() []deliberateDifference {
	const reason = "our addition: it remembers the numbers given to Pods, so that no name is used twice (api/v1/additions.md)"
	const job = "our addition: what the operator remembers and says of a RayJob (api/v1/additions.md)"
	ours := []deliberateDifference{
		{version: "v1", path: ".incarnations", attribute: "path", ours: "present", reason: reason},
		{version: "v1", path: ".incarnations{}", attribute: "path", ours: "present", reason: reason},
	}
	for _, path := range []string{"attempt", "submissionMode", "submission", "stopping", "postMortem", "conditions"} {
		ours = append(ours, deliberateDifference{version: "v1", path: "=RayJob.status." + path + "...", attribute: "path", ours: "present", reason: job})
	}
	const losses = "our addition: what a loss took, and where heads keep their state (api/v1/additions.md)"
	for _, status := range []string{"RayCluster.status", "RayJob.status.rayClusterStatus",
		"RayService.status.activeServiceStatus.rayClusterStatus", "RayService.status.pendingServiceStatus.rayClusterStatus"} {
		for _, list := range []string{"recoveries", "lastCensus", "redisStorages"} {
			ours = append(ours, deliberateDifference{version: "v1", path: "=" + status + "." + list + "...", attribute: "path", ours: "present", reason: losses})
		}
	}
	const cron = "our addition: what CronJob of Kubernetes has (api/v1/additions.md)"
	for _, field := range []string{
		"spec.concurrencyPolicy", "spec.startingDeadlineSeconds", "spec.successfulJobsHistoryLimit", "spec.failedJobsHistoryLimit", "spec.jobTemplateMetadata",
		"status.lastHandledTime", "status.lastSkipped", "status.lastSuccessfulTime", "status.nextScheduleTime", "status.active", "status.schedule",
		"status.timeZone", "status.observedGeneration", "status.conditions",
	} {
		ours = append(ours, deliberateDifference{version: "v1", path: "=RayCronJob." + field + "...", attribute: "path", ours: "present", reason: cron})
	}
	const service = "our addition: what the operator remembers and says of a RayService (api/v1/additions.md)"
	for _, field := range []string{
		"clusterIncarnations", "cutOvers", "abandonedUpgrade",
		"activeServiceStatus.goal", "activeServiceStatus.readyServeEndpoints", "pendingServiceStatus.goal", "pendingServiceStatus.readyServeEndpoints",
	} {
		ours = append(ours, deliberateDifference{version: "v1", path: "=RayService.status." + field + "...", attribute: "path", ours: "present", reason: service})
	}
	return ours
}

// nameRules apply when an object is created, and never later: an object that exists can always be changed and deleted.
func nameRules() []deliberateDifference {
	const reason = "a name that is too long or that cannot be the name of a Service, and an object without a spec, are refused by the operator " +
		"of the reference in every pass; here they are refused when the object is created"
	// The last rule looks at changes: whoever gives a RayCluster away leaves its Pods to nobody, which the reference allows
	// as long as the field was absent before or is removed.
	const handOver = "!oldSelf.hasValue() || (self.?spec.?managedBy.orValue('none') == 'kueue.x-k8s.io/multikueue') == " +
		"(oldSelf.?spec.?managedBy.orValue('none') == 'kueue.x-k8s.io/multikueue')"
	rules := func(limit int) string {
		return fmt.Sprintf("oldSelf.hasValue() || size(self.metadata.name) <= %d\n"+
			"oldSelf.hasValue() || self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')\n"+
			"oldSelf.hasValue() || has(self.spec)", limit)
	}
	return []deliberateDifference{
		{version: "v1", path: "=RayCluster", attribute: "xValidations", ours: rules(53) + "\n" + handOver, reason: reason},
		{version: "v1", path: "=RayJob", attribute: "xValidations", ours: rules(47) + "\n" + handOver, reason: reason},
		{version: "v1", path: "=RayService", attribute: "xValidations", ours: rules(47), reason: reason},
		{version: "v1", path: "=RayCronJob", attribute: "xValidations", ours: rules(36), reason: reason},
	}
}

func clusterRules() []deliberateDifference {
	const (
		noContainers = "a template without containers is refused by the operator of the reference in every pass"
		negative     = "a negative number is refused by the operator of the reference in every pass"
		noPods       = "no Pod of such a group can be created: the name of the group is a label of its Pods"
		containers   = "has(self.spec) && size(self.spec.containers) > 0"
		group        = ".workerGroupSpecs[]"
	)
	return []deliberateDifference{
		{
			version: "v1", path: ".headGroupSpec.template", attribute: "xValidations", ours: containers, reason: noContainers,
		}, {
			version: "v1", path: group + ".template", attribute: "xValidations", ours: containers, reason: noContainers,
		}, {
			version: "v1", path: ".workerGroupSpecs", attribute: "xValidations",
			ours:   "size(self) > 200 || [self.map(g, g.groupName)].all(names, names.all(n, names.indexOf(n) == names.lastIndexOf(n)))",
			reason: "two groups of one name delete each other's Pods for ever",
		}, {
			version: "v1", path: ".workerGroupSpecs", attribute: "maxItems", ours: "2048",
			reason: "the API server allows the rule about unique names only for a list of limited length; 2048 groups are more than fit " +
				"into an object (the rule itself looks at lists of up to 200 groups)",
		}, {
			version: "v1", path: group + ".groupName", attribute: "xValidations", ours: "self != 'headgroup'",
			reason: "the head counts as a worker of a group of this name, and is deleted when the group shrinks",
		},
		{version: "v1", path: group + ".groupName", attribute: "minLength", ours: "1", reason: "a group without a name is mistaken for the head"},
		{version: "v1", path: group + ".groupName", attribute: "maxLength", ours: "63", reason: noPods},
		{version: "v1", path: group + ".groupName", attribute: "pattern", ours: `"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"`, reason: noPods},
		{
			version: "v1", path: group + ".numOfHosts", attribute: "minimum", ours: "1",
			reason: "0 deletes all workers, and a negative number makes the operator of the reference fail in every pass",
		},
		{
			version: "v1", path: group + ".numOfHosts", attribute: "maximum", ours: "4096",
			reason: "more hosts than any accelerator has: the operator of the reference would build as many Pods in memory",
		},
		{version: "v1", path: group + ".minReplicas", attribute: "minimum", ours: "0", reason: negative},
		{version: "v1", path: group + ".maxReplicas", attribute: "minimum", ours: "0", reason: negative},
		{
			version: "v1", path: group, attribute: "xValidations", ours: "self.minReplicas <= self.maxReplicas",
			reason: "a minimum above the maximum is refused by the operator of the reference in every pass",
		},
		{version: "v1", path: group + ".idleTimeoutSeconds", attribute: "minimum", ours: "0", reason: negative},
		{version: "v1", path: ".autoscalerOptions.idleTimeoutSeconds", attribute: "minimum", ours: "0", reason: negative},
	}
}

func jobRules() []deliberateDifference {
	const (
		negative = "such a number makes the RayJob ValidationFailed at once, from which nothing leads out"
		cluster  = "has(self.rayClusterSpec) || (has(self.clusterSelector) && size(self.clusterSelector) > 0)"
		reason   = "a RayJob without a cluster is ValidationFailed at once, from which nothing leads out"
	)
	return []deliberateDifference{
		{version: "v1", path: ".activeDeadlineSeconds", attribute: "minimum", ours: "1", reason: negative},
		{version: "v1", path: ".backoffLimit", attribute: "minimum", ours: "0", reason: negative},
		{version: "v1", path: ".ttlSecondsAfterFinished", attribute: "minimum", ours: "0", reason: negative},
		{
			version: "v1", path: ".submissionMode", attribute: "enum", ours: `["K8sJobMode","HTTPMode","InteractiveMode","SidecarMode"]`,
			reason: "any other text leads to a job that is never submitted while its cluster runs on",
		},
		{version: "v1", path: "=RayJob.spec", attribute: "xValidations", ours: cluster, reason: reason},
		{version: "v1", path: "=RayCronJob.spec.jobTemplate", attribute: "xValidations", ours: cluster, reason: reason},
	}
}

func serviceRules() []deliberateDifference {
	const (
		otherwise = "oldSelf.hasValue() || self.?type.orValue('none') != 'NewClusterWithIncrementalUpgrade' || !has(self.clusterUpgradeOptions) || "
		options   = "self.clusterUpgradeOptions."
		surge     = options + "?maxSurgePercent.orValue(100)"
	)
	return []deliberateDifference{{
		version: "v1", path: "=RayService.spec.upgradeStrategy", attribute: "xValidations",
		ours: otherwise + "(" + surge + " >= 1 && " + surge + " <= 100)\n" +
			otherwise + "(" + options + "stepSizePercent >= 1 && " + options + "stepSizePercent <= " + surge + ")\n" +
			otherwise + options + "intervalSeconds >= 1\n" +
			otherwise + "size(" + options + "gatewayClassName) > 0",
		reason: "a step or a surge of 0 percent never ends an upgrade; the rest is refused by the operator of the reference in every pass",
	}}
}

// newerKubernetes are fields of embedded Kubernetes types that came after the version that the reference was made with.
func newerKubernetes() []deliberateDifference {
	const reason = "new in Kubernetes 1.37; the reference embeds the types of 1.36"
	return []deliberateDifference{
		{inside: "corev1.VolumeMount", attribute: "path", ours: "present", reason: reason},
	}
}
