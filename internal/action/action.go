// Package action is the vocabulary of things that a plan can ask for, and the one executor that performs them. No
// other package writes to the API server or to Ray.
//
// Every action can be repeated: creates use computed names and take an object that is already there for theirs if
// its owner and identity are the wanted ones, deletes name the UID of the object they mean, status writes carry the
// resourceVersion they were computed from, and submissions to Ray carry an id that was recorded before.
package action

import (
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
)

// FieldOwner is the field manager of everything that is written by server-side apply.
const FieldOwner = "heliostat"

// Plan is what one pass over an object wants done.
type Plan struct {
	// Status is written first when it is set: it is the commit point of the pass. When the write fails, nothing
	// else of the plan is done.
	Status *StatusWrite
	// Actions are independent of each other: one that fails does not keep the others from being done.
	Actions []Action
	// Events speak of no write of this plan, for example of a spec that cannot be acted upon. They are sent after
	// the status is written.
	Events []Event
	// Known are the keys of writes that failed before and whose failure was told then; it is not told again.
	Known map[string]bool
	// LookAgain asks for another pass after this time even if nothing changes. Zero asks for none.
	LookAgain time.Duration
}

// Object is any object of Kubernetes. Planners, which have no client, know it by this name.
type Object = client.Object

// Action is one repeatable write. The kinds of this package are the only ones.
type Action interface {
	// Key groups actions that are held back together after the API server refused one of them, for example all
	// creates of one worker group. It is empty for actions that are never held back.
	Key() string
	// target is the object that is written.
	target() client.Object
	// event is what is told when the write has succeeded, or nil.
	event() *Event
	// failure is what is told when the write has failed, or nil.
	failure() *Event
}

// Event is something that a user must notice.
type Event struct {
	// Type is Normal or Warning.
	Type string
	// Reason and Action are the machine-readable words of events.k8s.io/v1.
	Reason, Action string
	// Note is the sentence for a person. For an event that follows a write, the names of the written objects are
	// added to it.
	Note string
}

// Normal returns an event that reports progress.
func Normal(reason, action, note string) *Event {
	return &Event{Type: corev1.EventTypeNormal, Reason: reason, Action: action, Note: note}
}

// Warning returns an event that reports trouble.
func Warning(reason, action, note string) *Event {
	return &Event{Type: corev1.EventTypeWarning, Reason: reason, Action: action, Note: note}
}

// StatusWrite replaces the status of Object, which must carry the wanted status and the resourceVersion that it was
// computed from. Base is the object as it was read.
type StatusWrite struct {
	Object client.Object
	Base   client.Object
	// Why says in a few words what changed.
	Why string
}

// Create makes Object. If an object of that name is there already, it counts as made when it has the same
// controller owner and the same Identity labels; otherwise the result is a collision and nothing is changed.
type Create struct {
	Object client.Object
	// Identity are the label keys that tell whether an existing object is this one.
	Identity []string
	Group    string
	Why      string
	Done     *Event
	Failed   *Event
}

// Apply makes Object, or brings the fields that it names to the wanted values, by server-side apply. Observed is the
// object as it was read, nil when there is none. An existing object of another owner is never touched. When Object carries a
// resourceVersion, the write is refused if the stored object is not in that state any more, and the next plan decides anew.
type Apply struct {
	Object   client.Object
	Observed client.Object
	Why      string
	Done     *Event
	Failed   *Event
}

// Delete removes Object, meaning the one with its UID and no later one of the same name, in the state that its
// resourceVersion names. When it has changed since, it stays, and the next plan decides anew.
type Delete struct {
	Object client.Object
	// Now takes a Pod away at once, without its node having said that it has ended.
	Now bool
	// Owner, where it is set, must be the controller of Object; otherwise Object belongs to someone else and stays.
	Owner  client.Object
	Why    string
	Done   *Event
	Failed *Event
}

// Update brings Object, which was changed from Base, to the API server as a patch of the difference. It is refused when the
// stored object is not in the state of Base any more.
type Update struct {
	Object client.Object
	Base   client.Object
	Why    string
	Done   *Event
	Failed *Event
}

// Finalizers replaces the finalizers of Object, and nothing else of it. Object must carry the UID and the
// resourceVersion that the decision was made on.
type Finalizers struct {
	Object client.Object
	Want   []string
	Why    string
}

// Submit sends a job to Ray. The submission id in the Request was recorded in the status of Job before, so sending
// twice starts the job once. It is carried out in the background; its outcome is read from Ray.Outcomes.
type Submit struct {
	// Job is the RayJob that the submission is for.
	Job     client.Object
	BaseURL string
	// Secret is the name of the Secret with the token that Ray asks for, or empty.
	Secret string
	// Session is the life of the head that is to take the job. No other one is given it. Empty where it is not known.
	Session string
	Request dashboard.SubmitRequest
	Why     string
}

// Stop asks Ray to stop a job, in the background. A job that Ray does not know counts as stopped.
type Stop struct {
	// Job is the RayJob that the submission was for.
	Job     client.Object
	BaseURL string
	// Secret is the name of the Secret with the token that Ray asks for, or empty.
	Secret       string
	SubmissionID string
	Why          string
}

// PutServe gives the Ray Serve of a RayCluster its whole config, in the background. Sending it twice does nothing more. While
// one waits or is under way for the RayCluster, another one is dropped: the next plan decides anew. Its outcome is read from
// Ray.ServeOutcome.
type PutServe struct {
	// Cluster is the RayCluster whose Serve is meant.
	Cluster client.Object
	BaseURL string
	// Secret is the name of the Secret with the token that Ray asks for, or empty.
	Secret string
	// Session is the life of the head that is to take the config. No other one is given it. Empty where it is not known.
	Session string
	// Config is the body that is sent.
	Config json.RawMessage
	// Hash is the ID of the outcome. It has to tell apart whatever a plan does, such as the same config with another
	// target capacity.
	Hash string
	Why  string
}

// Key is empty: what is sent to Ray is held back by the planner, which knows the outcome.
func (a Submit) Key() string { return "" }

// Key is empty, as for Submit.
func (a Stop) Key() string { return "" }

// Key is empty, as for Submit.
func (a PutServe) Key() string { return "" }

func (a Submit) target() client.Object   { return a.Job }
func (a Stop) target() client.Object     { return a.Job }
func (a PutServe) target() client.Object { return a.Cluster }

func (a Submit) event() *Event   { return nil }
func (a Stop) event() *Event     { return nil }
func (a PutServe) event() *Event { return nil }

func (a Submit) failure() *Event   { return nil }
func (a Stop) failure() *Event     { return nil }
func (a PutServe) failure() *Event { return nil }

// Key returns the group whose creates are held back together.
func (a Create) Key() string { return a.Group }

// Key is the object's kind and name: nothing else is held back with it.
func (a Apply) Key() string { return objectKey(a.Object) }

// Key is empty: deletes are never held back.
func (a Delete) Key() string { return "" }

// Key is the object's kind and name: nothing else is held back with it.
func (a Update) Key() string { return objectKey(a.Object) }

// Key is empty: finalizers are never held back.
func (a Finalizers) Key() string { return "" }

func (a Create) target() client.Object     { return a.Object }
func (a Apply) target() client.Object      { return a.Object }
func (a Delete) target() client.Object     { return a.Object }
func (a Update) target() client.Object     { return a.Object }
func (a Finalizers) target() client.Object { return a.Object }

func (a Create) event() *Event     { return a.Done }
func (a Apply) event() *Event      { return a.Done }
func (a Delete) event() *Event     { return a.Done }
func (a Update) event() *Event     { return a.Done }
func (a Finalizers) event() *Event { return nil }

func (a Create) failure() *Event     { return a.Failed }
func (a Apply) failure() *Event      { return a.Failed }
func (a Delete) failure() *Event     { return a.Failed }
func (a Update) failure() *Event     { return a.Failed }
func (a Finalizers) failure() *Event { return nil }

// Soonest returns the shorter of the waits; zero means no wait is asked for.
func Soonest(waits ...time.Duration) time.Duration {
	soonest := time.Duration(0)
	for _, wait := range waits {
		if wait > 0 && (soonest == 0 || wait < soonest) {
			soonest = wait
		}
	}
	return soonest
}
