package kube

import (
	"context"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// given returns a server with a client whose requests arrive at once.
func given(t *testing.T) (*Server, *Client) {
	t.Helper()
	schema, err := NewSchema(clientgoscheme.Scheme, []client.Object{&corev1.Pod{}, &batchv1.Job{}}, []client.Object{&corev1.Service{}})
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(schema, func() time.Time { return time.Unix(1_000_000, 0) })
	return s, &Client{Reader: s.Live(), Schema: schema, Send: func(_ context.Context, r Request) (client.Object, error) { return s.Do(r) }}
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "ns", Name: name} }

func job(t *testing.T, c *Client) *batchv1.Job {
	t.Helper()
	object := &batchv1.Job{ObjectMeta: named("j"), Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](1)}}
	must(t, c.Create(t.Context(), object))
	return object
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestWritesThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		write func(t *testing.T, c *Client, j *batchv1.Job) error
		want  func(error) bool
	}{
		"a create under a name that is taken": {
			func(t *testing.T, c *Client, _ *batchv1.Job) error {
				return c.Create(t.Context(), &batchv1.Job{ObjectMeta: named("j")})
			},
			apierrors.IsAlreadyExists},
		"a patch from an older version": {
			func(t *testing.T, c *Client, j *batchv1.Job) error {
				old := j.DeepCopy()
				changed := j.DeepCopy()
				changed.Labels = map[string]string{"a": "b"}
				must(t, c.Patch(t.Context(), changed.DeepCopy(), client.MergeFrom(j)))
				return c.Patch(t.Context(), changed, client.MergeFromWithOptions(old, client.MergeFromWithOptimisticLock{}))
			}, apierrors.IsConflict},
		"a delete of an earlier object of the name": {
			func(t *testing.T, c *Client, j *batchv1.Job) error {
				return c.Delete(t.Context(), j, client.Preconditions{UID: ptr.To(types.UID("another"))})
			}, apierrors.IsConflict},
		"a delete of an older version": {
			func(t *testing.T, c *Client, j *batchv1.Job) error {
				return c.Delete(t.Context(), j, client.Preconditions{ResourceVersion: ptr.To("0")})
			}, apierrors.IsConflict},
		"a delete of what is not there": {
			func(t *testing.T, c *Client, _ *batchv1.Job) error {
				return c.Delete(t.Context(), &batchv1.Job{ObjectMeta: named("k")})
			},
			apierrors.IsNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			_, api := given(t)
			if err := c.write(t, api, job(t, api)); !c.want(err) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestSpecAndStatusAreWrittenApart(t *testing.T) {
	s, c := given(t)
	j := job(t, c)
	both := j.DeepCopy()
	both.Spec.Parallelism, both.Status.Active = ptr.To[int32](2), 5
	must(t, c.Patch(t.Context(), both.DeepCopy(), client.MergeFrom(j)))
	live := s.Get("Job", client.ObjectKeyFromObject(j)).(*batchv1.Job)
	if *live.Spec.Parallelism != 2 || live.Status.Active != 0 || live.Generation != 2 {
		t.Errorf("through the object: parallelism %d, active %d, generation %d", *live.Spec.Parallelism, live.Status.Active, live.Generation)
	}
	both.Spec.Parallelism = ptr.To[int32](3)
	must(t, c.Status().Patch(t.Context(), both, client.MergeFrom(j)))
	live = s.Get("Job", client.ObjectKeyFromObject(j)).(*batchv1.Job)
	if *live.Spec.Parallelism != 2 || live.Status.Active != 5 || live.Generation != 2 {
		t.Errorf("through the status: parallelism %d, active %d, generation %d", *live.Spec.Parallelism, live.Status.Active, live.Generation)
	}
	before := s.RV()
	must(t, c.Status().Patch(t.Context(), live.DeepCopy(), client.MergeFrom(live)))
	if s.RV() != before {
		t.Error("a patch that changes nothing is no change")
	}
}

func TestDeletesTakeTheirTime(t *testing.T) {
	s, c := given(t)
	pod := &corev1.Pod{ObjectMeta: named("p"), Spec: corev1.PodSpec{NodeName: "n"}}
	held := &batchv1.Job{ObjectMeta: named("j")}
	held.Finalizers = []string{"x/y"}
	must(t, c.Create(t.Context(), pod))
	must(t, c.Create(t.Context(), held))
	must(t, c.Delete(t.Context(), pod))
	must(t, c.Delete(t.Context(), held))
	if s.Get("Pod", client.ObjectKeyFromObject(pod)).GetDeletionTimestamp() == nil || s.Get("Job", client.ObjectKeyFromObject(held)) == nil {
		t.Fatal("the kubelet and the finalizer come first")
	}
	must(t, s.Remove("kubelet", pod, true))
	free := s.Get("Job", client.ObjectKeyFromObject(held)).DeepCopyObject().(*batchv1.Job)
	before := free.DeepCopy()
	free.Finalizers = nil
	must(t, c.Patch(t.Context(), free, client.MergeFrom(before)))
	if len(s.List("Pod"))+len(s.List("Job")) > 0 {
		t.Error("both are free to go")
	}
}

func TestOrphansAreThoseWhoseOwnersAreGone(t *testing.T) {
	s, c := given(t)
	owner := job(t, c)
	child := &corev1.Pod{ObjectMeta: named("p")}
	child.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, batchv1.SchemeGroupVersion.WithKind("Job"))}
	must(t, c.Create(t.Context(), child))
	if len(s.Orphans()) != 0 {
		t.Error("the owner is there")
	}
	must(t, c.Delete(t.Context(), owner))
	must(t, c.Create(t.Context(), &batchv1.Job{ObjectMeta: named("j")}))
	if len(s.Orphans()) != 1 {
		t.Error("another object under the owner's name is another object")
	}
}

func TestAnApplyDropsWhatIsNotWantedAnyMore(t *testing.T) {
	s, c := given(t)
	apply := func(ports ...string) {
		t.Helper()
		text := `{"apiVersion":"v1","kind":"Service","metadata":{"name":"s","namespace":"ns"},"spec":{"ports":[`
		for i, port := range ports {
			if i > 0 {
				text += ","
			}
			text += `{"name":"p` + port + `","port":` + port + `,"protocol":"TCP"}`
		}
		must(t, c.Patch(t.Context(), &corev1.Service{ObjectMeta: named("s")}, client.RawPatch(types.ApplyPatchType, []byte(text+"]}}")), client.FieldOwner("us")))
	}
	must(t, c.Create(t.Context(), &corev1.Service{ObjectMeta: named("s")}))
	apply("1", "2")
	apply("2")
	service := s.Get("Service", types.NamespacedName{Namespace: "ns", Name: "s"}).(*corev1.Service)
	if len(service.Spec.Ports) != 1 || service.Spec.Ports[0].Port != 2 || service.Spec.ClusterIP == "" {
		t.Errorf("got %+v", service.Spec)
	}
}

// heard collects what a handler is told.
func heard(c *Cache) *[]string {
	var told []string
	say := func(what string) func(any) {
		return func(object any) { told = append(told, what+" "+string(object.(client.Object).GetUID())) }
	}
	i, _ := c.GetInformer(context.Background(), &batchv1.Job{})
	_, _ = i.AddEventHandlerWithOptions(toolscache.ResourceEventHandlerFuncs{AddFunc: say("add"), DeleteFunc: say("delete"),
		UpdateFunc: func(_, after any) { say("update")(after) }}, toolscache.HandlerOptions{})
	return &told
}

func TestCachesLagAndMiss(t *testing.T) {
	s, c := given(t)
	slow, broken := NewCache(s, nil), NewCache(s, nil)
	toldSlow, toldBroken := heard(slow), heard(broken)
	j := job(t, c)
	broken.Deliver("Job")
	must(t, c.Delete(t.Context(), j))
	must(t, c.Create(t.Context(), &batchv1.Job{ObjectMeta: named("j")}))
	if err := slow.Get(t.Context(), client.ObjectKeyFromObject(j), &batchv1.Job{}); !apierrors.IsNotFound(err) || slow.Seen("Job", 1) {
		t.Errorf("the slow cache knows of nothing yet: %v", err)
	}
	for slow.Pending("Job") > 0 {
		slow.Deliver("Job")
	}
	broken.Relist("Job")
	if want := []string{"add job-j-1", "delete job-j-1", "add job-j-2"}; !slices.Equal(*toldSlow, want) {
		t.Errorf("the slow cache told %v, want %v", *toldSlow, want)
	}
	if want := []string{"add job-j-1", "update job-j-2"}; !slices.Equal(*toldBroken, want) {
		t.Errorf("the broken watch told %v, want %v", *toldBroken, want)
	}
	if !slow.Seen("Job", s.RV()) || !broken.Seen("Job", s.RV()) {
		t.Error("both know everything now")
	}
}

func TestListsOfMetadataHaveAVersion(t *testing.T) {
	s, c := given(t)
	j := job(t, c)
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(batchv1.SchemeGroupVersion.WithKind("JobList"))
	must(t, s.Live().List(t.Context(), list, client.InNamespace("ns")))
	if len(list.Items) != 1 || list.Items[0].UID != j.UID || list.ResourceVersion != "1" {
		t.Errorf("got %+v", list)
	}
}
