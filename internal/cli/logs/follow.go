package logs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// follower reads the logs of Pods that come and go.
type follower struct {
	*reader
	streams sync.WaitGroup
	// lives are the lives of containers that are read, or were.
	lives map[life]bool
	// begun is set once the Pods that were there at the beginning are known. Of later ones everything is printed.
	begun bool
}

// life is one life of a container.
type life struct {
	pod      string
	restarts int32
}

// follow prints logs until the context ends; those of a submitter, until its RayJob has ended.
func (r *reader) follow(ctx context.Context) error {
	f := &follower{reader: r, lives: map[life]bool{}}
	looking, stop := context.WithCancel(ctx)
	defer stop()
	if r.job != nil {
		go func() {
			defer stop()
			r.awaitEnd(looking)
		}()
	}
	for looking.Err() == nil {
		if err := f.watch(ctx, looking); err != nil && looking.Err() == nil {
			_, _ = fmt.Fprintln(r.env.ErrOut, "Looking for Pods again:", err)
		}
		r.sleep(looking)
	}
	f.streams.Wait()
	return nil
}

// sleep waits a moment, or until the context ends.
func (r *reader) sleep(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-clock.RealClock{}.After(r.pause):
	}
}

// awaitEnd returns when the RayJob has ended or is gone.
func (r *reader) awaitEnd(ctx context.Context) {
	for ctx.Err() == nil {
		job := &rayv1.RayJob{}
		err := r.client.Get(ctx, client.ObjectKeyFromObject(r.job), job)
		if apierrors.IsNotFound(err) || err == nil && rayv1.IsJobDeploymentTerminal(job.Status.JobDeploymentStatus) {
			return
		}
		r.sleep(ctx)
	}
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
	f.begun = true
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
	status := statusOf(pod, f.chosen.containerOf(pod))
	if status == nil || status.State.Running == nil && status.State.Terminated == nil {
		return
	}
	now := life{string(pod.UID) + pod.Name, status.RestartCount}
	if f.lives[now] {
		return
	}
	f.lives[now] = true
	o := &corev1.PodLogOptions{Container: f.chosen.containerOf(pod), Timestamps: true}
	if !f.begun {
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
			err = f.files(ctx, pod, again)
		} else {
			err = f.copy(ctx, pod, o, &last)
		}
		if ctx.Err() != nil || !f.goesOn(ctx, pod, now) {
			return
		}
		if err != nil {
			_, _ = fmt.Fprintln(f.env.ErrOut, "Reading again:", err)
		}
		f.sleep(ctx)
		if !last.IsZero() {
			o.SinceTime, o.SinceSeconds, o.TailLines = &metav1.Time{Time: last}, nil, nil
		}
	}
}

// files prints the files of Ray; again, only what comes now, since it is unknown what was printed before.
func (f *follower) files(ctx context.Context, pod *corev1.Pod, again bool) error {
	tail := f.options.tail
	if again {
		tail = 0
	}
	return f.tailFiles(ctx, pod, filesCommand(tail, followFiles))
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
func (f *follower) goesOn(ctx context.Context, pod *corev1.Pod, then life) bool {
	present := &corev1.Pod{}
	if err := f.client.Get(ctx, client.ObjectKeyFromObject(pod), present); err != nil {
		return !apierrors.IsNotFound(err)
	}
	status := statusOf(present, f.chosen.containerOf(present))
	return present.UID == pod.UID && status != nil && status.State.Running != nil && status.RestartCount == then.restarts
}
