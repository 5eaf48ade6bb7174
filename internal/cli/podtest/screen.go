package podtest

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"
)

// Screen is what a user sees of a command that runs beside the test, and can wait for. It is safe for concurrent use.
type Screen struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{}
}

// NewScreen returns an empty screen.
func NewScreen() *Screen { return &Screen{changed: make(chan struct{}, 1)} }

// Write shows text.
func (s *Screen) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
	return s.text.Write(text)
}

// String is all that was shown.
func (s *Screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// patience is how long is waited for something to be shown.
const patience = 20 * time.Second

// Await waits until the text is to be seen, and fails the test when it never is.
func (s *Screen) Await(t testing.TB, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for !strings.Contains(s.String(), text) {
		select {
		case <-s.changed:
		case <-ctx.Done():
			t.Fatalf("never said %q, only %q", text, s)
		}
	}
}
