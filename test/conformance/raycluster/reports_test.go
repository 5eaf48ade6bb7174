package raycluster

import "github.com/heliostat-io/heliostat/test/conformance/table"

// Report is something that users of KubeRay reported about RayClusters.
type Report = table.Report[*env]

func reports() []Report {
	const gang = "not served yet: batch schedulers have their own issue"
	return []Report{
		{Number: 1, What: "two groups of one name", Right: "refused when applied; stored before that: a condition and no Pod", Elsewhere: "CL-055"},
		{Number: 2, What: "a name with a dot", Right: "refused when applied; stored before that: a condition that names the rule", Run: nameWithDot},
		{Number: 3, What: "Redis, a RayService with a long name", Right: "the clean-up Job has a valid name", Elsewhere: "TestNamesOfTheCleanUpJob in internal/raycluster"},
		{Number: 4, What: "a RayJob with a name that is too long", Right: "a final status with the reason, then silence", Run: longJobName},
		{Number: 5, What: "a head template with its own app name", Right: "the head Service finds the head, the status has its address", Elsewhere: "CL-036"},
		{Number: 6, What: "scaling down by one, with caches that lag behind", Right: "one Pod deleted in each step, none created", Run: scalesDownByOne},
		{Number: 7, What: "the middle one of three groups is removed", Right: "its Pods go, the others stay; another order changes nothing", Run: dropsTheMiddleGroup},
		{Number: 8, What: "an evicted head with restartPolicy Always", Right: "deleted, and one new head", Run: evictedHead},
		{Number: 9, What: "a head that ends at once", Right: "replaced ever more slowly; a condition has the exit code", Run: headThatEndsAtOnce},
		{Number: 10, What: "the head is deleted, without fault tolerance", Right: "no useless workers stay; Ready means usable", Elsewhere: "CL-026 for the operator's part; TestRayClusterLifeCycle in test/e2e on real Ray"},
		{Number: 11, What: "the head is deleted while caches lag behind", Right: "never two live heads", Run: neverTwoHeads},
		{Number: 12, What: "replicas of several hosts", Right: "counts and resources in Pods; the cluster becomes ready", Run: countsHosts},
		{Number: 13, What: "GPUs cut into slices, and those of other makers", Right: "desiredGPU counts them", Run: countsAllGPUs},
		{Number: 14, What: "a head that no node can take", Right: "not ready; a condition has the scheduler's text", Run: unschedulableHead},
		{Number: 15, What: "a label value with a space in a template", Right: "a Warning and a condition with the API server's text; back-off", Run: labelWithSpace},
		{Number: 16, What: "Redis, the whole namespace is deleted", Right: "the finalizer does not hold it", Elsewhere: "TestPlanOfADeletion in internal/raycluster, the simulator, and TestEveryWayToNameRedis in test/e2e"},
		{Number: 17, What: "Redis, the clean-up fails", Right: "the finalizer goes after a limit, an event tells what may be left", Elsewhere: "CL-075"},
		{Number: 18, What: "Redis, switched off before the deletion", Right: "the finalizer goes", Elsewhere: "TestPlanOfADeletion in internal/raycluster"},
		{Number: 19, What: "managedBy is set later on a RayService", Right: "its finalizer goes on deletion", Elsewhere: "TestADeletedServiceTakesItsClustersDownFirst in internal/rayservice"},
		{Number: 20, What: "Redis, made again under the same name", Right: "old applications do not come back", Elsewhere: "CL-071: the storage namespace is the UID"},
		{Number: 21, What: "the init container that waits for the GCS, which runs Python, runs out of memory", Right: "its memory follows the Ray container's", Run: waitHasMemory},
		{Number: 22, What: "a quota that demands limits on every container", Right: "what we add to Pods has limits, and no accelerator", Run: everyContainerHasLimits},
		{Number: 23, What: "probes whose commands take longer than the kubelet waits", Right: "one HTTP request since Ray 2.53 (before that, KubeRay's commands and time-outs as they are); probes of the user stay", Run: probesAreShort},
		{Number: 24, What: "JSON in a start parameter", Right: "Ray gets it as one argument, however it was quoted", Elsewhere: "TestQuoteFlagValue in internal/ray; with annotation overwrite-container-cmd the user's own line runs the command, which has no test"},
		{Number: 25, What: "the operator is told to give head Services an address, and serviceType is ClusterIP", Right: "it has an address", Run: func(e *env) {
			e.start(clusterIPService())
			e.hasClusterIP(e.ready(serviceType("ClusterIP")))
		}},
		{Number: 26, What: "a DNS domain other than cluster.local", Right: "every address is in it", Run: otherDomain},
		{Number: 27, What: "admission that checks rights on finalizers of owners", Right: "the operator's role has them", Elsewhere: "TestRightsAreExactlyThese in test/chart"},
		{Number: 28, What: "YuniKorn with the autoscaler", Right: "placeholders as large as the Pods", Elsewhere: gang},
		{Number: 29, What: "YuniKorn with several hosts", Right: "groups counted in Pods", Elsewhere: gang},
		{Number: 30, What: "chart values with a second group without resources", Right: "defaults as for the first one", Elsewhere: "TestL30ExtraGroupsHaveResources in test/chart"},
	}
}
