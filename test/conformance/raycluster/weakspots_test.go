package raycluster

import (
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/conformance/table"
	"github.com/heliostat-io/heliostat/test/harness"
)

const itsOwnIssue = "has its own issue"

// weakSpots are those that have tests elsewhere, or none yet.
func weakSpots() []table.WeakSpot {
	spots := []table.WeakSpot{
		{Number: 10, What: "managedBy can be added later, which leaves Pods to nobody", Ours: "refused when applied",
			Folder: "test/conformance/raycluster", Test: "TestManagedByIsDecidedAtCreation"},
		{Number: 15, What: "suspending overlooks Pods that the cache does not show yet", Ours: "Pods that turn up while suspended go as well",
			Folder: "internal/raycluster", Test: "TestAnyHistoryConverges"},
		{Number: 26, What: "a changed numOfHosts changes nothing, or tears all replicas down", Ours: "replicas are rebuilt one at a time",
			Folder: "internal/raycluster", Test: "TestPlanOfReplicas"},
		{Number: 28, What: "surplus replicas are picked at random", Ours: "the least worth go: incomplete, unscheduled, not ready, youngest",
			Folder: "internal/raycluster", Test: "TestPlanOfReplicas"},
		{Number: 29, What: "numbers of Pods overflow", Ours: "64-bit products, cut at 2147483647",
			Folder: "internal/raycluster", Test: "TestNumbersOfWorkersNeverOverflow"},
		{Number: 32, What: "errors are used as \"come again\"", Ours: "a plan says when it wants to look again",
			Folder: "internal/raycluster", Test: "TestPodsThatEndAtOnceAreReplacedSlowly"},
		{Number: 33, What: "Pods are made one after another, by one thread for all clusters", Ours: "in parallel, begun slowly, 64 in a pass",
			Folder: "test/bench", Test: "TestALargeClusterDoesNotHoldUpSmallOnes"},
		{Number: 37, What: "all annotations are copied to the Ingress, and other controllers' are overwritten", Ours: "without those of tools; by server-side apply",
			Folder: "internal/raycluster", Test: "TestHeadIngress"},
		{Number: 40, What: "names of over 50 characters are looked up and made differently", Ours: "one name, with a computed ending",
			Folder: "internal/raycluster", Test: "TestShortNames"},
		{Number: 42, What: "the name in a head template is kept, so that clusters collide", Ours: "not taken",
			Folder: "internal/raycluster", Test: "TestTemplateNamesDoNotCount"},
		{Number: 2, What: "the clean-up is switched off later, and the cluster is never gone", Ours: "the finalizer goes with the switch",
			Folder: "internal/raycluster", Test: "TestPlanOfADeletion"},
		{Number: 6, What: "finalizers are written with the whole object", Ours: "a patch of the finalizers alone, on the state that was seen",
			Folder: "internal/action", Test: "TestFinalizersAreAllThatIsWritten"},
		{Number: 7, What: "the clean-up is hidden by a label", Ours: "labels by which it is found cannot be overridden",
			Folder: "internal/raycluster", Test: "TestTheCleanUpPodIsSmall"},
		{Number: 8, What: "the clean-up is not watched", Ours: "watched; besides, one look when the limit is over",
			Folder: "internal/raycluster", Test: "TestPlanOfADeletion"},
		{Number: 9, What: "the clean-up inherits what kept the head from starting", Ours: "no init containers, claims, node selectors, and no account that is gone",
			Folder: "internal/raycluster", Test: "TestTheCleanUpPodIsSmall"},
		{Number: 55, What: "an empty Redis address is taken", Ours: "refused: without an address Ray keeps its state in memory",
			Folder: "internal/raycluster", Test: "TestStorageIsChecked"},
		{Number: 49, What: "state is suspended while the condition says no", Ours: "one follows the other",
			Folder: "internal/raycluster", Test: "TestStatusTellsWhatIs"},
		{Number: 50, What: "endpoints keep ports that are gone", Ours: "made anew in each pass",
			Folder: "internal/raycluster", Test: "TestEndpointsGoWithTheirService"},
		{Number: 56, What: "a resources parameter that is no plain JSON hides GPUs", Ours: "understood in each quoting, else a note in Valid",
			Folder: "internal/ray", Test: "TestResourceProblems"},
		{Number: 57, What: "parameters run as shell", Ours: "quoted; only variables expand",
			Folder: "internal/ray", Test: "TestParametersCannotRunCommands"},
		{Number: 58, What: "Ray starts although the user's own command failed", Ours: "the same, unless annotation heliostat.io/command-must-succeed is \"true\"",
			Folder: "internal/ray", Test: "TestSetCommand"},
		{Number: 59, What: "the wait for the GCS ignores the worker's address and is silent", Ours: "the worker's address; says for how long and what Ray says",
			Folder: "internal/ray", Test: "TestWaitForGCS"},
		{Number: 60, What: "Pods that do not start are told nowhere", Ours: "conditions PodsHealthy and Stalled",
			Folder: "internal/diagnose", Test: "TestPod"},
		{Number: 61, What: "the time to provision counts suspended time and is lost", Ours: "a histogram from the start or the resume",
			Folder: "internal/metrics", Test: "TestProvisioningCountsFromTheStartOrTheResume"},
		{Number: 62, What: "all Secrets and accounts of the Kubernetes cluster are cached", Ours: "only those with Ray's label; of accounts no content",
			Folder: "internal/operator", Test: "TestCachesAreNarrow"},
	}
	for number, what := range map[int]string{
		54: "one certificate for all workers", 63: "groups for batch schedulers are made once",
		64: "network policies without DNS",
	} {
		spots = append(spots, table.WeakSpot{Number: number, What: what, Ours: itsOwnIssue})
	}
	slices.SortFunc(spots, func(a, b table.WeakSpot) int { return a.Number - b.Number })
	return spots
}

func TestManagedByIsDecidedAtCreation(t *testing.T) {
	g := NewWithT(t)
	c, ns := harness.Connect(t)
	for _, change := range []struct {
		what         string
		before, then *string
		refused      bool
	}{
		{what: "given away", then: ptr.To(rayv1.ManagedByMultiKueue), refused: true},
		{what: "taken over", before: ptr.To(rayv1.ManagedByMultiKueue), refused: true},
		{what: "said aloud", then: ptr.To(rayv1.ManagedByOperator)},
		{what: "left unsaid", before: ptr.To(rayv1.ManagedByOperator)},
	} {
		cluster := harness.NewCluster(ns, "demo-"+strings.ReplaceAll(change.what, " ", "-"))
		cluster.Spec.ManagedBy = change.before
		g.Expect(c.Create(t.Context(), cluster)).To(Succeed(), change.what)
		base := cluster.DeepCopy()
		cluster.Spec.ManagedBy = change.then
		err := c.Patch(t.Context(), cluster, client.MergeFrom(base))
		if !change.refused {
			g.Expect(err).ToNot(HaveOccurred(), change.what)
			continue
		}
		g.Expect(err).To(MatchError(ContainSubstring("spec.managedBy cannot hand an existing RayCluster over")), change.what)
	}
}
