package rayservice

import (
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
	"github.com/heliostat-io/heliostat/test/harness"
)

func upgradeCases() []Case {
	return []Case{
		{Row: 14, Kind: same, Given: "a ready service", When: "the image is changed", Then: "a second cluster; UpgradeInProgress with BothActivePendingClustersExist; Services stay as they are until its applications run", Run: preparesASecondCluster},
		{Row: 15, Kind: same, Given: "an upgrade", When: "the applications of the second cluster run", Then: "head and serve Service lead to it, it is active, UpgradeInProgress is False", Run: func(e *env) {
			service, before, next := e.upgrading(deletionDelay(3600))
			e.runs(next.Name)
			e.switched(service, next)
			e.Expect(e.isGone(before)).To(BeFalse())
		}},
		{Row: 16, Kind: same, Given: "three services, with a deletion delay of 0, of 10 and none", When: "traffic has moved", Then: "the old cluster goes at once, after 10 s, after 60 s",
			How: "and not before its requests have ended, which takes Ray up to 30 s to tell", Run: keepsTheOldCluster},
		{Row: 17, Kind: same, Given: "a ready service", When: "image and config are changed together", Then: "the old cluster never gets the new config", Run: func(e *env) {
			service := e.ready()
			old := e.ray(e.active(service).Name)
			next := e.upgrade(service, image("img:2"), replicas("2"))
			e.runs(next.Name)
			e.switched(service, next)
			e.Expect(string(e.ray(next.Name).LastServePut())).To(ContainSubstring(`"num_replicas":2`))
			e.Expect(old.Requests(fakedashboard.EndpointPutServe)).To(Equal(1))
		}},
		{Row: 18, Kind: same, Given: "a ready service, type None", When: "image and config are changed together", Then: "no second cluster; the new config goes to the one that is there", Run: func(e *env) {
			service := e.ready(strategy(rayv1.RayServiceUpgradeNone))
			cluster := e.active(service)
			ray := e.ray(cluster.Name)
			e.changeSeen(service, image("img:2"), replicas("2"))
			e.soon(func() any { return ray.ServePuts() }).Should(Equal(2))
			e.Expect(string(ray.LastServePut())).To(ContainSubstring(`"num_replicas":2`))
			e.serves(service)
			e.unchanged(service, cluster)
		}},
		{Row: 19, Kind: same, Given: "a ready service without a type, operator with ENABLE_ZERO_DOWNTIME=false", When: "the image is changed", Then: "no second cluster", Run: func(e *env) {
			e.start(harness.Env("ENABLE_ZERO_DOWNTIME", "false"))
			service := e.ready()
			cluster := e.active(service)
			e.changeSeen(service, image("img:2"))
			e.asked(e.ray(cluster.Name), 2)
			e.unchanged(service, cluster)
		}},
		{Row: 20, Kind: same, Given: "a ready service, type NewCluster, operator with ENABLE_ZERO_DOWNTIME=false", When: "the image is changed", Then: "a second cluster", Run: func(e *env) {
			e.start(harness.Env("ENABLE_ZERO_DOWNTIME", "false"))
			e.upgrading(strategy(rayv1.RayServiceNewCluster))
		}},
		{Row: 21, Kind: same, Given: "a ready service", When: "the autoscaler changes replicas on the RayCluster", Then: "no upgrade; the number stays", Run: func(e *env) {
			service := e.ready(autoscaled)
			cluster := e.active(service)
			e.Edit(e.t, cluster, func(c *rayv1.RayCluster) { *c.Spec.WorkerGroupSpecs[0].Replicas = 3 })
			e.soon(func() any { return len(e.allPods(cluster.Name)) }).Should(Equal(4))
			e.staysAsEdited(service, cluster)
		}},
		{Row: 22, Kind: same, Given: "a ready service", When: "a worker group is appended", Then: "the same cluster gets it, in place", Run: func(e *env) {
			service := e.ready()
			cluster := e.active(service)
			e.changeSeen(service, group("b"))
			e.soon(func() any { return len(e.allPods(cluster.Name)) }).Should(Equal(3))
			e.rest()
			e.refresh(service)
			e.Expect(service.Status.PendingServiceStatus.RayClusterName).To(BeEmpty())
			e.Expect(e.clusters()).To(HaveLen(1))
			e.said(service, corev1.EventTypeNormal, "UpdatedRayCluster")
		}},
		{Row: 23, Kind: same, Given: "an upgrade", When: "a worker group is appended", Then: "the second cluster gets it, in place; the first one does not", Run: func(e *env) {
			service, before, next := e.upgrading(deletionDelay(3600))
			e.changeSeen(service, group("b"))
			e.soon(func() any { return len(e.allPods(next.Name)) }).Should(Equal(3))
			e.runs(next.Name)
			e.switched(service, next)
			e.Expect(e.clusters()).To(HaveLen(2))
			e.Expect(e.read(before, before.Name)).To(Succeed())
			e.Expect(before.Spec.WorkerGroupSpecs).To(HaveLen(1))
		}},
		{Row: 24, Kind: same, Given: "an upgrade whose cluster does not serve yet", When: "the image is changed again", Then: "another second cluster; the first of them goes after the delay", Run: func(e *env) {
			service, before, next := e.upgrading(deletionDelay(0))
			e.change(service, image("img:3"))
			e.follow(service, func(s *rayv1.RayServiceStatuses) any { return s.PendingServiceStatus.RayClusterName }).
				ShouldNot(Or(BeEmpty(), Equal(next.Name)))
			third := e.pending(service)
			e.gone(next)
			e.runs(third.Name)
			e.switched(service, third)
			e.gone(before)
		}},
		{Row: 25, Kind: same, Given: "a ready service", When: "another controller puts tolerations and scheduling gates on the RayCluster", Then: "no upgrade; they stay", Run: func(e *env) {
			service := e.ready()
			cluster := e.active(service)
			e.Edit(e.t, cluster, func(c *rayv1.RayCluster) {
				template := &c.Spec.WorkerGroupSpecs[0].Template.Spec
				template.Tolerations = []corev1.Toleration{{Key: "spot", Operator: corev1.TolerationOpExists}}
				template.SchedulingGates = []corev1.PodSchedulingGate{{Name: "queue.example.com/wait"}}
			})
			e.asked(e.ray(cluster.Name), 2)
			e.staysAsEdited(service, cluster)
		}},
		{Row: 26, Kind: same, Given: "ready services, type NewCluster and None", When: "the active cluster is deleted", Then: "another cluster is prepared, and serves", Run: replacesALostCluster},
	}
}

// switched waits until a cluster has all the traffic.
func (e *env) switched(service *rayv1.RayService, to *rayv1.RayCluster) {
	e.t.Helper()
	e.have(service, "UpgradeInProgress", metav1.ConditionFalse, "NoPendingCluster")
	e.Expect(service.Status.ActiveServiceStatus.RayClusterName).To(Equal(to.Name))
	e.Expect(service.Status.PendingServiceStatus.RayClusterName).To(BeEmpty())
	e.soon(func() any {
		return []string{e.leadsTo(service.Name + "-head-svc"), e.leadsTo(service.Name + "-serve-svc")}
	}).
		Should(Equal([]string{to.Name, to.Name}))
	e.serves(service)
}

// unchanged checks that a cluster is the only one, and that its spec is as it was.
func (e *env) unchanged(service *rayv1.RayService, cluster *rayv1.RayCluster) {
	e.t.Helper()
	e.rest()
	e.refresh(service)
	e.Expect(service.Status.PendingServiceStatus.RayClusterName).To(BeEmpty())
	e.Expect(e.clusters()).To(HaveLen(1))
	e.Expect(e.clusters()[0].UID).To(Equal(cluster.UID))
	e.Expect(e.clusters()[0].Spec).To(Equal(cluster.Spec))
}

// staysAsEdited checks that nobody takes back what was last done to a cluster, even when the RayService is looked at anew.
func (e *env) staysAsEdited(service *rayv1.RayService, cluster *rayv1.RayCluster) {
	e.t.Helper()
	e.changeSeen(service, replicas("2"))
	e.serves(service)
	e.unchanged(service, cluster)
}

func preparesASecondCluster(e *env) {
	service, before, next := e.upgrading()
	e.have(service, "UpgradeInProgress", metav1.ConditionTrue, "BothActivePendingClustersExist")
	e.Expect(next.Name).ToNot(Equal(before.Name))
	e.asked(e.ray(next.Name), 3)
	e.rest()
	e.refresh(service)
	e.Expect(service.Status.ActiveServiceStatus.RayClusterName).To(Equal(before.Name))
	e.Expect(service.Status.PendingServiceStatus.RayClusterName).To(Equal(next.Name))
	e.Expect([]string{e.leadsTo("llm-head-svc"), e.leadsTo("llm-serve-svc")}).To(Equal([]string{before.Name, before.Name}))
	c := condition(service, "Ready")
	e.Expect(c.Status).To(Equal(metav1.ConditionTrue))
}

func keepsTheOldCluster(e *env) {
	type upgrade struct {
		service *rayv1.RayService
		old     *rayv1.RayCluster
	}
	upgrades := map[string]upgrade{}
	for delay, edits := range map[string][]edit{"none": nil, "0": {deletionDelay(0)}, "10": {deletionDelay(10)}} {
		upgrades[delay] = upgrade{service: e.given(append(edits, named("delay-"+delay))...)}
	}
	for delay, u := range upgrades {
		e.serves(u.service)
		old := e.active(u.service)
		if delay != "0" {
			e.keep(old)
		}
		upgrades[delay] = upgrade{u.service, old}
		e.change(u.service, image("img:2"))
	}
	e.gone(upgrades["0"].old)
	e.keptFor(10*time.Second, e.retired(upgrades["10"].old), upgrades["10"].old)
	e.keptFor(60*time.Second, e.retireEarlier(upgrades["none"].old, 50*time.Second), upgrades["none"].old)
}

// keptFor waits until a cluster that is kept by a finalizer is deleted, and checks how long after its retirement that was.
func (e *env) keptFor(delay time.Duration, retired time.Time, cluster *rayv1.RayCluster) {
	e.t.Helper()
	e.soon(func() any {
		e.Expect(e.read(cluster, cluster.Name)).To(Succeed())
		return cluster.DeletionTimestamp
	}).ShouldNot(BeNil())
	e.Expect(cluster.DeletionTimestamp.Sub(retired)).To(BeNumerically(">=", delay))
	e.release(cluster)
	e.gone(cluster)
}

// retired waits until a cluster has no part in its service any more, and returns since when.
func (e *env) retired(cluster *rayv1.RayCluster) time.Time {
	e.t.Helper()
	e.soon(func() any {
		e.Expect(e.read(cluster, cluster.Name)).To(Succeed())
		return cluster.Annotations
	}).Should(HaveKey(rayv1.AnnotationRetiredAt))
	at, err := time.Parse(time.RFC3339, cluster.Annotations[rayv1.AnnotationRetiredAt])
	e.Expect(err).ToNot(HaveOccurred())
	return at
}

// retireEarlier moves the time of a cluster's retirement back, and returns it.
func (e *env) retireEarlier(cluster *rayv1.RayCluster, by time.Duration) time.Time {
	e.t.Helper()
	at := e.retired(cluster).Add(-by)
	e.Edit(e.t, cluster, func(c *rayv1.RayCluster) { c.Annotations[rayv1.AnnotationRetiredAt] = at.UTC().Format(time.RFC3339) })
	return at
}

func replacesALostCluster(e *env) {
	lost := map[*rayv1.RayService]*rayv1.RayCluster{}
	for _, kind := range []rayv1.RayServiceUpgradeType{rayv1.RayServiceNewCluster, rayv1.RayServiceUpgradeNone} {
		lost[e.given(strategy(kind), named(map[bool]string{true: "new-cluster", false: "none"}[kind == rayv1.RayServiceNewCluster]))] = nil
	}
	for service := range lost {
		e.serves(service)
		lost[service] = e.active(service)
		e.Expect(e.Delete(e.t.Context(), lost[service].DeepCopy(), client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
	}
	for service, before := range lost {
		e.gone(before)
		e.follow(service, func(s *rayv1.RayServiceStatuses) any { return s.ActiveServiceStatus.RayClusterName }).
			ShouldNot(Or(BeEmpty(), Equal(before.Name)))
		e.switched(service, e.active(service))
	}
}
