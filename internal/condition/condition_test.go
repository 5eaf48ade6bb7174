package condition_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-io/heliostat/internal/condition"
)

func TestSet(t *testing.T) {
	then := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	now := then.Add(time.Minute + 700*time.Millisecond)
	second := now.Truncate(time.Second)
	ready := func(status metav1.ConditionStatus, reason, message string, generation int64, at time.Time) metav1.Condition {
		return metav1.Condition{Type: "Ready", Status: status, Reason: reason, Message: message, ObservedGeneration: generation,
			LastTransitionTime: metav1.NewTime(at)}
	}
	other := metav1.Condition{Type: "Other", Status: metav1.ConditionTrue, Reason: "Fine", ObservedGeneration: 1,
		LastTransitionTime: metav1.NewTime(then)}
	yes, no := metav1.ConditionTrue, metav1.ConditionFalse
	long := strings.Repeat("a", condition.MaxMessage) + "z"
	cut := strings.Repeat("a", condition.MaxMessage-3) + "..."
	for name, test := range map[string]struct {
		given       []metav1.Condition
		set         metav1.Condition
		want        []metav1.Condition
		wantChanged bool
	}{
		"given an empty list, the condition is new": {
			set:  ready(yes, "Done", "", 0, time.Time{}),
			want: []metav1.Condition{ready(yes, "Done", "", 3, second)}, wantChanged: true,
		},
		"given conditions of other types, they stay": {
			given: []metav1.Condition{other},
			set:   ready(yes, "Done", "", 0, time.Time{}),
			want:  []metav1.Condition{other, ready(yes, "Done", "", 3, second)}, wantChanged: true,
		},
		"given the same, nothing changes but the generation": {
			given: []metav1.Condition{ready(yes, "Done", "well", 2, then), other},
			set:   ready(yes, "Done", "well", 0, time.Time{}),
			want:  []metav1.Condition{ready(yes, "Done", "well", 3, then), other},
		},
		"given another status, it is a transition": {
			given: []metav1.Condition{ready(no, "Done", "", 2, then)},
			set:   ready(yes, "Done", "", 0, time.Time{}),
			want:  []metav1.Condition{ready(yes, "Done", "", 3, second)}, wantChanged: true,
		},
		"given another reason, it is a change and no transition": {
			given: []metav1.Condition{ready(no, "Begun", "", 2, then)},
			set:   ready(no, "Halfway", "", 0, time.Time{}),
			want:  []metav1.Condition{ready(no, "Halfway", "", 3, then)}, wantChanged: true,
		},
		"given another message, it is a change and no transition": {
			given: []metav1.Condition{ready(no, "Begun", "one of two", 2, then)},
			set:   ready(no, "Begun", "two of two", 0, time.Time{}),
			want:  []metav1.Condition{ready(no, "Begun", "two of two", 3, then)}, wantChanged: true,
		},
		"given a long message, its beginning is kept": {
			set:  ready(no, "Begun", long, 0, time.Time{}),
			want: []metav1.Condition{ready(no, "Begun", cut, 3, second)}, wantChanged: true,
		},
		"given the same long message as before, nothing changes": {
			given: []metav1.Condition{ready(no, "Begun", cut, 3, then)},
			set:   ready(no, "Begun", long, 0, time.Time{}),
			want:  []metav1.Condition{ready(no, "Begun", cut, 3, then)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			conditions := test.given
			if changed := condition.Set(&conditions, test.set, 3, now); changed != test.wantChanged {
				t.Errorf("Set tells %t, want %t", changed, test.wantChanged)
			}
			if diff := cmp.Diff(test.want, conditions); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStatus(t *testing.T) {
	if condition.Status(true) != metav1.ConditionTrue || condition.Status(false) != metav1.ConditionFalse {
		t.Errorf("true is %s and false is %s", condition.Status(true), condition.Status(false))
	}
}

func TestRestore(t *testing.T) {
	made := func(kind, reason string) metav1.Condition { return metav1.Condition{Type: kind, Reason: reason} }
	for name, test := range map[string]struct{ before, after, want []metav1.Condition }{
		"one that changed is as before":  {[]metav1.Condition{made("A", "old")}, []metav1.Condition{made("A", "new")}, []metav1.Condition{made("A", "old")}},
		"one that is new goes":           {nil, []metav1.Condition{made("A", "new")}, []metav1.Condition{}},
		"one that is gone comes back":    {[]metav1.Condition{made("A", "old")}, nil, []metav1.Condition{made("A", "old")}},
		"one that is not named is as is": {[]metav1.Condition{made("B", "old")}, []metav1.Condition{made("B", "new")}, []metav1.Condition{made("B", "new")}},
	} {
		t.Run(name, func(t *testing.T) {
			condition.Restore(&test.after, test.before, "A")
			if diff := cmp.Diff(test.want, test.after); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNoLongerStalled(t *testing.T) {
	stalled := func(status metav1.ConditionStatus, generation int64, message string) []metav1.Condition {
		return []metav1.Condition{{Type: "Stalled", Status: status, Reason: "Quota", Message: message, ObservedGeneration: generation}}
	}
	yes, no := metav1.ConditionTrue, metav1.ConditionFalse
	for name, test := range map[string]struct {
		before, after []metav1.Condition
		want          string
	}{
		"it was stalled":                      {stalled(yes, 1, "no quota"), stalled(no, 1, ""), "no quota"},
		"it was stalled without a message":    {stalled(yes, 1, ""), stalled(no, 1, ""), "Quota"},
		"it still is":                         {stalled(yes, 1, "no quota"), stalled(yes, 1, "no quota"), ""},
		"it never was":                        {stalled(no, 1, ""), stalled(no, 1, ""), ""},
		"its spec was changed since":          {stalled(yes, 1, "no quota"), stalled(no, 2, ""), ""},
		"nothing is known about it":           {nil, stalled(no, 1, ""), ""},
		"nothing will be known, as suspended": {stalled(yes, 1, "no quota"), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := condition.NoLongerStalled(test.after, test.before); got != test.want {
				t.Errorf("it says %q, want %q", got, test.want)
			}
		})
	}
}
