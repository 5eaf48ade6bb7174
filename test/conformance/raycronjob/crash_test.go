package raycronjob

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/harness"
)

func crashCases() []Case {
	return []Case{
		{Row: 11, Kind: same, Given: "two operators, one of which does not hear of any change", When: "both handle 00:05", Then: "one RayJob", Run: func(e *env) {
			cron := e.stored()
			crons, jobs := harness.PauseOf("raycronjobs"), harness.PauseOf("rayjobs")
			e.clock.set(tick(cron).Add(-12*time.Second), true)
			deaf := e.start(harness.Transport(crons.Transport), harness.Transport(jobs.Transport))
			e.looked(cron)
			deaf.Settle(e.t)
			crons.On()
			jobs.On()
			e.start()
			e.ran(cron, tick(cron))
			e.Eventually(func() int { return tries(deaf) }).Should(BeNumerically(">", 0), "the other operator never tries")
			crons.Off()
			jobs.Off()
			e.rest()
			e.Expect(e.names()).To(HaveLen(1))
			e.lastIs(cron, tick(cron))
		}},
		{Row: 12, Kind: same, Given: "an API server that refuses a write of the status once", When: "it is 00:05", Then: "one RayJob; lastScheduleTime is right in the end", Run: func(e *env) {
			refusal := &refusal{}
			cron := e.stored()
			e.start(harness.Transport(refusal.transport))
			e.looked(cron)
			refusal.left.Store(1)
			e.at(cron, tick(cron))
			e.ran(cron, tick(cron))
			e.Expect(refusal.refused.Load()).To(BeEquivalentTo(1))
			e.rest()
			e.Expect(e.names()).To(HaveLen(1))
		}},
		{Row: 13, Kind: same, Given: "an operator that is killed between the creation of the RayJob and the write of the status", When: "the next one starts", Then: "one RayJob for the tick", Run: func(e *env) {
			cron, _ := e.unrecorded()
			e.operator.Stop()
			e.start()
			e.ran(cron, tick(cron))
			e.rest()
			e.Expect(e.names()).To(HaveLen(1))
			e.Expect(e.operator.Traffic.Count("create", "rayjobs")).To(BeZero())
		}},
		{Row: 37, Kind: same, Given: "the tick of 00:05 was run", When: "a user deletes its RayJob", Then: "it is not made again", Run: func(e *env) {
			cron, run := e.firstRun()
			e.Expect(e.Delete(e.t.Context(), run)).To(Succeed())
			e.Eventually(e.names).Should(BeEmpty())
			e.touch(cron)
			e.nothing()
		}},
		{Row: 54, Kind: better, Weak: []string{"RC-W8"}, Theirs: "the tick counts as run", Given: "somebody else's RayJob of the name", When: "it is 00:05", Then: "a conflict, and no run",
			How: "condition Stalled with reason NameCollision, and an event; the tick is run when the name is free, until the next one comes", Run: func(e *env) {
				cron := e.stored()
				foreign := harness.NewJob(e.ns, rayv1.HTTPMode)
				foreign.Name = runName(cron, tick(cron))
				foreign.Spec.ManagedBy = ptr.To(rayv1.ManagedByMultiKueue)
				e.make(foreign)
				e.start()
				e.looked(cron)
				e.clock.set(tick(cron), true)
				e.touch(cron)
				e.said(cron, "Warning", "FailedToCreateRayJob")
				e.Expect(e.have(cron, rayv1.ConditionStalled, metav1.ConditionTrue, rayv1.ReasonNameCollision)).To(ContainSubstring(foreign.Name))
				e.Expect(cron.Status.LastScheduleTime).To(BeNil())
				e.refresh(foreign)
				e.Expect(foreign.OwnerReferences).To(BeEmpty())
				e.Expect(e.Delete(e.t.Context(), foreign)).To(Succeed())
				e.ran(cron, tick(cron))
				e.have(cron, rayv1.ConditionReady, metav1.ConditionTrue, rayv1.ReasonScheduled)
			}},
		{Row: 55, Kind: better, Weak: []string{"RC-W9"}, Theirs: "the tick is run twice", Given: "the status cannot be written after 00:05, and the RayJob is deleted", When: "it can be written again", Then: "the tick is not run again",
			How: "a finalizer holds the RayJob until its tick is recorded", Run: func(e *env) {
				cron, run := e.unrecorded()
				e.Expect(e.Delete(e.t.Context(), run)).To(Succeed())
				e.Expect(e.names()).To(HaveLen(1), "the RayJob must stay until its tick is recorded")
				e.operator.Stop()
				e.start()
				e.Eventually(e.names).Should(BeEmpty())
				e.touch(cron)
				e.nothing()
				e.lastIs(cron, tick(cron))
				e.Expect(e.operator.Traffic.Count("create", "rayjobs")).To(BeZero())
			}},
		{Row: 57, Kind: better, Weak: []string{"RC-W11"}, Theirs: "the schedule stands still until the next resync", Given: "many missed ticks, and an operator that hears of its own writes late", When: "time passes", Then: "the schedule goes on",
			How: "each pass says when it wants to look again", Run: func(e *env) {
				cron := e.stored()
				almost := tick(cron, 20).Add(-10 * time.Second)
				e.clock.set(almost, false)
				e.start(harness.Transport(harness.DelayWatches(2 * time.Second)))
				e.ran(cron, tick(cron, 19))
				e.clock.set(almost, true)
				e.ran(cron, tick(cron, 20))
				e.rest()
				e.Expect(e.names()).To(HaveLen(2))
			}},
	}
}

// unrecorded is a RayCronJob whose RayJob of the first tick is there, while its status cannot be written.
func (e *env) unrecorded() (*rayv1.RayCronJob, *rayv1.RayJob) {
	e.t.Helper()
	refusal := &refusal{}
	cron := e.stored()
	e.start(harness.Transport(refusal.transport))
	e.looked(cron)
	refusal.left.Store(1 << 30)
	e.at(cron, tick(cron))
	e.Eventually(e.names).Should(HaveLen(1))
	e.Eventually(refusal.refused.Load).Should(BeNumerically(">", 0))
	run := e.runs()[0]
	e.refresh(cron)
	e.Expect(cron.Status.LastScheduleTime).To(BeNil())
	return cron, &run
}

// tries counts how often an operator has tried to make a RayJob.
func tries(operator *harness.Operator) int {
	count := 0
	for _, request := range operator.Traffic.All() {
		if request.Verb == "create" && request.Resource == "rayjobs" {
			count++
		}
	}
	return count
}

// refusal is an API server that refuses so many writes of the status of a RayCronJob.
type refusal struct{ left, refused atomic.Int64 }

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

func (r *refusal) transport(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(request *http.Request) (*http.Response, error) {
		is := request.Method == http.MethodPatch && strings.Contains(request.URL.Path, "/raycronjobs/") && strings.HasSuffix(request.URL.Path, "/status")
		if !is || r.left.Load() == 0 {
			return next.RoundTrip(request)
		}
		r.left.Add(-1)
		r.refused.Add(1)
		body := []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"refused by the test","reason":"Forbidden","code":403}`)
		return &http.Response{StatusCode: http.StatusForbidden, Status: "403 Forbidden", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{"Content-Type": []string{"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: request}, nil
	})
}
