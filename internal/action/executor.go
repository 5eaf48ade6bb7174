package action

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/heliostat-io/heliostat/internal/excerpt"
	"github.com/heliostat-io/heliostat/internal/leadership"
)

// Executor performs plans while a term is valid.
type Executor struct {
	// Client reads from the caches and writes to the API server.
	Client client.Client
	// Live reads from the API server itself. It is asked only when the outcome of a write is in doubt.
	Live client.Reader
	// Gate admits each write.
	Gate leadership.Gate
	// Fenced is called when the API server refused a write because this replica is not the holder. It may be nil.
	Fenced func()
	// Denied is called when the API server refused a write because the operator lacks a right. It may be nil.
	Denied func()
	// Events receives what users must notice.
	Events events.EventRecorder
	// Told is called for each event that was handed to Events. It may be nil.
	Told func(kind, reason, eventType string)
	// Ray carries out what is sent to Ray. It may be nil where no plan sends anything.
	Ray *Ray
	// Made remembers what was written until the caches show it; see NewMade and NewDoubtful. It may be nil where no lost
	// answer can matter.
	Made *Made
	// Parallel is how many actions of one plan may be under way at once; less than one counts as one.
	Parallel int
}

// Run performs the plan for owner: the status write, then the actions, then the events. The error is set only when
// the status write failed, in which case nothing else was done; failures of single actions are in the Result.
func (e *Executor) Run(ctx context.Context, owner client.Object, plan Plan) (Result, error) {
	var result Result
	if plan.Status != nil {
		if err := e.writeStatus(ctx, *plan.Status); err != nil {
			if right, lacks := lacking(err); lacks {
				// No condition can say it.
				e.tell(owner, Event{Type: corev1.EventTypeWarning, Reason: "FailedToWriteStatus", Action: "WriteStatus",
					Note: err.Error() + mustAllow(right)})
			}
			return result, fmt.Errorf("write the status of %s: %w", describeObject(e.Client.Scheme(), plan.Status.Object), err)
		}
	}
	errs := e.runAll(ctx, plan.Actions)
	told := newTold()
	for i, a := range plan.Actions {
		name := a.target().GetName()
		if errs[i] == nil {
			told.add(a.event(), name, nil)
			continue
		}
		result.Failures = append(result.Failures, Failure{Action: a, Err: errs[i]})
		if !passing(errs[i]) && !plan.Known[a.Key()] {
			told.add(a.failure(), name, errs[i])
		}
	}
	for _, event := range append(told.all(owner), plan.Events...) {
		e.tell(owner, event)
	}
	return result, nil
}

func (e *Executor) tell(owner client.Object, event Event) {
	e.Events.Eventf(owner, nil, event.Type, event.Reason, event.Action, "%s", excerpt.Beginning(event.Note, MaxNote))
	if e.Told != nil {
		e.Told(gvkOf(e.Client.Scheme(), owner), event.Reason, event.Type)
	}
}

func (e *Executor) do(ctx context.Context, a Action) error {
	switch a := a.(type) {
	case Submit:
		return e.Ray.submit(a)
	case Stop:
		return e.Ray.stop(a)
	case PutServe:
		return e.Ray.putServe(a)
	}
	write, done, err := e.Gate.Enter(ctx)
	if err != nil {
		return err
	}
	defer done()
	return e.answered(e.write(write, a))
}

func (e *Executor) write(ctx context.Context, a Action) error {
	switch a := a.(type) {
	case Create:
		return e.create(ctx, a)
	case Apply:
		return e.apply(ctx, a)
	case MakeToken:
		return e.makeToken(ctx, a)
	case Delete:
		return e.delete(ctx, a)
	case Update:
		return e.update(ctx, a)
	case Finalizers:
		return e.finalizers(ctx, a)
	default:
		return fmt.Errorf("unknown action %T", a)
	}
}

// answered looks at why a write was refused, if it was.
func (e *Executor) answered(err error) error {
	if _, lacks := lacking(err); lacks && e.Denied != nil {
		e.Denied()
	}
	return e.fenced(err)
}

// fenced makes a refusal by the fence what it is: no failure of the write, but the end of the term.
func (e *Executor) fenced(err error) error {
	if !leadership.Refused(err) {
		return err
	}
	if e.Fenced != nil {
		e.Fenced()
	}
	return fmt.Errorf("%w: %w", leadership.ErrNoTerm, err)
}

func (e *Executor) create(ctx context.Context, a Create) error {
	object := copyOf(a.Object)
	err := e.Client.Create(ctx, object, client.FieldOwner(FieldOwner))
	switch {
	case err == nil:
		e.Made.created(object)
		return nil
	case apierrors.IsAlreadyExists(err), outcomeUnknown(err):
		return e.settleCreate(ctx, a, err)
	default:
		return err
	}
}

// settleCreate looks at the API server whether the wanted object is there, after an answer that leaves it open.
func (e *Executor) settleCreate(ctx context.Context, a Create, answer error) error {
	found := copyOf(a.Object)
	if err := e.Live.Get(ctx, client.ObjectKeyFromObject(a.Object), found); err != nil {
		if !apierrors.IsNotFound(err) {
			e.Made.await(copyOf(a.Object))
		}
		return fmt.Errorf("the outcome of the create is unknown (%w), and looking failed: %w", answer, err)
	}
	if !sameOwner(found, a.Object) || !sameLabels(found, a.Object, a.Identity) {
		return ErrCollision
	}
	e.Made.await(found)
	return nil
}

func (e *Executor) apply(ctx context.Context, a Apply) error {
	if a.Observed == nil {
		// A create, because an apply would merge into a foreign object that the cache does not show.
		object := copyOf(a.Object)
		err := e.Client.Create(ctx, object, client.FieldOwner(FieldOwner))
		if !apierrors.IsAlreadyExists(err) {
			if err == nil {
				e.Made.created(object)
			}
			return err
		}
		a.Observed = copyOf(a.Object)
		if err := e.Live.Get(ctx, client.ObjectKeyFromObject(a.Object), a.Observed); err != nil {
			return fmt.Errorf("look at the object that is there already: %w", err)
		}
	}
	if !sameOwner(a.Observed, a.Object) {
		return ErrCollision
	}
	version, err := e.takeOverFields(ctx, a)
	if err != nil {
		return err
	}
	wanted := copyOf(a.Object)
	// With the UID the API server refuses to apply to a later object of the same name.
	wanted.SetUID(a.Observed.GetUID())
	wanted.SetResourceVersion(version)
	content, err := applyContent(wanted)
	if err != nil {
		return fmt.Errorf("convert for server-side apply: %w", err)
	}
	// As a patch and not by the client's own apply, which would set up a second cache for the kind.
	err = e.Client.Patch(ctx, wanted, client.RawPatch(types.ApplyPatchType, content), client.FieldOwner(FieldOwner), client.ForceOwnership)
	if apierrors.IsConflict(err) && version != "" {
		return fmt.Errorf("%w: %w", errChanged, err)
	}
	return err
}

// takeOverFields gives the fields that were set by our create, or by KubeRay, to our field owner for applies. Otherwise
// what is not wanted any more, a port for example, would stay for ever as someone else's. It returns the resourceVersion that
// the apply must meet, which is empty where any will do.
func (e *Executor) takeOverFields(ctx context.Context, a Apply) (version string, err error) {
	live := copyOf(a.Observed)
	if err := e.Live.Get(ctx, client.ObjectKeyFromObject(a.Observed), live); err != nil {
		return "", fmt.Errorf("read the field owners: %w", err)
	}
	decidedOn := a.Object.GetResourceVersion()
	if decidedOn != "" && decidedOn != live.GetResourceVersion() {
		return "", errChanged
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(live, sets.New(FieldOwner, "kuberay-operator"), FieldOwner)
	if err != nil || patch == nil {
		return decidedOn, err
	}
	owned := copyOf(live)
	if err := e.Client.Patch(ctx, owned, client.RawPatch(types.JSONPatchType, patch)); err != nil {
		return "", fmt.Errorf("take the fields over: %w", err)
	}
	if decidedOn == "" {
		return "", nil
	}
	return owned.GetResourceVersion(), nil
}

// delete means the object as it was seen: the one of that UID and, where the decision was made on a stored object, in the
// state that it had then.
func (e *Executor) delete(ctx context.Context, a Delete) error {
	if a.Owner != nil && !metav1.IsControlledBy(a.Object, a.Owner) {
		return ErrCollision
	}
	uid, version := a.Object.GetUID(), a.Object.GetResourceVersion()
	seen := client.Preconditions{UID: &uid}
	if version != "" {
		seen.ResourceVersion = &version
	}
	options := []client.DeleteOption{seen, client.PropagationPolicy(metav1.DeletePropagationBackground)}
	if a.Now {
		options = append(options, client.GracePeriodSeconds(0))
	}
	err := e.Client.Delete(ctx, copyOf(a.Object), options...)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err):
		return e.settleDelete(ctx, a)
	default:
		return err
	}
}

// settleDelete looks at the API server whether the object that was meant is gone, or has changed since it was seen.
func (e *Executor) settleDelete(ctx context.Context, a Delete) error {
	found := copyOf(a.Object)
	err := e.Live.Get(ctx, client.ObjectKeyFromObject(a.Object), found)
	switch {
	case apierrors.IsNotFound(err), err == nil && found.GetUID() != a.Object.GetUID():
		return nil
	case err != nil:
		return fmt.Errorf("look whether the object is gone: %w", err)
	default:
		return errChanged
	}
}

func (e *Executor) update(ctx context.Context, a Update) error {
	err := e.Client.Patch(ctx, copyOf(a.Object), client.MergeFromWithOptions(a.Base, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: %w", errChanged, err)
	}
	return err
}

func (e *Executor) finalizers(ctx context.Context, a Finalizers) error {
	wanted := copyOf(a.Object)
	wanted.SetFinalizers(slices.Clone(a.Want))
	err := e.Client.Patch(ctx, wanted, client.MergeFromWithOptions(a.Object, client.MergeFromWithOptimisticLock{}))
	gone := apierrors.IsNotFound(err) || err == nil && a.Object.GetDeletionTimestamp() != nil && len(a.Want) == 0
	switch {
	case gone, outcomeUnknown(err):
		// A cache that still shows an object which is gone would have everything done once more.
		inDoubt := copyOf(a.Object)
		inDoubt.SetResourceVersion("")
		e.Made.awaitChange(inDoubt)
	case err == nil:
		e.Made.wrote(wanted)
	}
	if gone && len(a.Want) == 0 {
		return nil
	}
	return err
}

func (e *Executor) writeStatus(ctx context.Context, s StatusWrite) error {
	write, done, err := e.Gate.Enter(ctx)
	if err != nil {
		return err
	}
	defer done()
	patch := client.MergeFromWithOptions(s.Base, client.MergeFromWithOptimisticLock{})
	written := copyOf(s.Object)
	if err := e.answered(e.Client.Status().Patch(write, written, patch)); err != nil {
		if outcomeUnknown(err) {
			written = copyOf(s.Object)
			written.SetResourceVersion("")
			e.Made.awaitChange(written)
		}
		return err
	}
	e.Made.wrote(written)
	logr.FromContextOrDiscard(ctx).Info("Wrote the status", "reason", s.Why)
	return nil
}

// gvkOf names the kind of an object whose type meta may be empty.
func gvkOf(scheme *runtime.Scheme, object client.Object) string {
	gvk, err := apiutil.GVKForObject(object, scheme)
	if err != nil {
		return fmt.Sprintf("%T", object)
	}
	return gvk.Kind
}

func describeObject(scheme *runtime.Scheme, object client.Object) string {
	return strings.TrimSpace(fmt.Sprintf("%s %s/%s", gvkOf(scheme, object), object.GetNamespace(), object.GetName()))
}
