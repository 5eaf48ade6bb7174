package action

import (
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/leadership"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
)

func TestASubmissionThatRayTookIsNotSentAgain(t *testing.T) {
	network, head := fakedashboard.NewNetwork(), fakedashboard.NewInProcess()
	network.Add("head:8265", head)
	r := NewRay(RayOptions{Gate: leadership.Alone{}, HTTP: network.Client(), Clock: clock.RealClock{}})
	job := &rayv1.RayJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "train", UID: "1"}}
	send := func(id string) {
		t.Helper()
		request := dashboard.SubmitRequest{Entrypoint: "python main.py", SubmissionID: id}
		if err := r.submit(Submit{Job: job, BaseURL: "http://head:8265", Request: request}); err != nil {
			t.Fatal(err)
		}
		r.Step(t.Context())
	}

	head.Inject(fakedashboard.Fault{Endpoint: fakedashboard.EndpointSubmit, Times: 1, Code: http.StatusServiceUnavailable})
	send("train-1")
	send("train-1")
	head.Restart()
	send("train-1")
	if attempts, accepted := head.Attempts("train-1"), head.Submissions("train-1"); attempts != 2 || accepted != 1 {
		t.Errorf("sent %d times and accepted %d times, want 2 and 1: one failed, one was taken", attempts, accepted)
	}
	send("train-2")
	if accepted := head.Submissions("train-2"); accepted != 1 {
		t.Errorf("the next attempt was accepted %d times", accepted)
	}
}

// A head that was replaced knows nothing of the submission that the one before it may have taken.
func TestASubmissionGoesToTheHeadItWasMeantForOnly(t *testing.T) {
	for name, tc := range map[string]struct {
		session func(*fakedashboard.Dashboard) string
		taken   int
	}{
		"given the same head":    {session: (*fakedashboard.Dashboard).Session, taken: 1},
		"given another head":     {session: func(*fakedashboard.Dashboard) string { return "session_0" }},
		"given no head by name":  {session: func(*fakedashboard.Dashboard) string { return "" }, taken: 1},
		"given no word about it": {session: func(d *fakedashboard.Dashboard) string { d.Down(); return "session_1" }},
	} {
		t.Run(name, func(t *testing.T) {
			network, head := fakedashboard.NewNetwork(), fakedashboard.NewInProcess()
			network.Add("head:8265", head)
			r := NewRay(RayOptions{Gate: leadership.Alone{}, HTTP: network.Client(), Clock: clock.RealClock{}})
			job := &rayv1.RayJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "train", UID: "1"}}
			submit := Submit{Job: job, BaseURL: "http://head:8265", Session: tc.session(head),
				Request: dashboard.SubmitRequest{Entrypoint: "python main.py", SubmissionID: "train-1"}}
			if err := r.submit(submit); err != nil {
				t.Fatal(err)
			}
			r.Step(t.Context())
			if taken := head.Submissions("train-1"); taken != tc.taken {
				t.Errorf("the job was taken %d times, want %d", taken, tc.taken)
			}
			if sent, _, _ := r.Outcomes(job.UID); (sent.Err == nil) != (tc.taken > 0) {
				t.Errorf("the outcome is %v", sent.Err)
			}
		})
	}
}
