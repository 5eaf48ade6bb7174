package integration

import (
	"math"
	"slices"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/heliostat-io/heliostat/test/harness"
)

// register is what the fence has to behave like: one holder and its term.
type register struct {
	pod  string
	term int64
}

// step is one thing that a replica asked of the API server: to become the holder with a term, or, without one, a write.
type step struct {
	pod  string
	term int64
}

// oneHolder is the model: a take-over needs a higher term, and only the holder's writes are accepted. Nobody is kept out
// before the first take-over.
func oneHolder() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return register{} },
		Step: func(state, input, output any) (bool, any) {
			now, asked := state.(register), input.(step)
			if asked.term > 0 {
				return asked.term > now.term, register(asked)
			}
			holds := now.pod == asked.pod || now.pod == ""
			return output.(bool) == holds, now
		},
	}
}

// checkHistory holds the audit log against the model. A take-over lasts from its request until the first write of the new
// holder is accepted, because the API server learns of the new holder a few milliseconds after it has stored it.
func checkHistory(t *testing.T, log []harness.Audited) {
	t.Helper()
	var history []porcupine.Operation
	clients := map[string]int{}
	add := func(request harness.Audited, term, until int64) {
		if _, ok := clients[request.Pod()]; !ok {
			clients[request.Pod()] = len(clients)
		}
		history = append(history, porcupine.Operation{
			// Each operation is a client of its own: one replica has many requests under way.
			ClientId: len(history), Input: step{pod: request.Pod(), term: term}, Output: request.Accepted(),
			Call: request.Received.UnixMicro(), Return: until,
		})
	}
	for _, request := range log {
		isTake := request.Resource() == "holders" && request.Accepted() && !request.DryRun()
		switch {
		case isTake:
			add(request, request.RequestObject.Spec.Term, firstWrite(log, request))
		case request.Fenced() && (request.Accepted() || request.Refused()):
			add(request, 0, request.Answered.UnixMicro())
		}
	}
	if len(history) == 0 {
		t.Fatal("the audit log shows nothing")
	}
	if !porcupine.CheckOperations(oneHolder(), history) {
		t.Error("the accepted writes are not those of one holder at a time:")
		for _, request := range log {
			t.Logf("%s..%s %s %d %s %s/%s dry %t %s", request.Received.Format("05.000000"), request.Answered.Format("05.000000"), request.Pod(),
				request.ResponseStatus.Code, request.Verb, request.Resource(), request.ObjectRef.Name, request.DryRun(), request.ResponseStatus.Message)
		}
	}
}

// firstWrite is when the first write of a new holder was answered that was accepted.
func firstWrite(log []harness.Audited, take harness.Audited) int64 {
	i := slices.IndexFunc(log, func(request harness.Audited) bool {
		return request.Pod() == take.Pod() && request.Fenced() && request.Accepted() && !request.Received.Before(take.Answered)
	})
	if i < 0 {
		return math.MaxInt64
	}
	return log[i].Answered.UnixMicro()
}
