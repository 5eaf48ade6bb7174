package logs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/streaming/pkg/httpstream"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-io/heliostat/internal/cli/kube"
)

// follower reads the logs of Pods that come and go.
type follower struct {
	*reader
	streams sync.WaitGroup
	// give ends everything, for a reason that trying again does not mend.
	give context.CancelCauseFunc
	// lives are the lives of containers that are read, or were.
	lives map[life]bool
	// begun is set once the Pods that were there at the beginning are known. Of later ones everything is printed.
	begun atomic.Bool

	mu sync.Mutex
	// said are the errors that were said last, by what they are about.
	said map[string]string
}

// life is one life of a container.
type life struct {
	pod      string
	restarts int32
}

// farewell is how long Pods of a cluster that is gone may still log.
const farewell = time.Minute

// follow prints logs until the context ends or the cluster is deleted; those of a submitter, until its RayJob has ended.
func (r *reader) follow(ctx context.Context) error {
	ctx, give := context.WithCancelCause(ctx)
	defer give(nil)
	f := &follower{reader: r, give: give, lives: map[life]bool{}, said: map[string]string{}}
	for ctx.Err() == nil {
		err := f.round(ctx)
		if ctx.Err() != nil {
			break
		}
		if errors.Is(err, errOver) {
			if errors.Is(err, errGone) {
				_, _ = fmt.Fprintf(f.env.ErrOut, "%s was deleted.\n", f.target)
			}
			// The last lines are still to come.
			late := time.AfterFunc(farewell, func() { give(nil) })
			defer late.Stop()
			break
		}
		f.report("Looking for Pods again", "", err)
		// The error is that of the context, which the loop asks for.
		_ = kube.Sleep(ctx, r.pause)
	}
	f.streams.Wait()
	if err := context.Cause(ctx); denied(err) {
		return err
	}
	return nil
}

// round finds out which Pods are meant and begins to read them, until that may have changed.
func (f *follower) round(ctx context.Context) error {
	chosen, err := f.chooseAgain(ctx)
	if err != nil {
		return err
	}
	f.chosen = chosen
	watching, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var guard sync.WaitGroup
	guard.Go(func() { stop(f.awaitChange(watching, chosen)) })
	defer guard.Wait()
	defer stop(nil)
	err = f.watch(ctx, watching)
	if cause := context.Cause(watching); cause != nil && ctx.Err() == nil {
		return cause
	}
	return err
}

// errChanged says that other Pods are meant now, for example because a RayService went over to another cluster.
var errChanged = errors.New("other Pods are meant now")

// looks is how many pauses lie between looks at the object.
const looks = 5

// awaitChange returns errOver, or an error that wraps it, once nothing more will be logged, errChanged once other Pods are meant, and nil when the
// context ends.
func (f *follower) awaitChange(ctx context.Context, chosen choice) error {
	for kube.Sleep(ctx, looks*f.pause) == nil {
		now, err := f.chooseAgain(ctx)
		switch {
		case errors.Is(err, errOver):
			return err
		case err == nil && now.over && f.begun.Load():
			return errOver
		case err == nil && !now.same(&chosen):
			return errChanged
		}
	}
	return nil
}

// report says an error, unless it is what was said last of the same thing. One that stays for good ends everything.
func (f *follower) report(what, about string, err error) {
	if denied(err) {
		f.give(err)
		return
	}
	text := ""
	if err != nil && !errors.Is(err, errChanged) {
		text = err.Error()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if text != "" && text != f.said[about] {
		_, _ = fmt.Fprintf(f.env.ErrOut, "%s: %s\n", what, text)
	}
	f.said[about] = text
}

// denied tells whether an error says that the user may not do that.
func denied(err error) bool {
	var upgrade *httpstream.UpgradeFailureError
	if errors.As(err, &upgrade) {
		err = upgrade.Cause
	}
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
}

// watch begins to read each Pod that is there or comes, until the watch ends, as watches do from time to time. The streams
// live as long as ctx.
func (f *follower) watch(ctx, looking context.Context) error {
	w, err := f.client.Watch(looking, &corev1.PodList{}, client.InNamespace(f.chosen.namespace), f.chosen.labels)
	if err != nil {
		return fmt.Errorf("watch the Pods of %s: %w", f.chosen.what, err)
	}
	defer w.Stop()
	// After the watch has begun, so that no Pod comes in between.
	pods, err := f.pods(looking, &f.chosen)
	if err != nil {
		return err
	}
	for i := range pods {
		f.consider(ctx, &pods[i])
	}
	f.begun.Store(true)
	for {
		select {
		case <-looking.Done():
			return nil
		case event, ok := <-w.ResultChan():
			if !ok {
				return nil
			}
			if event.Type == watch.Error {
				return apierrors.FromObject(event.Object)
			}
			if pod, isPod := event.Object.(*corev1.Pod); isPod && event.Type != watch.Deleted && f.chosen.takes(pod) {
				f.consider(ctx, pod)
			}
		}
	}
}

// consider begins to read a container that has started and is not read yet.
func (f *follower) consider(ctx context.Context, pod *corev1.Pod) {
	container := f.chosen.containerOf(pod)
	status := statusOf(pod, container)
	if status == nil || status.State.Running == nil && status.State.Terminated == nil {
		return
	}
	now := life{string(pod.UID) + pod.Name, status.RestartCount}
	if f.lives[now] {
		return
	}
	f.lives[now] = true
	o := &corev1.PodLogOptions{Container: container, Timestamps: true}
	if !f.begun.Load() {
		o = f.logOptions(pod)
	}
	o.Follow = true
	f.streams.Go(func() { f.stream(ctx, pod.DeepCopy(), now, o) })
}

func statusOf(pod *corev1.Pod, container string) *corev1.ContainerStatus {
	i := slices.IndexFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Name == container })
	if i < 0 {
		return nil
	}
	return &pod.Status.ContainerStatuses[i]
}

// stream prints the log of one life of a container to its end, over broken connections.
func (f *follower) stream(ctx context.Context, pod *corev1.Pod, now life, o *corev1.PodLogOptions) {
	var last time.Time
	for again := false; ; again = true {
		var err error
		if f.options.source == sourceRay {
			err = f.followFiles(ctx, pod, o.Container, again)
		} else {
			err = f.copy(ctx, pod, o, &last)
		}
		if ctx.Err() != nil || !f.goesOn(ctx, pod, o.Container, now) {
			return
		}
		f.report("Reading again", pod.Name, err)
		if kube.Sleep(ctx, f.pause) != nil {
			return
		}
		if !last.IsZero() {
			o.SinceTime, o.SinceSeconds, o.TailLines = &metav1.Time{Time: last}, nil, nil
		}
	}
}

// followFiles prints the files of Ray; again, only what comes now, since it is unknown what was printed before.
func (f *follower) followFiles(ctx context.Context, pod *corev1.Pod, container string, again bool) error {
	tail := f.options.tail
	if again {
		tail = 0
	}
	return f.files(ctx, pod, container, followFilesCommand(logsOfRay, tail, lookPause))
}

// copy prints the log from where it was left, up to the end of the stream.
func (f *follower) copy(ctx context.Context, pod *corev1.Pod, o *corev1.PodLogOptions, last *time.Time) error {
	stream, err := f.open(ctx, pod, o)
	if err != nil {
		return err
	}
	defer stream.Close()
	left := *last
	out := &lines{each: func(line string) error {
		at, text := timed(line)
		// Kubernetes knows only whole seconds of where to begin.
		if !at.IsZero() && !at.After(left) {
			return nil
		}
		if !at.IsZero() {
			*last = at
		}
		return f.printer.line(pod.Name, text)
	}}
	_, err = io.Copy(out, stream)
	return errors.Join(err, out.flush())
}

// goesOn tells whether a container still lives the life whose stream has ended.
func (f *follower) goesOn(ctx context.Context, pod *corev1.Pod, container string, then life) bool {
	present := &corev1.Pod{}
	if err := f.client.Get(ctx, client.ObjectKeyFromObject(pod), present); err != nil {
		return !apierrors.IsNotFound(err)
	}
	status := statusOf(present, container)
	return present.UID == pod.UID && status != nil && status.State.Running != nil && status.RestartCount == then.restarts
}
