package operator

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestTokens(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}, Data: map[string][]byte{"auth_token": []byte("one")}}
	api := fake.NewClientBuilder().WithObjects(secret).Build()
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC))
	source := newTokens(api, clock).of(types.NamespacedName{Namespace: "ns", Name: "s"})
	expect := func(when, want string, fails bool) {
		t.Helper()
		if got, err := source(t.Context()); got != want || (err != nil) != fails {
			t.Errorf("%s the token is %q (%v), want %q", when, got, err, want)
		}
	}

	expect("at first", "one", false)
	secret.Data["auth_token"] = []byte("two")
	if err := api.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	expect("soon after", "one", false)
	clock.SetTime(clock.Now().Add(tokenLife))
	expect("later", "two", false)
	secret.Data = nil
	if err := api.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	clock.SetTime(clock.Now().Add(tokenLife))
	expect("when it is gone from the Secret", "", true)
	if err := api.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	expect("when the Secret is gone", "", true)
}
