package diagnose

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// cached is a snapshot with nothing but a cluster and its Pods, as the operator has it.
func cached(age time.Duration, pods ...*corev1.Pod) *Snapshot {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	cluster := &rayv1.RayCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo", CreationTimestamp: metav1.NewTime(now.Add(-age))}}
	return &Snapshot{Now: now, Clusters: []*rayv1.RayCluster{cluster}, Pods: pods}
}

// pending is a worker that its node has not started since a time.
func pending(age time.Duration) *corev1.Pod {
	now := cached(0).Now
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "w", CreationTimestamp: metav1.NewTime(now.Add(-age)),
		Labels: map[string]string{rayv1.LabelCluster: "demo", rayv1.LabelNodeType: rayv1.NodeTypeWorker, rayv1.LabelGroup: "a"}},
		Spec: corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{Phase: corev1.PodPending,
			Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}}}
}

func TestTheOperatorLooksAgainWhenTimeAloneChangesItsJudgement(t *testing.T) {
	for name, tc := range map[string]struct {
		given *Snapshot
		want  []string
		again time.Duration
	}{
		"given a cluster of which nothing is there, it is no trouble: the operator makes it": {cached(time.Hour), nil, 0},
		"given a young cluster, it is neither, and nothing is due":                           {cached(time.Second), nil, 0},
		"given a Pod that its node starts, it is looked at when that takes too long": {cached(time.Hour, pending(4*time.Minute)), nil,
			time.Minute + time.Second},
		"given one that takes too long, that is found and nothing is due": {cached(time.Hour, pending(6*time.Minute)), []string{idSlowStart}, 0},
		"given what is due at once, there is a pause":                     {cached(time.Hour, pending(5*time.Minute)), nil, leastAgain},
	} {
		t.Run(name, func(t *testing.T) {
			found, again := Own(tc.given)
			var ids []string
			for _, f := range found {
				ids = append(ids, f.ID)
			}
			if !slices.Equal(ids, tc.want) || again != tc.again {
				t.Errorf("found %v, look again in %s; want %v and %s", ids, again, tc.want, tc.again)
			}
		})
	}
}

// TestTheOperatorsRulesAreRules keeps the list of ids true.
func TestTheOperatorsRulesAreRules(t *testing.T) {
	var known []string
	for _, rule := range objectRules() {
		known = append(known, rule.id)
		if rule.severity < Passing {
			for _, kind := range []string{rayv1.KindRayCluster, rayv1.KindRayJob, rayv1.KindRayService, rayv1.KindRayCronJob} {
				if slices.Contains(ownRules(kind), rule.id) {
					t.Errorf("the note %s counts as trouble of a %s", rule.id, kind)
				}
			}
		}
	}
	for _, kind := range []string{rayv1.KindRayCluster, rayv1.KindRayJob, rayv1.KindRayService, rayv1.KindRayCronJob} {
		for _, id := range ownRules(kind) {
			if !slices.Contains(known, id) {
				t.Errorf("there is no rule %s for a %s", id, kind)
			}
		}
	}
}
