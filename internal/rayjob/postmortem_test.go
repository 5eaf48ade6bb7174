package rayjob

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
)

func TestOfALongTextThePartThatTellsMostIsKept(t *testing.T) {
	long := strings.Repeat("and so on ", 1000)
	initializing := rayv1.JobDeploymentStatusInitializing
	message := func(st rayv1.RayJobStatus) string { return st.Message }
	told := func(kind string) func(rayv1.RayJobStatus) string {
		return func(st rayv1.RayJobStatus) string { return meta.FindStatusCondition(st.Conditions, kind).Message }
	}
	senseless := func(s *Snapshot) {
		s.Job.Spec.Metadata = map[string]string{}
		for i := range 100 {
			s.Job.Spec.Metadata[fmt.Sprint(i)] = "\x00"
		}
	}
	refused := func(s *Snapshot) {
		s.Holds = map[string]action.Hold{roleCluster: {Reason: "FailedToCreateRayCluster", Message: "denied: " + long,
			Until: now.Add(time.Minute)}}
	}
	failed := answer(raySays(dashboard.JobFailed))
	said := func(s *Snapshot) {
		failed(s)
		s.Answer.Job.Message = "exit code 3, " + long + "\nfirst line\n" + long + "\nlast line"
	}
	invalid, refusal, failure := given("", senseless), given(initializing, refused), given(running, overHTTP, ready, confirmed, said)
	first := func(st rayv1.RayJobStatus) string { return st.PostMortem.Message }
	log := func(st rayv1.RayJobStatus) string { return st.PostMortem.Log }
	for name, tc := range map[string]struct {
		given              Snapshot
		text               func(rayv1.RayJobStatus) string
		wantBegin, wantEnd string
		limit              int
	}{
		"given many errors in a spec, the message has the first": {invalid, message, "[spec.metadata[0]", "...", maxMessage},
		"and so has the condition":                               {invalid, told(rayv1.ConditionValid), "[spec.metadata[0]", "...", maxMessage},
		"given a refused write, the message says by whom":        {refusal, message, "denied: and", "...", maxMessage},
		"and so does the condition, with what to do":             {refusal, told(rayv1.ConditionStalled), "denied: and", "may say more]", maxMessage},
		"given a failure, the message has the end of Ray's":      {failure, message, "...", "last line", maxMessage},
		"and the condition has it as well":                       {failure, told(rayv1.ConditionFailed), "...", "last line", maxMessage},
		"and the post-mortem has the first line":                 {failure, first, "exit code 3", "...", maxPostMortemMessage},
		"and the end of the log":                                 {failure, log, "...", "last line", maxPostMortemLog},
	} {
		t.Run(name, func(t *testing.T) {
			text := tc.text(next(tc.given))
			if !strings.HasPrefix(text, tc.wantBegin) || !strings.HasSuffix(text, tc.wantEnd) || len(text) > tc.limit {
				t.Errorf("%d bytes, want at most %d from %q to %q: %s", len(text), tc.limit, tc.wantBegin, tc.wantEnd, text)
			}
		})
	}
}
