package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pause is the time between the end of a watch and the next one. A watch that ends at once must not become a hot loop.
const pause = time.Second

// Follow looks at an object now and at each change of it, until look returns true or an error. look gets nil when the
// object is not there. A watch that ends, as each does after some time, is opened anew, also after the API server has
// forgotten what happened meanwhile or was away: the object is read again then. When the context ends first, the error is
// its cause.
func Follow(ctx context.Context, c client.WithWatch, target Target, look func(client.Object) (bool, error)) error {
	f := follower{client: c, target: target, look: look}
	for {
		done, err := f.follow(ctx)
		switch {
		case done:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// follower looks at one object.
type follower struct {
	client client.WithWatch
	target Target
	look   func(client.Object) (bool, error)
}

// follow opens a watch first and reads the object then, so that no change falls in between. It returns false without an
// error when the watch has ended.
func (f follower) follow(ctx context.Context) (bool, error) {
	watcher, err := f.client.Watch(ctx, f.target.Kind.NewList(), client.InNamespace(f.target.Namespace),
		client.MatchingFields{metav1.ObjectNameField: f.target.Name})
	if passes(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("watch %s: %w", f.target, err)
	}
	defer watcher.Stop()
	object, err := get(ctx, f.client, f.target)
	switch {
	case errors.Is(err, ErrNotFound):
		return f.look(nil)
	case passes(err):
		return false, nil
	case err != nil:
		return false, err
	}
	if done, err := f.look(object); done || err != nil {
		return done, err
	}
	return f.events(ctx, watcher.ResultChan())
}

// events looks at each change until the watch ends.
func (f follower) events(ctx context.Context, changes <-chan watch.Event) (bool, error) {
	for {
		select {
		case <-ctx.Done():
			return false, nil
		case event, open := <-changes:
			if !open || event.Type == watch.Error {
				return false, nil
			}
			object, ok := event.Object.(client.Object)
			if !ok || event.Type == watch.Bookmark || object.GetName() != f.target.Name {
				continue
			}
			if event.Type == watch.Deleted {
				object = nil
			}
			if done, err := f.look(object); done || err != nil {
				return done, err
			}
		}
	}
}

// passes tells whether an error will be over when it is tried again.
func passes(err error) bool {
	var unresolved *net.DNSError
	if errors.As(err, &unresolved) && (unresolved.IsTemporary || unresolved.IsTimeout) {
		return true // a laptop that changes its network; a name that does not exist stays an error
	}
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err) ||
		apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) ||
		utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) || utilnet.IsTimeout(err)
}
