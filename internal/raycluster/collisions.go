package raycluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
)

// maxStrangers is how many Pods of others are named one by one.
const maxStrangers = 5

// nameCollision is there while something of others stands under names or labels of the cluster. Each collision is told
// as an event once, when it is first seen.
func (p *planner) nameCollision(st *rayv1.RayClusterStatus) []action.Event {
	strange, earlier := p.strangers()
	sentences := slices.Concat(p.collisions, p.collidingPods(), strange, earlier)
	before := meta.FindStatusCondition(st.Conditions, rayv1.ConditionNameCollision)
	if len(sentences) == 0 {
		meta.RemoveStatusCondition(&st.Conditions, rayv1.ConditionNameCollision)
		return nil
	}
	known := ""
	if before != nil {
		known = before.Message
	}
	changed := p.set(st, metav1.Condition{Type: rayv1.ConditionNameCollision, Status: metav1.ConditionTrue,
		Reason: rayv1.ReasonNameCollision, Message: strings.Join(sentences, "; ")})
	if !changed {
		return nil
	}
	var events []action.Event
	for _, sentence := range slices.Concat(p.collisions, strange) {
		if !strings.Contains(known, sentence) {
			events = append(events, *action.Warning(collisionReason(sentence), "Create", sentence))
		}
	}
	return events
}

// collidingPods are the groups whose Pods' names are taken. The executor has told of them in events.
func (p *planner) collidingPods() []string {
	var sentences []string
	for _, key := range p.heldKeys() {
		if hold := p.snapshot.Holds[key]; hold.Collision && !strings.Contains(key, "/") {
			sentences = append(sentences, failureText(key, hold))
		}
	}
	return sentences
}

// strangers names the Pods that carry the cluster's label and are not its own: those of somebody else, and those of an
// earlier cluster of the same name, which go by themselves. Neither are counted or touched.
func (p *planner) strangers() (strange, earlier []string) {
	pods := slices.SortedFunc(slices.Values(p.snapshot.Strangers), func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	for _, pod := range pods {
		owner := metav1.GetControllerOf(pod)
		if owner != nil && owner.Kind == rayv1.KindRayCluster && owner.Name == p.snapshot.Cluster.Name {
			earlier = append(earlier, fmt.Sprintf("Pod %s is left from an earlier RayCluster of this name (uid %s)", pod.Name, owner.UID))
			continue
		}
		strange = append(strange, fmt.Sprintf("Pod %s carries the label %s of this cluster, but %s", pod.Name, rayv1.LabelCluster, belonging(pod)))
	}
	return shortened(strange, "carry the label of this cluster"), shortened(earlier, "are left from an earlier RayCluster of this name")
}

func shortened(sentences []string, what string) []string {
	if len(sentences) <= maxStrangers {
		return sentences
	}
	return append(sentences[:maxStrangers:maxStrangers], fmt.Sprintf("%d more Pods %s", len(sentences)-maxStrangers, what))
}

// collisionReason is the reason that clients know for an object of a kind that cannot be made.
func collisionReason(sentence string) string {
	for _, kind := range []string{kindServiceAccount, kindService, kindRoleBinding, kindRole, kindIngress, kindRoute, kindSecret, kindBudget} {
		if strings.Contains(sentence, " "+kind+" ") {
			return "FailedToCreate" + kind
		}
	}
	return rayv1.ReasonNameCollision
}
