package leadership

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	heliostatv1alpha1 "github.com/heliostat-io/heliostat/api/heliostat/v1alpha1"
)

// server is an API server with, or without, the fence.
type server struct {
	client.Client
	// pod is the one that the API server finds in the token.
	pod string
	// policy tells whether the admission policy is there, lag how many answers still follow the holder before.
	policy bool
	lag    int
	// notYet counts the answers of an API server that has just started.
	notYet int
	// before is called before a Holder is written.
	before func()
	// fails is the answer to writes of Holders.
	fails error
}

func newServer(t *testing.T, objects ...client.Object) *server {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), heliostatv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	s := &server{pod: "uid-a", policy: true, before: func() {}}
	write := func(send func() error) error {
		s.before()
		if s.fails != nil {
			return s.fails
		}
		return send()
	}
	s.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&heliostatv1alpha1.Holder{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
				if review, ok := object.(*authenticationv1.SelfSubjectReview); ok {
					s.identify(review)
					return nil
				}
				return write(func() error { return c.Create(ctx, object, options...) })
			},
			Update: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
				return write(func() error { return c.Update(ctx, object, options...) })
			},
			SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, object client.Object, options ...client.SubResourceUpdateOption) error {
				if err := s.admit(object.(*heliostatv1alpha1.Holder)); err != nil {
					return err
				}
				return c.SubResource(sub).Update(ctx, object, options...)
			},
		}).Build()
	return s
}

func (s *server) identify(review *authenticationv1.SelfSubjectReview) {
	if s.pod != "" {
		review.Status.UserInfo.Extra = map[string]authenticationv1.ExtraValue{extraPodUID: {s.pod}, extraPodName: {"a"}}
	}
}

// admit is the policy.
func (s *server) admit(holder *heliostatv1alpha1.Holder) error {
	stored := &heliostatv1alpha1.Holder{}
	if err := s.Get(context.Background(), client.ObjectKeyFromObject(holder), stored); err != nil {
		return err
	}
	if s.notYet > 0 {
		s.notYet--
		return unknownYet()
	}
	if s.policy && (s.lag > 0 || stored.Spec.PodUID != s.pod || holder.Status.Term != stored.Spec.Term) {
		s.lag--
		return refusal()
	}
	return nil
}

func refusal() error {
	return apierrors.NewForbidden(schema.GroupResource{Group: "heliostat.io", Resource: "holders"}, "ns",
		errors.New("ValidatingAdmissionPolicy 'x' with binding 'y' denied request: heliostat fence: only Pod b may write, which holds term 7"))
}

// unknownYet is the refusal of API server 1.37, whose reason is not Forbidden.
func unknownYet() error {
	err := apierrors.NewForbidden(schema.GroupResource{Group: "heliostat.io", Resource: "holders"}, "ns",
		errors.New("ValidatingAdmissionPolicy 'x' denied request: failed to configure policy: failed to find resource referenced by paramKind"))
	err.ErrStatus.Reason, err.ErrStatus.Code = metav1.StatusReasonInvalid, http.StatusUnprocessableEntity
	return err
}

func leaseOf(identity string) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "lease", UID: "lease-uid"},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To(identity)}}
}

func holderOf(term int64, pod string) *heliostatv1alpha1.Holder {
	return &heliostatv1alpha1.Holder{ObjectMeta: metav1.ObjectMeta{Name: "ns"}, Spec: heliostatv1alpha1.HolderSpec{Term: term, PodUID: pod}}
}

func (s *server) fence() *Fence {
	return &Fence{Client: s, Holder: "ns", Lease: types.NamespacedName{Namespace: "ns", Name: "lease"}, Identity: "a"}
}

func (s *server) holder(t *testing.T) heliostatv1alpha1.Holder {
	t.Helper()
	holder := heliostatv1alpha1.Holder{}
	if err := s.Get(t.Context(), types.NamespacedName{Name: "ns"}, &holder); err != nil {
		t.Fatal(err)
	}
	return holder
}

func TestTheFenceMoves(t *testing.T) {
	cases := map[string]struct {
		before   []client.Object
		lag      int
		notYet   int
		handOver int64
		want     int64
	}{
		"given no holder, the term follows the lease":                    {handOver: 4, want: 5},
		"given another holder, the term is the next":                     {before: []client.Object{holderOf(7, "uid-b")}, handOver: 2, want: 8},
		"given ourselves from an earlier term, the term is the next":     {before: []client.Object{holderOf(7, "uid-a")}, want: 8},
		"given an API server that lags, it waits":                        {before: []client.Object{holderOf(7, "uid-b")}, lag: 5, want: 8},
		"given an API server that does not know the fence yet, it waits": {before: []client.Object{holderOf(7, "uid-b")}, notYet: 2, want: 8},
		"given a holder that was deleted, the term follows the lease":    {handOver: 9, want: 10},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, append(tc.before, leaseOf("a"))...)
			s.lag, s.notYet = tc.lag, tc.notYet
			standing, err := s.fence().Move(t.Context(), tc.handOver)
			if err != nil || standing != (Standing{Term: tc.want, Fenced: true}) {
				t.Fatalf("standing %+v, %v; want term %d behind the fence", standing, err, tc.want)
			}
			holder := s.holder(t)
			if holder.Spec.PodUID != "uid-a" || holder.Spec.PodName != "a" || holder.Spec.LeaseUID != "lease-uid" || holder.Spec.Term != tc.want {
				t.Errorf("holder %+v", holder.Spec)
			}
			if holder.Status.Term != tc.want || !meta.IsStatusConditionTrue(holder.Status.Conditions, heliostatv1alpha1.ConditionFenced) {
				t.Errorf("status %+v", holder.Status)
			}
			if s.lag > 0 || s.notYet > 0 {
				t.Errorf("it did not wait for the API server, which would lag for %d and refuse for %d more answers", s.lag, s.notYet)
			}
		})
	}
}

func TestLeadingWithoutTheFence(t *testing.T) {
	cases := map[string]struct {
		given func(s *server)
		want  string
		term  int64
	}{
		"given no Pod in the token":         {given: func(s *server) { s.pod = "" }, want: ReasonNotInPod, term: 4},
		"given no policy":                   {given: func(s *server) { s.policy = false }, want: ReasonPolicyMissing, term: 8},
		"given no right to name a holder":   {given: func(s *server) { s.fails = apierrors.NewForbidden(schema.GroupResource{}, "ns", errors.New("no")) }, want: ReasonNoRights, term: 4},
		"given a kind that was taken away":  {given: func(s *server) { s.fails = apierrors.NewNotFound(schema.GroupResource{}, "ns") }, want: ReasonKindMissing, term: 4},
		"given a kind that was never there": {given: func(s *server) { s.fails = &meta.NoKindMatchError{} }, want: ReasonKindMissing, term: 4},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, holderOf(7, "uid-b"), leaseOf("a"))
			tc.given(s)
			fence := s.fence()
			standing, err := fence.Move(t.Context(), 3)
			if err != nil || standing.Fenced || standing.Reason != tc.want || standing.Message == "" || standing.Term != tc.term {
				t.Errorf("standing %+v, %v; want term %d without the fence because of %s", standing, err, tc.term, tc.want)
			}
			if tc.want == ReasonPolicyMissing {
				condition := meta.FindStatusCondition(s.holder(t).Status.Conditions, heliostatv1alpha1.ConditionFenced)
				if condition == nil || condition.Status != metav1.ConditionFalse || condition.Reason != tc.want {
					t.Errorf("condition %+v", condition)
				}
			}
			fence.Required = true
			if _, err := fence.Move(t.Context(), 3); err == nil || !strings.Contains(err.Error(), "fencing is required") {
				t.Errorf("a fence that is required: %v", err)
			}
		})
	}
}

// TestAStoppedReplicaDoesNotTakeTheFenceBack stops a replica between any two of its steps, while another one takes over.
func TestAStoppedReplicaDoesNotTakeTheFenceBack(t *testing.T) {
	t.Run("before it looks at the lease", func(t *testing.T) {
		s := newServer(t, holderOf(7, "uid-b"), leaseOf("b"))
		if _, err := s.fence().Move(t.Context(), 3); !errors.Is(err, errLeaseLost) {
			t.Errorf("got %v", err)
		}
		if got := s.holder(t).Spec.PodUID; got != "uid-b" {
			t.Errorf("the holder is %s", got)
		}
	})
	t.Run("after it looked at the lease", func(t *testing.T) {
		s := newServer(t, holderOf(7, "uid-b"), leaseOf("a"))
		s.before = func() {
			s.before = func() {}
			lease, other := &coordinationv1.Lease{}, s.holder(t)
			found := s.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "lease"}, lease)
			lease.Spec.HolderIdentity = ptr.To("c")
			other.Spec.Term, other.Spec.PodUID = 8, "uid-c"
			if err := errors.Join(found, s.Update(t.Context(), lease), s.Update(t.Context(), &other)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.fence().Move(t.Context(), 3); !errors.Is(err, errLeaseLost) {
			t.Errorf("got %v", err)
		}
		if got := s.holder(t).Spec; got.PodUID != "uid-c" || got.Term != 8 {
			t.Errorf("the holder is %+v", got)
		}
	})
}

func TestTheHolderIsLookedAtLater(t *testing.T) {
	s := newServer(t, holderOf(7, "uid-a"), leaseOf("a"))
	fence := s.fence()
	for term, want := range map[int64]bool{7: true, 6: false} {
		if ours, err := fence.Ours(t.Context(), term); err != nil || ours != want {
			t.Errorf("term %d is ours: %t, %v", term, ours, err)
		}
	}
	cases := map[string]struct {
		reason string
		policy bool
		want   bool
	}{
		"outside of a Pod nothing helps":      {reason: ReasonNotInPod, policy: true},
		"a policy that was installed":         {reason: ReasonPolicyMissing, policy: true, want: true},
		"a policy that is missing still":      {reason: ReasonPolicyMissing},
		"a kind that was installed meanwhile": {reason: ReasonKindMissing, policy: true, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s.policy = tc.policy
			if got, err := fence.Available(t.Context(), tc.reason); err != nil || got != tc.want {
				t.Errorf("available %t, %v; want %t", got, err, tc.want)
			}
		})
	}
	if err := s.Delete(t.Context(), holderOf(7, "uid-a")); err != nil {
		t.Fatal(err)
	}
	if ours, err := fence.Ours(t.Context(), 7); err != nil || ours {
		t.Errorf("a Holder that is gone is ours: %t, %v", ours, err)
	}
}

func TestRefusedKnowsTheFence(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"nothing":         {},
		"the fence":       {err: refusal(), want: true},
		"missing rights":  {err: apierrors.NewForbidden(schema.GroupResource{}, "x", errors.New("no"))},
		"any other error": {err: errors.New("heliostat fence: x")},
	} {
		if got := Refused(tc.err); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
