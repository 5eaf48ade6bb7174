package action

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/heliostat-io/heliostat/internal/leadership"
)

// owned is a Pod of the owner with the given UID and incarnation.
func owned(owner types.UID, incarnation string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", Labels: map[string]string{"incarnation": incarnation},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "ray.io/v1", Kind: "RayCluster", Name: "demo", UID: owner, Controller: ptr.To(true)}}}}
}

func executor(existing []client.Object, funcs interceptor.Funcs) (*Executor, *events.FakeRecorder) {
	api := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(existing...).WithInterceptorFuncs(funcs).Build()
	recorder := events.NewFakeRecorder(100)
	return &Executor{Client: api, Live: api, Gate: leadership.Alone{}, Events: recorder, Parallel: 4}, recorder
}

func drain(recorder *events.FakeRecorder) []string {
	var all []string
	for {
		select {
		case event := <-recorder.Events:
			all = append(all, event)
		default:
			return all
		}
	}
}

func TestCreate(t *testing.T) {
	timeoutAfterCommit := interceptor.Funcs{Create: func(ctx context.Context, api client.WithWatch, object client.Object, options ...client.CreateOption) error {
		if err := api.Create(ctx, object, options...); err != nil {
			return err
		}
		return apierrors.NewTimeoutError("the answer was lost", 1)
	}}
	timeoutBefore := interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
		return apierrors.NewTimeoutError("the request was lost", 1)
	}}
	refused := interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "p", errors.New("exceeded quota"))
	}}
	for name, tc := range map[string]struct {
		existing []client.Object
		faults   interceptor.Funcs
		wantErr  func(error) bool
	}{
		"there is none yet":                                {},
		"it was made before, by a leader that crashed":     {existing: []client.Object{owned("u1", "1")}},
		"another owner has the name":                       {existing: []client.Object{owned("u2", "1")}, wantErr: isCollision},
		"another incarnation has the name":                 {existing: []client.Object{owned("u1", "2")}, wantErr: isCollision},
		"nobody owns what has the name":                    {existing: []client.Object{&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}}}, wantErr: isCollision},
		"the answer was lost after the object was stored":  {faults: timeoutAfterCommit},
		"the request was lost before the object was there": {faults: timeoutBefore, wantErr: func(err error) bool { return err != nil && !isCollision(err) }},
		"the API server refuses it":                        {faults: refused, wantErr: apierrors.IsForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			e, _ := executor(tc.existing, tc.faults)
			create := Create{Object: owned("u1", "1"), Identity: []string{"incarnation"}}
			result, err := e.Run(context.Background(), owned("owner", ""), Plan{Actions: []Action{create}})
			if err != nil {
				t.Fatal(err)
			}
			var got error
			if len(result.Failures) > 0 {
				got = result.Failures[0].Err
			}
			if tc.wantErr == nil && got != nil || tc.wantErr != nil && !tc.wantErr(got) {
				t.Errorf("unexpected outcome: %v", got)
			}
		})
	}
}

func isCollision(err error) bool { return errors.Is(err, ErrCollision) }

func TestDeleteMeansOneLifeOnly(t *testing.T) {
	successor := owned("u1", "2")
	successor.UID = "second life"
	e, _ := executor([]client.Object{successor}, interceptor.Funcs{Delete: func(ctx context.Context, api client.WithWatch, object client.Object, options ...client.DeleteOption) error {
		o := &client.DeleteOptions{}
		for _, option := range options {
			option.ApplyToDelete(o)
		}
		if o.Preconditions == nil || o.Preconditions.UID == nil {
			t.Error("the delete names no UID")
		} else if *o.Preconditions.UID != successor.UID {
			return apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "p", errors.New("UID differs"))
		}
		return api.Delete(ctx, object)
	}})
	first := owned("u1", "1")
	first.UID = "first life"
	result, err := e.Run(context.Background(), first, Plan{Actions: []Action{Delete{Object: first}}})
	if err != nil || result.Err() != nil {
		t.Errorf("the one that was meant is gone, which is success: %v %v", err, result.Err())
	}
	if err := e.Client.Get(context.Background(), client.ObjectKeyFromObject(successor), &corev1.Pod{}); err != nil {
		t.Errorf("the successor was deleted: %v", err)
	}
}

func TestDeleteLeavesWhatTheOwnerDoesNotControl(t *testing.T) {
	owner := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "owner", UID: "u1"}}
	for name, tc := range map[string]struct {
		of   types.UID
		gone bool
	}{
		"given its own object, it goes":        {of: "u1", gone: true},
		"given an object of another, it stays": {of: "u2"},
		"given an object of an earlier life":   {of: "u0"},
	} {
		t.Run(name, func(t *testing.T) {
			object := owned(tc.of, "1")
			object.UID = "one"
			e, _ := executor([]client.Object{object.DeepCopy()}, interceptor.Funcs{})
			result, err := e.Run(context.Background(), owner, Plan{Actions: []Action{Delete{Object: object, Owner: owner}}})
			if err != nil || (result.Err() == nil) != tc.gone {
				t.Errorf("Run: %v, %v", err, result.Err())
			}
			found := e.Client.Get(context.Background(), client.ObjectKeyFromObject(object), &corev1.Pod{})
			if apierrors.IsNotFound(found) != tc.gone {
				t.Errorf("afterwards: %v", found)
			}
		})
	}
}

func TestUpdateIsRefusedWhenTheObjectHasChanged(t *testing.T) {
	stored := owned("u1", "1")
	e, recorder := executor([]client.Object{stored}, interceptor.Funcs{})
	base := &corev1.Pod{}
	if err := e.Client.Get(context.Background(), client.ObjectKeyFromObject(stored), base); err != nil {
		t.Fatal(err)
	}
	update := func(value string) error {
		wanted := base.DeepCopy()
		wanted.Labels["new"] = value
		plan := Plan{Actions: []Action{Update{Object: wanted, Base: base, Failed: Warning("FailedToUpdate", "Update", "no")}}}
		result, err := e.Run(context.Background(), base, plan)
		return errors.Join(err, result.Err())
	}
	if err := update("first"); err != nil {
		t.Errorf("the first update: %v", err)
	}
	if err := update("second"); !errors.Is(err, errChanged) {
		t.Errorf("an update from an older state must be refused: %v", err)
	}
	after := &corev1.Pod{}
	if err := e.Client.Get(context.Background(), client.ObjectKeyFromObject(stored), after); err != nil || after.Labels["new"] != "first" {
		t.Errorf("afterwards %v: %v", after.Labels, err)
	}
	if err := e.Client.Delete(context.Background(), after); err != nil {
		t.Fatal(err)
	}
	if err := update("third"); !errors.Is(err, errChanged) {
		t.Errorf("an update of what is gone must be refused: %v", err)
	}
	if events := drain(recorder); len(events) > 0 {
		t.Errorf("users were told of what the next plan will see to: %v", events)
	}
}

func TestApplyLeavesForeignObjectsAlone(t *testing.T) {
	foreign := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s", Labels: map[string]string{"theirs": "yes"}}}
	wanted := &corev1.Service{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s", OwnerReferences: owned("u1", "1").OwnerReferences}}
	for name, observed := range map[string]client.Object{"seen in the cache": foreign.DeepCopy(), "not seen in the cache": nil} {
		t.Run(name, func(t *testing.T) {
			e, _ := executor([]client.Object{foreign.DeepCopy()}, interceptor.Funcs{})
			result, err := e.Run(context.Background(), foreign, Plan{Actions: []Action{Apply{Object: wanted, Observed: observed}}})
			if err != nil || len(result.Failures) != 1 || !isCollision(result.Failures[0].Err) {
				t.Errorf("want a collision, got %v, %v", err, result.Err())
			}
			after := &corev1.Service{}
			if err := e.Client.Get(context.Background(), client.ObjectKeyFromObject(foreign), after); err != nil || len(after.OwnerReferences) > 0 {
				t.Errorf("the foreign Service was changed: %v %v", after.OwnerReferences, err)
			}
		})
	}
}

func TestAStatusThatCannotBeWrittenStopsThePlan(t *testing.T) {
	pod := owned("u1", "1")
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "p", errors.New("newer"))
	e, recorder := executor([]client.Object{pod}, interceptor.Funcs{
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			return conflict
		},
	})
	other := owned("u1", "1")
	other.Name = "q"
	_, err := e.Run(context.Background(), pod, Plan{
		Status:  &StatusWrite{Object: pod, Base: pod},
		Actions: []Action{Create{Object: other, Done: Normal("Created", "Create", "created")}},
	})
	if !apierrors.IsConflict(err) {
		t.Errorf("want the conflict, got %v", err)
	}
	if err := e.Client.Get(context.Background(), types.NamespacedName{Namespace: "ns", Name: "q"}, &corev1.Pod{}); !apierrors.IsNotFound(err) {
		t.Errorf("the status is the commit point; nothing may be made without it: %v", err)
	}
	if told := drain(recorder); len(told) > 0 {
		t.Errorf("events speak of what did not happen: %v", told)
	}
}

func TestEventsFollowTheWritesTheySpeakOf(t *testing.T) {
	e, recorder := executor(nil, interceptor.Funcs{Create: func(ctx context.Context, api client.WithWatch, object client.Object, options ...client.CreateOption) error {
		if object.GetName() == "bad" {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "bad", errors.New("exceeded quota"))
		}
		return api.Create(ctx, object, options...)
	}})
	var plan Plan
	for _, name := range []string{"w1", "w2", "bad", "w3", "w4", "w5", "w6"} {
		pod := owned("u1", "1")
		pod.Name = name
		plan.Actions = append(plan.Actions, Create{Object: pod, Done: Normal("CreatedWorkerPod", "Create", "created"),
			Failed: Warning("FailedToCreateWorkerPod", "Create", "cannot create")})
	}
	e.Parallel = 1
	if _, err := e.Run(context.Background(), owned("owner", ""), plan); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"Normal CreatedWorkerPod created (w1, w2, w3, w4, w5 and 1 more)",
		`Warning FailedToCreateWorkerPod cannot create (bad): pods "bad" is forbidden: exceeded quota`,
	}
	if diff := cmp.Diff(want, drain(recorder)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestARefusalGivesUpTheRestOfItsGroup(t *testing.T) {
	tried := 0
	e, recorder := executor(nil, interceptor.Funcs{Create: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.CreateOption) error {
		if object.GetLabels()["group"] == "b" {
			return nil
		}
		tried++
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, object.GetName(), errors.New("exceeded quota"))
	}})
	e.Parallel = 1
	var plan Plan
	for i := range 100 {
		pod := owned("u1", "1")
		pod.Name, pod.Labels = fmt.Sprintf("w%d", i), map[string]string{"group": "a"}
		plan.Actions = append(plan.Actions, Create{Object: pod, Group: "a", Failed: Warning("FailedToCreateWorkerPod", "Create", "cannot create")})
	}
	other := owned("u1", "1")
	other.Labels = map[string]string{"group": "b"}
	plan.Actions = append(plan.Actions, Create{Object: other, Group: "b"})
	result, err := e.Run(context.Background(), owned("owner", ""), plan)
	if err != nil || len(result.Failures) != 100 {
		t.Errorf("want 100 failures and group b made, got %d: %v", len(result.Failures), err)
	}
	if tried != 1 || len(drain(recorder)) != 1 {
		t.Errorf("one refusal is enough: %d tries", tried)
	}
	plan.Known = map[string]bool{"a": true}
	if _, err := e.Run(context.Background(), owned("owner", ""), plan); err != nil || len(drain(recorder)) != 0 {
		t.Errorf("a refusal that is known is not told again (%v)", err)
	}
}

// closed is the gate of a replica that holds no term.
type closed struct{}

func (closed) Current() (leadership.Term, bool) { return leadership.Term{}, false }
func (closed) Enter(context.Context) (context.Context, func(), error) {
	return nil, nil, leadership.ErrNoTerm
}

func TestNothingIsWrittenWithoutATerm(t *testing.T) {
	e, recorder := executor(nil, interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
		t.Error("a write went out")
		return nil
	}})
	e.Gate = closed{}
	result, err := e.Run(context.Background(), owned("owner", ""), Plan{Actions: []Action{Create{Object: owned("u1", "1"), Done: Normal("Created", "Create", "created")}}})
	if err != nil || len(result.Failures) != 1 || !errors.Is(result.Failures[0].Err, leadership.ErrNoTerm) {
		t.Errorf("want the action to fail for want of a term: %v %v", err, result.Err())
	}
	if told := drain(recorder); len(told) > 0 {
		t.Errorf("events: %v", told)
	}
}

func TestToldEventsAreReported(t *testing.T) {
	for name, tc := range map[string]struct {
		faults interceptor.Funcs
		want   []string
	}{
		"the write is done": {want: []string{"Pod Made Normal", "Pod Noticed Warning"}},
		"the write fails": {faults: interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "p", errors.New("exceeded quota"))
		}}, want: []string{"Pod NotMade Warning", "Pod Noticed Warning"}},
	} {
		t.Run(name, func(t *testing.T) {
			e, recorder := executor(nil, tc.faults)
			var got []string
			e.Told = func(kind, reason, eventType string) { got = append(got, kind+" "+reason+" "+eventType) }
			plan := Plan{
				Actions: []Action{Create{Object: owned("u1", "1"), Done: Normal("Made", "Create", "made"), Failed: Warning("NotMade", "Create", "not made")}},
				Events:  []Event{*Warning("Noticed", "Validate", "noticed")},
			}
			if _, err := e.Run(context.Background(), owned("owner", ""), plan); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("reported (-want +got):\n%s", diff)
			}
			if sent := drain(recorder); len(sent) != len(got) {
				t.Errorf("%d events were sent, %d reported", len(sent), len(got))
			}
		})
	}
}
