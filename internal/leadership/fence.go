package leadership

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	heliostatv1alpha1 "github.com/heliostat-io/heliostat/api/heliostat/v1alpha1"
)

// Reasons why a leader writes without the fence. They are reasons of the condition Fenced too.
const (
	// ReasonOff means that nobody asked for the fence.
	ReasonOff = "Off"
	// ReasonNotInPod means that the API server finds no Pod in the token: the operator runs outside of a Pod.
	ReasonNotInPod = "NotInPod"
	// ReasonKindMissing means that the API server does not serve Holders: the CRD is not installed.
	ReasonKindMissing = "KindMissing"
	// ReasonNoRights means that the operator may not write the Holder.
	ReasonNoRights = "NoRights"
	// ReasonPolicyMissing means that the API server accepts what the admission policy would refuse.
	ReasonPolicyMissing = "PolicyMissing"
)

const (
	reasonFenced = "PolicyInForce"
	// fenceWord begins each message of the chart's admission policies.
	fenceWord = "heliostat fence: "
	// probePause is the time between two looks whether the fence has moved; it takes a few milliseconds.
	probePause = 5 * time.Millisecond
	// notYetWord stands in the refusals of an API server that has just started and does not know the kind Holder yet: it refuses
	// every write that the policy is about. It looks anew every half a minute.
	notYetWord = "failed to configure policy"
	// notYetPause is the time between two looks whether it knows it, and notYetLimit how long they are made.
	notYetPause = 500 * time.Millisecond
	notYetLimit = time.Minute
	// Where the API server writes which Pod a token is bound to.
	extraPodUID  = "authentication.kubernetes.io/pod-uid"
	extraPodName = "authentication.kubernetes.io/pod-name"
)

// errLeaseLost says that another replica has won the Lease meanwhile.
var errLeaseLost = errors.New("another replica has taken the lease meanwhile")

// Refused tells whether the API server refused a write because its sender is not the holder.
func Refused(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), fenceWord)
}

// Fence is the guard in the API server: an object that names the holder, and an admission policy that compares it with
// the Pod that a request comes from. See docs/failover.md.
type Fence struct {
	// Client reads from and writes to the API server itself, without caches and without a limit of its own.
	Client client.Client
	// Holder is the name of this installation's Holder.
	Holder string
	// Lease is the Lease that a holder must have.
	Lease types.NamespacedName
	// Identity is what the Lease says when this replica has it.
	Identity string
	// Required refuses to lead without the fence.
	Required bool
}

// Standing is how a leader stands.
type Standing struct {
	// Term is the number of the term: that of the Holder, or where there is none one more than the hand-overs of the Lease.
	Term int64
	// Fenced tells whether the API server refuses writes of other replicas.
	Fenced bool
	// Reason is why not, one of the constants Reason..., and Message says it in a sentence.
	Reason, Message string
}

// pod is which Pod the API server takes this process for.
type pod struct{ uid, name string }

// Move names this replica as the holder and returns when the API server acts by it, or when it is clear that it never
// will. transitions is what the Lease counts. It is an error when the Lease is lost meanwhile, and when the fence is
// required and not to be had.
func (f *Fence) Move(ctx context.Context, transitions int64) (Standing, error) {
	standing, err := f.move(ctx, transitions)
	if err != nil {
		return Standing{}, fmt.Errorf("move the fence to this replica: %w", err)
	}
	if f.Required && !standing.Fenced {
		return Standing{}, fmt.Errorf("fencing is required, but %s", standing.Message)
	}
	return standing, nil
}

func (f *Fence) move(ctx context.Context, transitions int64) (Standing, error) {
	unfenced := Standing{Term: transitions + 1}
	self, err := f.self(ctx)
	if err != nil {
		return Standing{}, err
	}
	if self.uid == "" {
		unfenced.Reason = ReasonNotInPod
		unfenced.Message = "the operator runs outside of a Pod: the API server finds none in its credentials, so it cannot tell replicas apart"
		return unfenced, nil
	}
	holder, err := f.take(ctx, self, transitions)
	switch {
	case kindMissing(err):
		unfenced.Reason, unfenced.Message = ReasonKindMissing, "the CustomResourceDefinition holders.heliostat.io is not installed"
		return unfenced, nil
	case apierrors.IsForbidden(err):
		unfenced.Reason, unfenced.Message = ReasonNoRights, "the operator may not write its Holder: "+err.Error()
		return unfenced, nil
	case err != nil:
		return Standing{}, err
	}
	standing := Standing{Term: holder.Spec.Term}
	standing.Fenced, err = f.inForce(ctx, holder)
	if err == nil && standing.Fenced {
		err = f.moved(ctx, holder)
	}
	if err != nil {
		return Standing{}, err
	}
	if !standing.Fenced {
		standing.Reason = ReasonPolicyMissing
		standing.Message = "the API server has no admission policy that compares writes with Holder " + f.Holder
	}
	return standing, f.report(ctx, holder, standing)
}

// self asks the API server which Pod it takes this process for. That is what the policy will see.
func (f *Fence) self(ctx context.Context) (pod, error) {
	review := &authenticationv1.SelfSubjectReview{}
	if err := f.Client.Create(ctx, review); err != nil {
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) || apierrors.IsForbidden(err) {
			return pod{}, nil
		}
		return pod{}, fmt.Errorf("ask the API server for the own identity: %w", err)
	}
	first := func(key string) string {
		if values := review.Status.UserInfo.Extra[key]; len(values) > 0 {
			return values[0]
		}
		return ""
	}
	return pod{uid: first(extraPodUID), name: first(extraPodName)}, nil
}

// take writes this Pod into the Holder by compare-and-swap. The order of the reads matters: a replica that was stopped
// anywhere in here and lost the Lease either sees that, or meets a Holder that its successor has changed.
func (f *Fence) take(ctx context.Context, self pod, transitions int64) (*heliostatv1alpha1.Holder, error) {
	for {
		holder := &heliostatv1alpha1.Holder{ObjectMeta: metav1.ObjectMeta{Name: f.Holder}}
		err := f.Client.Get(ctx, client.ObjectKeyFromObject(holder), holder)
		missing := apierrors.IsNotFound(err)
		if err != nil && !missing {
			return nil, fmt.Errorf("read Holder %s: %w", f.Holder, err)
		}
		lease := &coordinationv1.Lease{}
		if err := f.Client.Get(ctx, f.Lease, lease); err != nil {
			return nil, fmt.Errorf("read Lease %s: %w", f.Lease, err)
		}
		if ptr.Deref(lease.Spec.HolderIdentity, "") != f.Identity {
			return nil, errLeaseLost
		}
		holder.Spec = heliostatv1alpha1.HolderSpec{Term: max(holder.Spec.Term, transitions) + 1, PodUID: self.uid,
			PodName: self.name, LeaseUID: string(lease.UID), AcquireTime: metav1.NowMicro()}
		if missing {
			holder.Name = f.Holder
			err = f.Client.Create(ctx, holder)
		} else {
			err = f.Client.Update(ctx, holder)
		}
		switch {
		case err == nil:
			return holder, nil
		case !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err):
			return nil, fmt.Errorf("write Holder %s: %w", f.Holder, err)
		}
	}
}

// kindMissing tells whether the API server does not know Holders; that a single one is not there is no error.
func kindMissing(err error) bool { return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) }

// inForce tells whether the API server refuses what it must refuse: a status of another term. Nothing is stored.
func (f *Fence) inForce(ctx context.Context, holder *heliostatv1alpha1.Holder) (bool, error) {
	err := f.tryStatus(ctx, holder, 0)
	if Refused(err) {
		return true, nil
	}
	return false, err
}

// moved waits until the API server accepts a write of this Pod in this term. From then on it refuses all others.
func (f *Fence) moved(ctx context.Context, holder *heliostatv1alpha1.Holder) error {
	for {
		err := f.tryStatus(ctx, holder, holder.Spec.Term)
		if !Refused(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until the fence has moved (%w): %w", err, ctx.Err())
		case <-time.After(probePause):
		}
	}
}

// tryStatus tries a write that the fence judges. It waits for an API server that cannot judge yet: to let the Lease go would only have
// the replicas take it from each other.
func (f *Fence) tryStatus(ctx context.Context, holder *heliostatv1alpha1.Holder, term int64) error {
	tried := holder.DeepCopy()
	tried.Status.Term = term
	for waited := time.Duration(0); ; waited += notYetPause {
		err := f.Client.Status().Update(ctx, tried.DeepCopy(), client.DryRunAll)
		if err == nil {
			return nil
		}
		if !strings.Contains(err.Error(), notYetWord) || waited >= notYetLimit {
			return fmt.Errorf("try to write the status of Holder %s: %w", f.Holder, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until the API server knows the fence (%w): %w", err, ctx.Err())
		case <-time.After(notYetPause):
		}
	}
}

// report writes the condition. It is the first write of the term that stays.
func (f *Fence) report(ctx context.Context, holder *heliostatv1alpha1.Holder, standing Standing) error {
	condition := metav1.Condition{Type: heliostatv1alpha1.ConditionFenced, Status: metav1.ConditionTrue, Reason: reasonFenced,
		Message: "the API server refuses writes of all other Pods of the operator", ObservedGeneration: holder.Generation}
	if !standing.Fenced {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, standing.Reason, standing.Message
	}
	holder.Status.Term = standing.Term
	meta.SetStatusCondition(&holder.Status.Conditions, condition)
	if err := f.Client.Status().Update(ctx, holder); err != nil {
		return fmt.Errorf("write the status of Holder %s: %w", f.Holder, err)
	}
	return nil
}

// Ours tells whether the Holder still names the term that this replica has.
func (f *Fence) Ours(ctx context.Context, term int64) (bool, error) {
	holder := &heliostatv1alpha1.Holder{}
	err := f.Client.Get(ctx, types.NamespacedName{Name: f.Holder}, holder)
	if kindMissing(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read Holder %s: %w", f.Holder, err)
	}
	return holder.Spec.Term == term, nil
}

// Available tells a leader without the fence whether a new term would have it. What was missing may have been installed
// meanwhile.
func (f *Fence) Available(ctx context.Context, reason string) (bool, error) {
	holder := &heliostatv1alpha1.Holder{}
	err := f.Client.Get(ctx, types.NamespacedName{Name: f.Holder}, holder)
	switch {
	case reason == ReasonNotInPod, meta.IsNoMatchError(err), apierrors.IsForbidden(err):
		return false, nil
	case client.IgnoreNotFound(err) != nil:
		return false, fmt.Errorf("read Holder %s: %w", f.Holder, err)
	case reason != ReasonPolicyMissing:
		return true, nil
	}
	return f.inForce(ctx, holder)
}
