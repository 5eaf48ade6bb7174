package action

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// tokenBytes is how many random bytes a token has.
const tokenBytes = 32

// MakeToken makes Secret with a new random token in it. The token is drawn by the executor, because plans draw nothing.
// A Secret that is there already and has the same owner stays as it is, with its token.
type MakeToken struct {
	Secret *corev1.Secret
	// Entry is the key of the token within the Secret.
	Entry  string
	Why    string
	Done   *Event
	Failed *Event
}

// Key is that of an Apply of the Secret.
func (a MakeToken) Key() string { return objectKey(a.Secret) }

func (a MakeToken) target() client.Object { return a.Secret }
func (a MakeToken) event() *Event         { return a.Done }
func (a MakeToken) failure() *Event       { return a.Failed }

func (e *Executor) makeToken(ctx context.Context, a MakeToken) error {
	token := make([]byte, tokenBytes)
	if _, err := rand.Read(token); err != nil {
		return err
	}
	secret := a.Secret.DeepCopy()
	secret.Data = map[string][]byte{a.Entry: []byte(base64.StdEncoding.EncodeToString(token))}
	err := e.create(ctx, Create{Object: secret, Identity: slices.Collect(maps.Keys(secret.Labels))})
	if !errors.Is(err, ErrCollision) {
		return err
	}
	found := &corev1.Secret{}
	if err := e.Live.Get(ctx, client.ObjectKeyFromObject(secret), found); err != nil {
		return fmt.Errorf("look at the Secret that is there already: %w", err)
	}
	if !sameOwner(found, secret) {
		return ErrCollision
	}
	return fmt.Errorf("the Secret is there, but without the labels %v by which the operator finds it: put them back", secret.Labels)
}

// objectKey is the key of an action that concerns one object and nothing else.
func objectKey(object client.Object) string {
	return object.GetObjectKind().GroupVersionKind().Kind + "/" + object.GetName()
}
