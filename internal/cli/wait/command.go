// Package wait is the command that waits until an object is as wanted, and not longer than there is hope.
package wait

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-io/heliostat/internal/cli/kube"
	"github.com/heliostat-io/heliostat/internal/cli/state"
)

type options struct {
	until   string
	timeout time.Duration
}

// New returns the command `wait`. It exits with 0 when the goal is reached, 1 when it cannot be reached any more unless
// somebody changes something, 2 when it could not look, and 124 when the time is over.
func New(env *kube.Env) *cobra.Command {
	o := &options{}
	command := &cobra.Command{
		Use:   "wait (NAME | TYPE/NAME)",
		Short: "Wait until a Ray cluster, job or service is ready, complete or gone",
		Long: "Wait until an object is as wanted. It stops early when that cannot be any more: a job has failed, or an object is stalled, " +
			"which means that somebody has to change something.\n\nExit codes: 0 reached, 1 cannot be reached, 2 could not look, 124 the time " +
			"is over.",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: env.CompleteNames(kube.Kinds()...),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), env, args[0])
		},
	}
	command.Flags().StringVar(&o.until, "for", "ready", "What to wait for: ready, complete or failed (RayJob), deleted, or condition=TYPE[=STATUS].")
	command.Flags().DurationVar(&o.timeout, "timeout", 10*time.Minute, "How long to wait. Zero means one look.")
	return command
}

func (o *options) run(ctx context.Context, env *kube.Env, argument string) error {
	w := &waiter{env: env}
	if err := o.prepare(ctx, w, argument); err != nil {
		return kube.ExitError{Code: kube.ExitCannotLook, Err: err}
	}
	if v := w.judge(w.object); v != notYet {
		return w.end(v)
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	v, err := w.wait(ctx)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return kube.ExitError{Code: kube.ExitTimeout, Err: fmt.Errorf("after %s %s is still %s", o.timeout, w.target, w.last)}
	case err != nil:
		return kube.ExitError{Code: kube.ExitCannotLook, Err: err}
	}
	return w.end(v)
}

// prepare finds the object. That it is not there is fine for somebody who waits for that; that it cannot be read is not.
func (o *options) prepare(ctx context.Context, w *waiter, argument string) error {
	c, err := w.env.Client()
	if err != nil {
		return err
	}
	namespace, err := w.env.Namespace()
	if err != nil {
		return err
	}
	object, target, findErr := kube.Find(ctx, c, namespace, argument)
	if findErr != nil && !errors.Is(findErr, kube.ErrNotFound) {
		return findErr
	}
	w.client, w.target = c, target
	w.goal, err = goalOf(target.Kind, o.until)
	switch {
	case err != nil:
		return err
	case findErr != nil && w.goal(nil) != reached:
		return findErr
	case findErr == nil:
		w.object = object
	}
	return nil
}

// waiter waits for one object.
type waiter struct {
	env    *kube.Env
	client client.WithWatch
	target kube.Target
	goal   goal
	object client.Object
	// last is how the object was when it was last seen.
	last string
}

// end says how it ended: the result on stdout, for a script.
func (w *waiter) end(v verdict) error {
	if v == never {
		return kube.ExitError{Code: kube.ExitFailed, Err: fmt.Errorf("%s is %s, and will not become what is waited for unless something is changed; "+
			"`%s diagnose` says what", w.target, w.last, w.env.Program)}
	}
	if _, err := fmt.Fprintf(w.env.Out, "%s is %s\n", w.target, w.last); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}

// wait looks whenever the object changes, until there is a verdict.
func (w *waiter) wait(ctx context.Context) (verdict, error) {
	v := notYet
	err := kube.Follow(ctx, w.client, w.target, func(object client.Object) (bool, error) {
		v = w.judge(object)
		return v != notYet, nil
	})
	return v, err
}

// judge notes how the object is, and tells the user when that is new.
func (w *waiter) judge(object client.Object) verdict {
	now := "gone"
	if object != nil {
		s := state.Of(object)
		now = s.Word
		if s.Message != "" {
			now += ": " + s.Message
		}
	}
	if now != w.last {
		w.last = now
		// Progress is a service; that it cannot be written must not end the waiting.
		_, _ = fmt.Fprintf(w.env.ErrOut, "%s is %s\n", w.target, now)
	}
	return w.goal(object)
}
