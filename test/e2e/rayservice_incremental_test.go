//go:build e2e

package e2e

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/loadgen"
)

// TestRayServiceIncremental: a step by step take-over behind a real Gateway moves the share of requests that the status
// says, also when the spec goes back in the middle, and fails no request.
func TestRayServiceIncremental(t *testing.T) {
	s := serve(t)
	s.apply(t, "testdata/rayservice-steps.yaml")
	first := s.serves("steps", 1)
	s.g.Expect(shares(first)).To(Equal([2]int32{100, 0}))
	u := &stepwise{load: s.load("http://traefik.traefik.svc.cluster.local/")}
	defer u.report()

	u.strictPhase("v1")
	u.version("v2")
	u.follow("up to v2", "v2", func(now *rayv1.RayService) bool { return shares(now) == [2]int32{100, 0} && u.activeIsNot(first, now) })
	second := u.serves("steps", 1)
	u.g.Expect(second.Status.ActiveServiceStatus.RayClusterName).ToNot(Equal(first.Status.ActiveServiceStatus.RayClusterName))

	u.version("v3")
	u.follow("up to v3", "v3", func(now *rayv1.RayService) bool { return shares(now)[1] >= 50 })
	u.version("v2")
	u.follow("back to v2", "v3", func(now *rayv1.RayService) bool { return now.Status.PendingServiceStatus.RayClusterName == "" })
	u.g.Expect(u.sawRollback).To(BeTrue(), "RollbackInProgress was True")
	third := u.serves("steps", 1)
	u.g.Expect(meta.FindStatusCondition(third.Status.Conditions, rayv1.ConditionRollbackInProgress)).To(BeNil())
	u.g.Expect(third.Status.ActiveServiceStatus.RayClusterName).To(Equal(second.Status.ActiveServiceStatus.RayClusterName), "the cluster that went on serving")
	u.strictPhase("v2 again")
	u.g.Eventually(func(g Gomega) int { return answered(last(u.summary(g))) }, servePatience, time.Second).Should(BeNumerically(">", enough))

	u.measured()
}

// enough is how many answers a share is measured with.
const enough = 100

// stepwise is a RayService in a step by step take-over under load.
type stepwise struct {
	*load
	// steps are what the status said during each phase.
	steps       []takeOverStep
	sawRollback bool
}

// takeOverStep is a phase in which a version had a share of the traffic, in percent.
type takeOverStep struct {
	phase, version string
	share          int32
}

func (u *stepwise) version(version string) {
	u.t.Helper()
	u.change("steps", func(service *rayv1.RayService) { setVersion(&service.Spec.RayClusterConfig, version) })
}

// shares are the percentages of traffic that the status gives to the active and to the pending cluster.
func shares(service *rayv1.RayService) [2]int32 {
	return [2]int32{
		ptr.Deref(service.Status.ActiveServiceStatus.TrafficRoutedPercent, 0),
		ptr.Deref(service.Status.PendingServiceStatus.TrafficRoutedPercent, 0),
	}
}

func (u *stepwise) activeIsNot(before, now *rayv1.RayService) bool {
	return now.Status.ActiveServiceStatus.RayClusterName != before.Status.ActiveServiceStatus.RayClusterName
}

// follow begins a phase whenever the shares change, until the end is reached. The pending cluster has the given version.
func (u *stepwise) follow(name, version string, end func(*rayv1.RayService) bool) {
	u.t.Helper()
	known := [2]int32{-1, -1}
	u.g.Eventually(func() bool {
		now := u.service("steps")
		if meta.IsStatusConditionTrue(now.Status.Conditions, rayv1.ConditionRollbackInProgress) {
			u.sawRollback = true
		}
		if got := shares(now); got != known && now.Status.PendingServiceStatus.RayClusterName != "" {
			known = got
			u.g.Expect(got[0]+got[1]).To(BeEquivalentTo(100), "shares of traffic: %v", got)
			u.t.Logf("shares %v, capacities %d and %d", got, ptr.Deref(now.Status.ActiveServiceStatus.TargetCapacity, -1),
				ptr.Deref(now.Status.PendingServiceStatus.TargetCapacity, -1))
			phase := fmt.Sprintf("%s: %d%%", name, got[1])
			u.steps = append(u.steps, takeOverStep{phase: phase, version: version, share: got[1]})
			u.strictPhase(phase)
		}
		return end(now)
	}, 4*servePatience, 200*time.Millisecond).Should(BeTrue(), name)
}

// measured compares what answered with what the status said at the time.
func (u *stepwise) measured() {
	u.t.Helper()
	phases := map[string]loadgen.Phase{}
	for _, phase := range u.settled() {
		phases[phase.Name] = phase
	}
	for _, step := range u.steps {
		phase := phases[step.phase]
		u.onlyFrom(phase, "v1", "v2", "v3")
		if all := answered(phase); all >= enough {
			got := 100 * float64(answers(phase)[step.version]) / float64(all)
			u.t.Logf("%s: %.1f%% of %d answers were from %s", step.phase, got, all, step.version)
			u.g.Expect(got).To(BeNumerically("~", step.share, 8), "share of %s in phase %q", step.version, step.phase)
		}
	}
}

func answered(phase loadgen.Phase) int {
	sum := 0
	for _, count := range answers(phase) {
		sum += count
	}
	return sum
}

func last(summary loadgen.Summary) loadgen.Phase { return summary.Phases[len(summary.Phases)-1] }
