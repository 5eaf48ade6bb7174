// Package worst puts what internal/diagnose finds into the conditions of an object, and tells of it once.
package worst

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/condition"
	"github.com/heliostat-io/heliostat/internal/diagnose"
	"github.com/heliostat-io/heliostat/internal/excerpt"
)

// Object is what one pass over an object knows when all its other conditions are set.
type Object struct {
	// Facts hold the object with its next status.
	Facts *diagnose.Snapshot
	// Conditions are those of the next status.
	Conditions *[]metav1.Condition
	// Generation is that of the spec that was looked at.
	Generation int64
	Now        time.Time
	// Awaited is the RayCluster that the object waits for, nil when it waits for none.
	Awaited *rayv1.RayCluster
	// Holds are the refused writes, of which the executor has told.
	Holds map[string]action.Hold
	// Events are those that the pass sends anyhow.
	Events []action.Event
}

// Lift puts the worst finding about the object into its condition Troubled and names it in the others that speak of it. It
// returns the events of the pass, with one about the finding if that is another one than before, and the time after which
// there may be another finding although nothing changes, or zero.
func (o Object) Lift() ([]action.Event, time.Duration) {
	findings, again := diagnose.Own(o.Facts)
	o.hint(findings)
	before := meta.FindStatusCondition(*o.Conditions, rayv1.ConditionTroubled)
	worst, found := o.worst(findings, before)
	events := slices.Clone(o.Events)
	switch {
	case found:
		events = o.tell(events, worst, before)
		condition.Set(o.Conditions, worst, o.Generation, o.Now)
	case before != nil:
		events = append(events, *action.Normal("TroubleGone", "Diagnose", "what was found is gone: "+keyOf(before.Message).String()))
		meta.RemoveStatusCondition(o.Conditions, rayv1.ConditionTroubled)
	}
	return events, again
}

// worst is the condition Troubled. What the object waits for is worse than what only passes, and what another object explains is
// not told a second time. Of like findings about several objects the one stays that was told.
func (o Object) worst(findings []diagnose.Finding, before *metav1.Condition) (metav1.Condition, bool) {
	below, troubled := o.below()
	if troubled && (len(findings) == 0 || findings[0].Severity != diagnose.Blocking || findings[0].ID == diagnose.Unexplained) {
		return below, true
	}
	if len(findings) == 0 {
		return metav1.Condition{}, false
	}
	worst := findings[0]
	if before != nil {
		told := diagnose.HintIn(before.Message)
		same := func(f diagnose.Finding) bool {
			return f.ID == worst.ID && f.Severity == worst.Severity && told == f.ID && strings.HasPrefix(before.Message, f.Object+": ")
		}
		if i := slices.IndexFunc(findings, same); i >= 0 {
			worst = findings[i]
		}
	}
	return troubledBy(worst.Reason, worst.String()), true
}

// below is the condition Troubled that the trouble of the awaited cluster makes.
func (o Object) below() (metav1.Condition, bool) {
	if o.Awaited == nil {
		return metav1.Condition{}, false
	}
	c := meta.FindStatusCondition(o.Awaited.Status.Conditions, rayv1.ConditionTroubled)
	if c == nil || c.Status != metav1.ConditionTrue {
		return metav1.Condition{}, false
	}
	return troubledBy(c.Reason, rayv1.KindRayCluster+" "+o.Awaited.Name+": "+c.Message), true
}

func troubledBy(reason, message string) metav1.Condition {
	return metav1.Condition{Type: rayv1.ConditionTroubled, Status: metav1.ConditionTrue, Reason: reason, Message: message}
}

// key is what makes a finding another one: its id and its object.
type key struct{ id, object string }

func (k key) String() string { return k.object + " [finding " + k.id + "]" }

// objects are the names of objects at the beginning of a message.
var objects = regexp.MustCompile(`^(?:[A-Z]\w+ [a-z0-9./-]+: )+`)

// keyOf reads the key out of the message of a condition Troubled.
func keyOf(message string) key {
	return key{diagnose.HintIn(message), strings.TrimSuffix(objects.FindString(message), ": ")}
}

// sameWords is how many bytes of two texts must be the same for them to speak of one trouble.
const sameWords = 80

// tell adds the event about a finding. One that speaks of the same already gets the hint instead, and of refused writes the
// executor has told.
func (o Object) tell(events []action.Event, worst metav1.Condition, before *metav1.Condition) []action.Event {
	for i := range events {
		if events[i].Type == "Warning" && diagnose.HintIn(events[i].Note) == "" && about(worst.Message, events[i].Note) {
			hint := " " + hintOf(worst.Message)
			events[i].Note = excerpt.Beginning(events[i].Note, action.MaxNote-len(hint)) + hint
			return events
		}
	}
	if before != nil && keyOf(before.Message) == keyOf(worst.Message) || o.refused(worst.Message) {
		return events
	}
	return append(events, *action.Warning(worst.Reason, "Diagnose", short(worst.Message)))
}

// refused tells whether a message speaks of a write that is held back.
func (o Object) refused(message string) bool {
	for _, hold := range o.Holds {
		if (hold.Reason != "" || hold.Collision) && about(message, hold.Message) {
			return true
		}
	}
	return false
}

// about tells whether a message repeats the beginning of a text.
func about(message, text string) bool {
	line := strings.Join(strings.Fields(text), " ")
	return line != "" && strings.Contains(message, line[:min(len(line), sameWords)])
}

func hintOf(message string) string {
	if i := strings.LastIndex(message, "[finding "); i >= 0 {
		return message[i:]
	}
	return ""
}

// short fits a message into an event. Its hint stays whole.
func short(message string) string {
	if len(message) <= action.MaxNote {
		return message
	}
	hint := " " + hintOf(message)
	return excerpt.Beginning(strings.TrimSuffix(message, hint), action.MaxNote-len(hint)) + hint
}

// maxHinted bounds a condition with a hint, so that the conditions of an owner that repeat it do not cut the hint off.
const maxHinted = condition.MaxMessage - 300

// hint names in the conditions that speak of trouble, line by line, the finding that it is.
func (o Object) hint(findings []diagnose.Finding) {
	for i := range *o.Conditions {
		c := &(*o.Conditions)[i]
		switch {
		case c.Type == rayv1.ConditionStalled && c.Status == metav1.ConditionTrue,
			c.Type == rayv1.ConditionReplicaFailure && c.Status == metav1.ConditionTrue:
			c.Message = hinted(c.Reason, c.Message, findings)
		case c.Type == rayv1.ConditionPodsHealthy && c.Status == metav1.ConditionFalse:
			lines := strings.Split(c.Message, "\n")
			for n, line := range lines {
				lines[n] = hinted("", line, findings)
			}
			c.Message = excerpt.Beginning(strings.Join(lines, "\n"), condition.MaxMessage)
		}
	}
}

func hinted(reason, text string, findings []diagnose.Finding) string {
	if diagnose.HintIn(text) != "" {
		return text
	}
	i := slices.IndexFunc(findings, func(f diagnose.Finding) bool { return f.Explains(reason, text) })
	if i < 0 {
		return text
	}
	hint := findings[i].Hint()
	return strings.TrimSpace(excerpt.Beginning(text, maxHinted-len(hint)) + " " + hint)
}
