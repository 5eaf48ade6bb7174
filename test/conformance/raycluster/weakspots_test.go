package raycluster

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/harness"
)

// weakSpot is a weak spot of KubeRay that no case above speaks of.
type weakSpot struct {
	number int
	// what says what is weak, ours what is done about it.
	what, ours string
	// folder and test name the test that shows it; both are empty for what has an issue of its own.
	folder, test string
}

const itsOwnIssue = "has its own issue"

// weakSpots are those that have tests elsewhere, or none yet.
func weakSpots() []weakSpot {
	spots := []weakSpot{
		{10, "managedBy can be added later, which leaves Pods to nobody", "refused when applied", "test/conformance/raycluster", "TestManagedByIsDecidedAtCreation"},
		{15, "suspending overlooks Pods that the cache does not show yet", "Pods that turn up while suspended go as well", "internal/raycluster", "TestAnyHistoryConverges"},
		{26, "a changed numOfHosts changes nothing, or tears all replicas down", "replicas are rebuilt one at a time", "internal/raycluster", "TestPlanOfReplicas"},
		{28, "surplus replicas are picked at random", "the least worth go: incomplete, unscheduled, not ready, youngest", "internal/raycluster", "TestPlanOfReplicas"},
		{29, "numbers of Pods overflow", "64-bit products, cut at 2147483647", "internal/raycluster", "TestNumbersOfWorkersNeverOverflow"},
		{32, "errors are used as \"come again\"", "a plan says when it wants to look again", "internal/raycluster", "TestPodsThatEndAtOnceAreReplacedSlowly"},
		{33, "Pods are made one after another, by one thread for all clusters", "in parallel, begun slowly, 64 in a pass", "test/bench", "TestALargeClusterDoesNotHoldUpSmallOnes"},
		{37, "all annotations are copied to the Ingress, and other controllers' are overwritten", "without those of tools; by server-side apply", "internal/raycluster", "TestHeadIngress"},
		{40, "names of over 50 characters are looked up and made differently", "one name, with a computed ending", "internal/raycluster", "TestShortNames"},
		{42, "the name in a head template is kept, so that clusters collide", "not taken", "internal/raycluster", "TestTemplateNamesDoNotCount"},
		{49, "state is suspended while the condition says no", "one follows the other", "internal/raycluster", "TestStatusTellsWhatIs"},
		{50, "endpoints keep ports that are gone", "made anew in each pass", "internal/raycluster", "TestEndpointsGoWithTheirService"},
		{56, "a resources parameter that is no plain JSON hides GPUs", "understood in each quoting, else a note in Valid", "internal/ray", "TestResourceProblems"},
		{57, "parameters run as shell", "quoted; only variables expand", "internal/ray", "TestParametersCannotRunCommands"},
		{58, "Ray starts although the user's own command failed", "the same, unless annotation heliostat.io/command-must-succeed is \"true\"", "internal/ray", "TestSetCommand"},
		{59, "the wait for the GCS ignores the worker's address and is silent", "the worker's address; says for how long and what Ray says", "internal/ray", "TestWaitForGCS"},
		{60, "Pods that do not start are told nowhere", "conditions PodsHealthy and Stalled", "internal/diagnose", "TestPod"},
		{61, "the time to provision counts suspended time and is lost", "a histogram from the start or the resume", "internal/metrics", "TestProvisioningCountsFromTheStartOrTheResume"},
		{62, "all Secrets and accounts of the Kubernetes cluster are cached", "only those with Ray's label; of accounts no content", "internal/operator", "TestCachesAreNarrow"},
	}
	for number, what := range map[int]string{
		1: "fault tolerance is taken off before the deletion", 2: "the clean-up is switched off later", 3: "an invalid spec blocks the deletion",
		4: "a stuck head disables the deadline", 5: "a failed clean-up is silent", 6: "finalizers are written with the whole object",
		7: "the clean-up is hidden by a label", 8: "the clean-up is not watched", 9: "the clean-up inherits what kept the head from starting",
		54: "one certificate for all workers", 55: "an empty Redis address is taken", 63: "groups for batch schedulers are made once",
		64: "network policies without DNS",
	} {
		spots = append(spots, weakSpot{number: number, what: what, ours: itsOwnIssue})
	}
	slices.SortFunc(spots, func(a, b weakSpot) int { return a.number - b.number })
	return spots
}

// TestWeakSpotsAreComplete: each of the 64 has a case, a test elsewhere or an issue, and no test is named that is not there.
func TestWeakSpotsAreComplete(t *testing.T) {
	covered := map[string]bool{}
	for _, c := range cases() {
		for _, weak := range c.Weak {
			covered[weak] = true
		}
	}
	for _, spot := range weakSpots() {
		covered[fmt.Sprint("W", spot.number)] = true
		if spot.test != "" && !hasTest(t, spot.folder, spot.test) {
			t.Errorf("W%d: there is no %s in %s", spot.number, spot.test, spot.folder)
		}
	}
	for number := 1; number <= 64; number++ {
		// 41 is about the rights of the autoscaler, which CL-065 looks at.
		if !covered[fmt.Sprint("W", number)] && number != 41 {
			t.Errorf("nothing speaks of W%d", number)
		}
	}
}

func hasTest(t *testing.T, folder, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "..", folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		return err == nil && strings.Contains(string(text), "func "+name+"(t *testing.T)")
	})
}

func weakSpotsTable() string {
	var table strings.Builder
	table.WriteString("\n## The other weak spots\n\n| weak spot of KubeRay | | Heliostat | test |\n|---|---|---|---|\n")
	for _, spot := range weakSpots() {
		test := ""
		if spot.test != "" {
			test = spot.test + " in " + spot.folder
		}
		row(&table, fmt.Sprint("W", spot.number), spot.what, spot.ours, test)
	}
	return table.String()
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
