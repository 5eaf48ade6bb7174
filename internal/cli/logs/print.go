package logs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// source is the log of one container, of which the next line is known.
type source struct {
	pod    string
	stream io.ReadCloser
	lines  *bufio.Reader
	at     time.Time
	text   string
}

// sourceBuffer is how much of a log is read ahead, in bytes. There may be a thousand Pods.
const sourceBuffer = 16 << 10

// next reads the next line and tells whether there was one.
func (s *source) next() (bool, error) {
	line, err := s.lines.ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("read the log of Pod %s: %w", s.pod, err)
	}
	if line == "" {
		return false, nil
	}
	at, text := timed(strings.TrimRight(line, "\r\n"))
	if !at.IsZero() {
		s.at = at
	}
	s.text = text
	return true, nil
}

// print writes what was logged up to now.
func (r *reader) print(ctx context.Context) error {
	pods, err := r.pods(ctx, &r.chosen)
	if err != nil {
		return err
	}
	if len(pods) == 0 {
		return fmt.Errorf("there is no Pod of %s to read logs from", r.chosen.what)
	}
	if r.options.source == sourceRay {
		return r.printFiles(ctx, pods)
	}
	var sources []*source
	var failures []error
	for i := range pods {
		stream, err := r.open(ctx, &pods[i], r.logOptions(&pods[i]))
		if err != nil {
			failures = append(failures, err)
			continue
		}
		defer stream.Close()
		sources = append(sources, &source{pod: pods[i].Name, stream: stream, lines: bufio.NewReaderSize(stream, sourceBuffer)})
	}
	return errors.Join(append(failures, r.merge(sources))...)
}

// logOptions ask for the log of a Pod's container, as far back as the flags say.
func (r *reader) logOptions(pod *corev1.Pod) *corev1.PodLogOptions {
	o := &corev1.PodLogOptions{Container: r.chosen.containerOf(pod), Timestamps: true}
	if r.options.tail != everything {
		o.TailLines = &r.options.tail
	}
	if r.options.since > 0 {
		o.SinceSeconds = ptr.To(int64(max(r.options.since, time.Second) / time.Second))
	}
	return o
}

// open opens the log of a container.
func (r *reader) open(ctx context.Context, pod *corev1.Pod, o *corev1.PodLogOptions) (io.ReadCloser, error) {
	stream, err := r.set.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, o).Stream(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the log of Pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return stream, nil
}

// merge writes the lines of all sources in the order of time. The lines of one source keep their order.
func (r *reader) merge(sources []*source) error {
	var failures []error
	var open []*source
	advance := func(s *source) bool {
		more, err := s.next()
		if err != nil {
			failures = append(failures, err)
		}
		return more
	}
	for _, s := range sources {
		if advance(s) {
			open = append(open, s)
		}
	}
	for len(open) > 0 {
		oldest := 0
		for i, s := range open {
			if s.at.Before(open[oldest].at) {
				oldest = i
			}
		}
		s := open[oldest]
		if err := r.printer.line(s.pod, s.text); err != nil {
			return err
		}
		if !advance(s) {
			open = append(open[:oldest], open[oldest+1:]...)
		}
	}
	return errors.Join(failures...)
}
