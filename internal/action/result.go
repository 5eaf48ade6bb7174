package action

import (
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/heliostat-io/heliostat/internal/leadership"
	"github.com/heliostat-io/heliostat/internal/rights"
)

// ErrCollision says that an object of the wanted name exists which is not ours. It was left as it is.
var ErrCollision = errors.New("an object of that name exists already and belongs to someone else")

// errChanged says that an object is not as it was when the write was decided on. It was left as it is.
var errChanged = errors.New("the object has changed since the write was decided on")

// passing tells whether an error says no more than that the facts are others by now: the next plan will see to it.
func passing(err error) bool {
	return errors.Is(err, leadership.ErrNoTerm) || errors.Is(err, errChanged)
}

// Failure is one action of a plan that could not be done.
type Failure struct {
	Action Action
	Err    error
}

// refused tells whether the API server answered that it will not take the write as it is (quota, admission,
// validation, rights): trying again at once, or with a sibling, cannot help.
func refused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}

// lacking is the right that the operator lacks, if that is why the API server refused something. Quotas, policies and the fence
// refuse with the same status, and other words.
func lacking(err error) (rights.Right, bool) {
	if !apierrors.IsForbidden(err) {
		return rights.Right{}, false
	}
	return rights.Denied(err.Error())
}

// mustAllow is what an administrator has to do about a missing right.
func mustAllow(right rights.Right) string {
	return fmt.Sprintf("; %s must allow it: %s", right.Role(), right.Question())
}

// Result is what became of a plan.
type Result struct {
	// Failures are the actions that failed, in the order of the plan.
	Failures []Failure
}

// Err joins the failures, or is nil when there are none.
func (r Result) Err() error {
	errs := make([]error, 0, len(r.Failures))
	for _, f := range r.Failures {
		errs = append(errs, fmt.Errorf("%s: %w", describe(f.Action), f.Err))
	}
	return errors.Join(errs...)
}

// ConflictPause is how long a pass waits after its status write met a newer version of the object: the cache needs
// a moment to bring it.
const ConflictPause = 50 * time.Millisecond

// StalePause is how long a pass waits when the caches do not show yet what was created before.
const StalePause = 100 * time.Millisecond
