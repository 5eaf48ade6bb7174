package action

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func secretOf(owner types.UID) *corev1.Secret {
	return &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s", OwnerReferences: owned(owner, "").OwnerReferences}}
}

func TestMakeToken(t *testing.T) {
	make := MakeToken{Secret: secretOf("u1"), Entry: "auth_token"}
	make.Secret.Labels = map[string]string{"ray.io/cluster": "demo"}
	run := func(existing ...client.Object) (string, error) {
		e, _ := executor(existing, interceptor.Funcs{})
		result, err := e.Run(context.Background(), owned("owner", ""), Plan{Actions: []Action{make}})
		if err != nil {
			t.Fatal(err)
		}
		secret := &corev1.Secret{}
		if err := e.Client.Get(context.Background(), client.ObjectKeyFromObject(make.Secret), secret); err != nil {
			t.Fatal(err)
		}
		if len(result.Failures) > 0 {
			err = result.Failures[0].Err
		}
		return string(secret.Data["auth_token"]), err
	}
	with := func(owner types.UID) *corev1.Secret {
		secret := secretOf(owner)
		secret.Labels = make.Secret.Labels
		secret.Data = map[string][]byte{"auth_token": []byte("old")}
		return secret
	}

	first, err := run()
	if bytes, bad := base64.StdEncoding.DecodeString(first); err != nil || bad != nil || len(bytes) != 32 {
		t.Errorf("the token is %q (%v), want 32 bytes in base64", first, err)
	}
	if second, _ := run(); second == first {
		t.Error("two tokens are the same")
	}
	if kept, err := run(with("u1")); kept != "old" || err != nil {
		t.Errorf("a token that is there became %q (%v)", kept, err)
	}
	if kept, err := run(with("u2")); kept != "old" || !errors.Is(err, ErrCollision) {
		t.Errorf("a token of another owner became %q (%v)", kept, err)
	}
	unlabelled := with("u1")
	unlabelled.Labels = nil
	if kept, err := run(unlabelled); kept != "old" || err == nil || !strings.Contains(err.Error(), "label") {
		t.Errorf("a Secret that lost its label, and is not found by it, became %q (%v), want it said", kept, err)
	}
	if make.Secret.Data != nil {
		t.Error("the plan's own object has the token")
	}
}

func TestApplyMeetsAnObjectThatTheCacheDoesNotShow(t *testing.T) {
	wanted := func() *corev1.Service {
		return &corev1.Service{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "s", Labels: map[string]string{"a": "1"}, OwnerReferences: owned("u1", "").OwnerReferences}}
	}
	for name, tc := range map[string]struct {
		owner   types.UID
		want    string
		wantErr bool
	}{
		"its own, without the label by which the cache selects, gets it back": {owner: "u1", want: "1"},
		"that of somebody else is left alone":                                 {owner: "u2", wantErr: true},
	} {
		t.Run(name, func(t *testing.T) {
			existing := wanted()
			existing.Labels, existing.OwnerReferences = nil, owned(tc.owner, "").OwnerReferences
			e, _ := executor([]client.Object{existing}, interceptor.Funcs{})
			result, err := e.Run(context.Background(), owned("owner", ""), Plan{Actions: []Action{Apply{Object: wanted()}}})
			if err != nil {
				t.Fatal(err)
			}
			if failed := len(result.Failures) > 0; failed != tc.wantErr {
				t.Errorf("failures %v", result.Failures)
			}
			live := &corev1.Service{}
			if err := e.Client.Get(context.Background(), client.ObjectKeyFromObject(existing), live); err != nil {
				t.Fatal(err)
			}
			if live.Labels["a"] != tc.want {
				t.Errorf("labels %v", live.Labels)
			}
		})
	}
}

func TestKeysOfObjects(t *testing.T) {
	for _, a := range []Action{Apply{Object: secretOf("u")}, MakeToken{Secret: secretOf("u")}} {
		if a.Key() != "Secret/s" {
			t.Errorf("%T is held back under %q", a, a.Key())
		}
	}
}
