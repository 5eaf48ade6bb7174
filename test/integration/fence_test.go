package integration

import (
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	heliostatv1alpha1 "github.com/heliostat-io/heliostat/api/heliostat/v1alpha1"
	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/apiserver"
	"github.com/heliostat-io/heliostat/test/harness"
)

// stage is what all scenarios share: an API server with an audit log, and the program of the operator.
type stage struct {
	cluster harness.Cluster
	log     harness.AuditLog
	program string
}

// TestOneWriter runs operators in processes of their own, with tokens that are bound to Pods, against a real API server.
// The audit log is the judge.
func TestOneWriter(t *testing.T) {
	log, flags := harness.NewAuditLog(t)
	s := stage{cluster: harness.ConnectTo(t, apiserver.New(t, flags...)), log: log, program: harness.BuildOperator(t)}
	for name, scenario := range map[string]func(*testing.T, stage){
		"a leader that was stopped between plan and write writes nothing when it goes on": stoppedLeader,
		"a request that was under way for a minute is refused":                            delayedRequest,
		"without the policy the same request is accepted":                                 delayedRequestUnfenced,
		"a leader that cannot renew gives up":                                             renewalsCut,
		"a leader that reaches nothing gives up by itself":                                everythingCut,
		"a deleted lease begins a new term":                                               leaseDeleted,
		"all that the operator makes is behind the fence":                                 allIsFenced,
		"only a Pod can become the holder, and only itself":                               holderProtectsItself,
		"a replica that stands by asks for its rights":                                    standbyLearnsItsRights,
		"running clusters survive three minutes without an API server":                    apiServerAway,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scenario(t, s)
		})
	}
}

// pair is an installation with a leader and a standby.
type pair struct {
	harness.Installation
	first, second *harness.Replica
	fenced        bool
}

func (s stage) pair(t *testing.T, fenced bool) pair {
	t.Helper()
	p := pair{Installation: s.cluster.Install(t), fenced: fenced}
	fencing := "--fencing=auto"
	if fenced {
		// The API server needs up to a second until it acts by new policies.
		fencing = "--fencing=required"
		p.Fence(t)
	}
	p.first = p.StartReplica(t, s.program, "first", s.cluster.REST, fencing)
	p.leads(t, p.first)
	p.second = p.StartReplica(t, s.program, "second", s.cluster.REST, fencing)
	NewWithT(t).Eventually(func() bool { return p.second.Says("Starting workers") }).Should(BeTrue())
	return p
}

// leads waits until the replica is the holder.
func (p pair) leads(t *testing.T, replica *harness.Replica) {
	t.Helper()
	NewWithT(t).Eventually(func() bool {
		holder := p.Holder(t)
		return holder.Spec.PodUID == replica.UID() && holder.Status.Term == holder.Spec.Term &&
			meta.IsStatusConditionTrue(holder.Status.Conditions, heliostatv1alpha1.ConditionFenced) == p.fenced
	}, 2*harness.Patience).Should(BeTrue(), "%s never leads", replica.Pod.Name)
}

// heals kills a worker and waits for its successor.
func (p pair) heals(t *testing.T, cluster *rayv1.RayCluster) {
	t.Helper()
	workers := harness.Alive(p.Pods(t, p.Namespace, harness.WorkersOf(cluster.Name)))
	p.Kill(t, &workers[0])
	NewWithT(t).Eventually(func() bool {
		p.Kubelet(t, p.Namespace)
		now := harness.Names(harness.Alive(p.Pods(t, p.Namespace, harness.WorkersOf(cluster.Name))))
		return len(now) == len(workers) && !slices.Contains(now, workers[0].Name)
	}).Should(BeTrue(), "the lost worker was not replaced")
}

// judge holds what the audit log shows against what must be.
func (s stage) judge(t *testing.T, p pair, cluster *rayv1.RayCluster) {
	t.Helper()
	checkHistory(t, s.log.Of(t, p.User()))
	s.judgeMade(t, p, cluster)
}

// judgeMade looks at what was made: one head, nothing twice, and no process has ended.
func (s stage) judgeMade(t *testing.T, p pair, cluster *rayv1.RayCluster) {
	t.Helper()
	if heads := harness.Alive(p.Pods(t, p.Namespace, harness.HeadOf(cluster.Name))); len(heads) != 1 {
		t.Errorf("heads %v, want one", harness.Names(heads))
	}
	made := map[string]int{}
	for _, request := range s.log.Of(t, p.User()) {
		if request.Verb == "create" && request.Accepted() && request.Fenced() {
			made[request.Resource()+"/"+request.ObjectRef.Name]++
		}
	}
	for object, times := range made {
		if times > 1 {
			t.Errorf("%s was made %d times", object, times)
		}
	}
	for _, replica := range []*harness.Replica{p.first, p.second} {
		if replica.Ended() {
			t.Errorf("replica %s has ended", replica.Pod.Name)
		}
	}
}

// writesOf are the writes of a replica that the fence is for.
func (s stage) writesOf(t *testing.T, p pair, replica *harness.Replica) []harness.Audited {
	t.Helper()
	return slices.DeleteFunc(s.log.Of(t, p.User()), func(request harness.Audited) bool {
		return request.Pod() != replica.UID() || !request.Fenced() || strings.HasPrefix(request.Resource(), "holders")
	})
}

func statusOfCluster(r harness.Request) bool {
	return r.Verb == "patch" && r.Resource == "rayclusters/status"
}

func newPod(r harness.Request) bool { return r.Verb == "create" && r.Resource == "pods" }

func stoppedLeader(t *testing.T, s stage) {
	g := NewWithT(t)
	p := s.pair(t, true)
	cluster := harness.NewCluster(p.Namespace, "demo")
	held := p.first.Proxy.HoldAnswer(statusOfCluster)
	g.Expect(p.Create(t.Context(), cluster)).To(Succeed())
	held.Wait(t)
	// The status is written, so the plan is made; the Pods are not yet.
	p.first.Pause(t)
	held.Release()

	p.leads(t, p.second)
	p.BecomesReady(t, cluster)
	before := len(s.writesOf(t, p, p.first))
	p.first.Resume(t)
	g.Eventually(func() bool { return p.first.Says("The term ends") }).Should(BeTrue(), "the stopped leader never went on")
	p.heals(t, cluster)
	g.Expect(s.writesOf(t, p, p.first)).To(HaveLen(before), "the stopped leader has written")
	s.judge(t, p, cluster)
}

// delay has a Pod's create of the first leader held for a minute, while the second one takes over.
func delay(t *testing.T, s stage, fenced bool) (pair, *rayv1.RayCluster, int) {
	t.Helper()
	g := NewWithT(t)
	const long = time.Minute
	p := s.pair(t, fenced)
	cluster := harness.NewCluster(p.Namespace, "demo", func(c *rayv1.RayCluster) { c.Spec.WorkerGroupSpecs = nil })
	held := p.first.Proxy.HoldRequest(newPod)
	g.Expect(p.Create(t.Context(), cluster)).To(Succeed())
	held.Wait(t)
	since := time.Now()
	p.first.Proxy.Cut(harness.Everything)
	p.leads(t, p.second)
	p.BecomesReady(t, cluster)
	time.Sleep(time.Until(since.Add(long)))
	held.Release()
	code := held.Code(t)
	p.first.Proxy.Cut(nil)
	return p, cluster, code
}

func delayedRequest(t *testing.T, s stage) {
	g := NewWithT(t)
	p, cluster, code := delay(t, s, true)
	g.Expect(code).To(Equal(403))
	g.Eventually(func() bool {
		return slices.ContainsFunc(s.writesOf(t, p, p.first), func(request harness.Audited) bool {
			return request.Verb == "create" && request.Resource() == "pods" && request.Refused()
		})
	}).Should(BeTrue(), "the refusal does not stand in the audit log")
	s.judge(t, p, cluster)
}

func delayedRequestUnfenced(t *testing.T, s stage) {
	g := NewWithT(t)
	p, _, code := delay(t, s, false)
	g.Expect(code).To(Equal(201), "without the fence nothing refuses a late write")
	g.Eventually(func() int {
		made := 0
		for _, request := range slices.Concat(s.writesOf(t, p, p.first), s.writesOf(t, p, p.second)) {
			if request.Verb == "create" && request.Resource() == "pods" && request.Accepted() {
				made++
			}
		}
		return made
	}).Should(Equal(2), "two heads were made for one cluster")
	holder := p.Holder(t)
	g.Expect(holder.Status.Conditions).To(HaveLen(1))
	g.Expect(holder.Status.Conditions[0].Reason).To(Equal("PolicyMissing"))
}

func renewalsCut(t *testing.T, s stage) {
	g := NewWithT(t)
	p := s.pair(t, true)
	cluster := harness.NewCluster(p.Namespace, "demo")
	g.Expect(p.Create(t.Context(), cluster)).To(Succeed())
	p.BecomesReady(t, cluster)

	p.first.Proxy.Cut(func(r harness.Request) bool { return r.Resource == "leases" })
	p.leads(t, p.second)
	g.Eventually(func() bool { return p.first.Says("The term ends") }).Should(BeTrue())
	p.heals(t, cluster)
	s.judge(t, p, cluster)

	p.first.Proxy.Cut(nil)
	p.second.Proxy.Cut(func(r harness.Request) bool { return r.Resource == "leases" })
	p.leads(t, p.first)
	p.heals(t, cluster)
	s.judge(t, p, cluster)
}

func everythingCut(t *testing.T, s stage) {
	g := NewWithT(t)
	p := s.pair(t, true)
	cluster := harness.NewCluster(p.Namespace, "demo")
	g.Expect(p.Create(t.Context(), cluster)).To(Succeed())
	p.BecomesReady(t, cluster)

	p.first.Proxy.Cut(harness.Everything)
	g.Eventually(func() bool { return p.first.Says("The term ends") }).Should(BeTrue(), "the leader does not stop by itself")
	p.leads(t, p.second)
	p.heals(t, cluster)
	before := len(s.writesOf(t, p, p.first))
	p.first.Proxy.Cut(nil)
	// It sees again what happens, and leaves it to the new leader.
	p.heals(t, cluster)
	p.heals(t, cluster)
	g.Expect(s.writesOf(t, p, p.first)).To(HaveLen(before))
	s.judge(t, p, cluster)
}

func leaseDeleted(t *testing.T, s stage) {
	g := NewWithT(t)
	p := s.pair(t, true)
	cluster := harness.NewCluster(p.Namespace, "demo")
	g.Expect(p.Create(t.Context(), cluster)).To(Succeed())
	p.BecomesReady(t, cluster)
	for range 3 {
		lease := &coordinationv1.Lease{}
		before := p.Holder(t)
		g.Expect(p.Get(t.Context(), p.LeaseKey(), lease)).To(Succeed())
		g.Expect(p.Delete(t.Context(), lease)).To(Succeed())
		p.heals(t, cluster)
		g.Eventually(func() bool {
			if err := p.Get(t.Context(), p.LeaseKey(), lease); client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
			holder := p.Holder(t)
			return lease.UID != "" && holder.Spec.LeaseUID == string(lease.UID) && holder.Spec.Term > before.Spec.Term &&
				holder.Status.Term == holder.Spec.Term && ptr.Deref(lease.Spec.HolderIdentity, "") != ""
		}, 2*harness.Patience).Should(BeTrue(), "the new Lease never got its holder")
	}
	p.heals(t, cluster)
	s.judge(t, p, cluster)
}

func apiServerAway(t *testing.T, s stage) {
	g := NewWithT(t)
	const away = 3 * time.Minute
	p := s.pair(t, true)
	cluster := harness.NewCluster(p.Namespace, "demo")
	g.Expect(p.Create(t.Context(), cluster)).To(Succeed())
	p.BecomesReady(t, cluster)
	before := harness.Names(p.Pods(t, p.Namespace, harness.WorkersOf("demo")))

	p.first.Proxy.Cut(harness.Everything)
	p.second.Proxy.Cut(harness.Everything)
	worker := p.Pods(t, p.Namespace, harness.WorkersOf("demo"))[0]
	p.SetPod(t, &worker, harness.Unready)
	time.Sleep(away)
	g.Expect(p.first.Ended() || p.second.Ended()).To(BeFalse(), "an operator ended because the API server was away")
	p.first.Proxy.Cut(nil)
	p.second.Proxy.Cut(nil)
	back := time.Now()
	g.Eventually(func() int32 {
		g.Expect(p.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster)).To(Succeed())
		return cluster.Status.ReadyWorkerReplicas
	}).Should(Equal(int32(1)), "the status never catches up")
	t.Logf("the status has caught up %s after the API server's return", time.Since(back).Round(100*time.Millisecond))
	g.Expect(harness.Names(p.Pods(t, p.Namespace, harness.WorkersOf("demo")))).To(Equal(before), "Pods were touched")
	s.judge(t, p, cluster)
}
