package raycluster

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAClockBehindTheAPIServersMakesNoLongerWait(t *testing.T) {
	earlier := planNow.Add(-3 * time.Second)
	for name, tc := range map[string]struct {
		ahead  time.Duration // by how much the Pod seems to be made after now
		streak Streak
		want   time.Duration // until the ended Pod is replaced
	}{
		"given clocks that agree, the Pod's age counts":   {0, Streak{Count: 1, Last: planNow}, leastLife},
		"given a first end, the wait counts from it":      {time.Hour, Streak{Count: 1, Last: planNow}, leastLife},
		"given a first end earlier, the rest of the wait": {time.Hour, Streak{Count: 1, Last: earlier}, 2 * time.Second},
		"given a streak, its rest and no more":            {time.Hour, Streak{Count: 4, Last: planNow}, 40 * time.Second},
		"given an end that is forgotten, there is none":   {time.Hour, Streak{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := ready()
			w.pod("a/0").Status.Phase = corev1.PodFailed
			w.pod("a/0").CreationTimestamp = metav1.NewTime(planNow.Add(tc.ahead))
			w.Streaks = map[string]Streak{"a": tc.streak}
			if tc.want > 0 {
				plan := Plan(w.Snapshot, w.settings, planNow)
				if plan.LookAgain != tc.want {
					t.Errorf("the plan looks again in %s, want %s", plan.LookAgain, tc.want)
				}
				if did := w.pass(planNow.Add(tc.want - time.Millisecond)); len(did) > 0 {
					t.Errorf("before %s the plan does %v, want nothing", tc.want, did)
				}
			}
			want := []string{"delete a/0", "create a/2"}
			if diff := cmp.Diff(want, w.pass(planNow.Add(tc.want))); diff != "" {
				t.Errorf("after %s (-want +got):\n%s", tc.want, diff)
			}
		})
	}
}
