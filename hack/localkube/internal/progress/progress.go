// Package progress tells the person at the terminal what is being done and how
// long it has taken so far.
package progress

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Log prints one line a step, each with the seconds since the Log was made. It
// may be used from several goroutines.
type Log struct {
	mu    sync.Mutex
	out   io.Writer
	start time.Time
}

// New returns a Log that writes to out and counts from now.
func New(out io.Writer) *Log {
	return &Log{out: out, start: time.Now()}
}

// Printf prints one line. An error of the writer is ignored: nobody is left to
// be told.
func (l *Log) Printf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.out, "[%6.1fs] %s\n", time.Since(l.start).Seconds(), fmt.Sprintf(format, args...))
}

// Elapsed is the time since the Log was made, rounded for printing.
func (l *Log) Elapsed() time.Duration {
	return time.Since(l.start).Round(100 * time.Millisecond)
}
