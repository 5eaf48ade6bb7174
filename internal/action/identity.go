package action

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-io/heliostat/internal/diagnose"
	"github.com/heliostat-io/heliostat/internal/excerpt"
)

// copyOf returns a deep copy, because clients write the answer of the API server into what they are given and plans
// share objects with caches.
func copyOf(object client.Object) client.Object {
	return object.DeepCopyObject().(client.Object)
}

// applyContent is what is sent of an object in a server-side apply: what it wants, and nothing that others decide on.
func applyContent(object client.Object) ([]byte, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	delete(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	return json.Marshal(content)
}

// sameOwner tells whether both objects are controlled by the same owner, by UID.
func sameOwner(found, wanted client.Object) bool {
	have, want := metav1.GetControllerOf(found), metav1.GetControllerOf(wanted)
	if have == nil || want == nil {
		return have == nil && want == nil
	}
	return have.UID == want.UID
}

func compareNames(a, b client.Object) int { return strings.Compare(nameIn(a), nameIn(b)) }

func sameLabels(found, wanted client.Object, keys []string) bool {
	return !slices.ContainsFunc(keys, func(key string) bool {
		return found.GetLabels()[key] != wanted.GetLabels()[key]
	})
}

// outcomeUnknown tells whether the request may have been carried out although it ended in an error.
func outcomeUnknown(err error) bool {
	return apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsInternalError(err) ||
		apierrors.ReasonForError(err) == metav1.StatusReasonUnknown && !errors.Is(err, context.Canceled)
}

func describe(a Action) string {
	return fmt.Sprintf("%s %s/%s", verb(a), a.target().GetNamespace(), a.target().GetName())
}

func verb(a Action) string {
	kind := strings.TrimPrefix(fmt.Sprintf("%T", a), "action.")
	return strings.ToLower(kind)
}

func why(a Action) string {
	switch a := a.(type) {
	case Create:
		return a.Why
	case Apply:
		return a.Why
	case MakeToken:
		return a.Why
	case Delete:
		return a.Why
	case Update:
		return a.Why
	case Finalizers:
		return a.Why
	case Submit:
		return a.Why
	case Stop:
		return a.Why
	case PutServe:
		return a.Why
	}
	return ""
}

// logDone writes the one line that an action leaves in the log.
func logDone(ctx context.Context, scheme *runtime.Scheme, a Action, err error) {
	log := logr.FromContextOrDiscard(ctx).WithValues("action", verb(a), "object", describeObject(scheme, a.target()), "reason", why(a))
	if err != nil {
		log.Info("Action failed", "error", err.Error())
		return
	}
	log.Info("Action done")
}

// told collects the events of a plan, one for each reason and note, with the names of the objects that it speaks of
// and the first error.
type told struct {
	order []string
	byKey map[string]*Event
	names map[string][]string
	err   map[string]error
}

func newTold() *told {
	return &told{byKey: map[string]*Event{}, names: map[string][]string{}, err: map[string]error{}}
}

func (t *told) add(event *Event, name string, err error) {
	if event == nil {
		return
	}
	key := event.Reason + "\x00" + event.Note
	if t.byKey[key] == nil {
		t.order = append(t.order, key)
		t.byKey[key], t.err[key] = event, err
	}
	t.names[key] = append(t.names[key], name)
}

// maxNamed is how many objects an event names before it only counts the rest.
const maxNamed = 5

// all are the events, with the names and errors. The id of the finding that an error is comes last, and is never cut off.
func (t *told) all(owner runtime.Object) []Event {
	events := make([]Event, 0, len(t.order))
	for _, key := range t.order {
		event, names := *t.byKey[key], t.names[key]
		more := ""
		if len(names) > maxNamed {
			more = fmt.Sprintf(" and %d more", len(names)-maxNamed)
			names = names[:maxNamed]
		}
		event.Note = fmt.Sprintf("%s (%s%s)", event.Note, strings.Join(names, ", "), more)
		if err := t.err[key]; err != nil {
			event.Note += ": " + err.Error()
			if finding := diagnose.Refusal(owner, err.Error()); finding.Found() {
				hint := " " + finding.Hint()
				event.Note = excerpt.Beginning(event.Note, MaxNote-len(hint)) + hint
			}
		}
		events = append(events, event)
	}
	return events
}

// MaxNote is the API server's limit for the note of an event, in bytes.
const MaxNote = 1024
