package operator

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-io/heliostat/internal/ray"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
)

// tokenLife is how long a token is used before its Secret is read again.
const tokenLife = 30 * time.Second

// tokens finds the tokens for the operator's own calls to Ray. It reads Secrets from the API server, because the caches
// hold only those that the operator made; the calls run in the background, where that may take its time.
type tokens struct {
	reader client.Reader
	clock  clock.PassiveClock

	mu    sync.Mutex
	known map[types.NamespacedName]knownToken
}

type knownToken struct {
	text  string
	until time.Time
}

func newTokens(reader client.Reader, clock clock.PassiveClock) *tokens {
	return &tokens{reader: reader, clock: clock, known: map[types.NamespacedName]knownToken{}}
}

// of returns the source of the token in a Secret.
func (t *tokens) of(secret types.NamespacedName) dashboard.TokenSource {
	return func(ctx context.Context) (string, error) {
		if text, ok := t.fresh(secret); ok {
			return text, nil
		}
		found := &corev1.Secret{}
		if err := t.reader.Get(ctx, secret, found); err != nil {
			return "", fmt.Errorf("read Secret %s: %w", secret, err)
		}
		text := string(found.Data[ray.TokenKey])
		if text == "" {
			return "", fmt.Errorf("read Secret %s: it has nothing under %s", secret, ray.TokenKey)
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		t.known[secret] = knownToken{text: text, until: t.clock.Now().Add(tokenLife)}
		return text, nil
	}
}

// fresh returns a token that was read lately, and forgets those that were not.
func (t *tokens) fresh(secret types.NamespacedName) (string, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Now()
	maps.DeleteFunc(t.known, func(_ types.NamespacedName, known knownToken) bool { return !now.Before(known.until) })
	known, ok := t.known[secret]
	return known.text, ok
}
