//go:build e2e

package e2e

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// TestRayCronJob: our example, with a tick every minute, has one run at a time on real Ray; it succeeds and is recorded, and
// with a limit of one no more than one run that has succeeded is kept.
func TestRayCronJob(t *testing.T) {
	g := NewWithT(t)
	w := connect(t)
	cron := &rayv1.RayCronJob{}
	w.get(t, g, w.apply(t, "../../docs/examples/raycronjob.yaml")[0].GetName(), cron)
	base := cron.DeepCopy()
	cron.Spec.Schedule, cron.Spec.SuccessfulJobsHistoryLimit = "* * * * *", ptr.To[int32](1)
	g.Expect(w.Patch(t.Context(), cron, client.MergeFrom(base))).To(Succeed())

	runs := &rayv1.RayJobList{}
	list := func() []rayv1.RayJob {
		g.Expect(w.List(t.Context(), runs, client.InNamespace(w.namespace), client.MatchingLabels{rayv1.LabelCronJobName: cron.Name})).To(Succeed())
		return runs.Items
	}
	g.Eventually(list, podPatience, time.Second).Should(HaveLen(1), "the first tick comes within a minute")
	first := list()[0]
	g.Expect(metav1.IsControlledBy(&first, cron)).To(BeTrue())
	g.Expect(w.ended(t, g, first.Name).Status.JobStatus).To(Equal(rayv1.JobStatusSucceeded))

	g.Eventually(func() bool {
		w.get(t, g, cron.Name, cron)
		return cron.Status.LastScheduleTime.After(first.CreationTimestamp.Time)
	}, podPatience, time.Second).Should(BeTrue(), "a later tick is run when the first run has ended")
	var second string
	for _, run := range list() {
		if run.UID != first.UID {
			second = run.Name
		}
	}
	g.Expect(w.ended(t, g, second).Status.JobStatus).To(Equal(rayv1.JobStatusSucceeded))
	g.Eventually(func() error {
		return w.Get(t.Context(), client.ObjectKeyFromObject(&first), &rayv1.RayJob{})
	}, podPatience, time.Second).ShouldNot(Succeed(), "the older run that has succeeded must go")
	w.get(t, g, cron.Name, cron)
	g.Expect(cron.Status.LastSuccessfulTime).ToNot(BeNil())
	if skipped := cron.Status.LastSkipped; skipped != nil {
		t.Logf("%d ticks were skipped up to %s: %s", skipped.Count, skipped.Time, skipped.Reason)
	}
}
