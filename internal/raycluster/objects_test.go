package raycluster

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
)

// all asks for one object of each kind.
func all(w *world) {
	autoscaled()(w.Cluster)
	w.Cluster.Annotations = map[string]string{rayv1.AnnotationEnableServeService: "true"}
	w.Cluster.Spec.RayVersion = "2.52.0"
	w.Cluster.Spec.AuthOptions = &rayv1.AuthOptions{Mode: rayv1.AuthModeToken}
	w.Cluster.Spec.HeadGroupSpec.EnableIngress = ptr.To(true)
}

func (w *world) owned(kind, name string) client.Object {
	for _, object := range w.Owned {
		if kindOf(object) == kind && object.GetName() == name {
			return object
		}
	}
	panic("no " + kind + " " + name)
}

// foreign puts an object of somebody else under a name.
func (w *world) foreign(kind string, object client.Object) {
	w.Named[objectKey(kind, object.GetName())] = withKind(object, kind)
}

// settled is a cluster that has made everything it wants.
func settled(edits ...func(*world)) *world {
	w := ready(edits...)
	for range 3 {
		w.pass(planNow)
		w.makeReady(w.Pods...)
	}
	return w
}

// steps are what a pass does to objects other than Pods.
func (w *world) steps() []string {
	steps := w.pass(planNow)
	steps = slices.DeleteFunc(steps, func(step string) bool {
		return strings.HasPrefix(step, "create ") || strings.Contains(step, "/") || step == "delete head"
	})
	slices.Sort(steps)
	return steps
}

func TestObjectsAreKeptAsWanted(t *testing.T) {
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	for name, tc := range map[string]struct {
		given *world
		when  func(*world)
		want  []string
		// collisions are what the plan says about objects of others.
		collisions []string
	}{
		"a new cluster gets all that it asks for": {given: demo(all),
			want: []string{"apply demo", "apply demo", "apply demo", "apply demo-head-ingress", "apply demo-head-svc", "apply demo-serve-svc", "make token demo"}},
		"at rest there is nothing to do": {given: settled(all)},
		"what is switched off goes": {given: settled(all), when: func(w *world) {
			w.Cluster.Annotations = nil
			w.Cluster.Spec.HeadGroupSpec.EnableIngress = nil
		}, want: []string{"delete demo-head-ingress", "delete demo-serve-svc"}},
		"without the autoscaler its rights go, and its account when no Pod has it": {given: settled(all), when: func(w *world) {
			w.Cluster.Spec.EnableInTreeAutoscaling = nil
		}, want: []string{"delete demo", "delete demo"}},
		"without authentication the token stays while a Pod has it": {given: settled(all), when: func(w *world) {
			w.Cluster.Spec.AuthOptions = nil
		}},
		"without authentication the token goes with the last Pod that has it": {given: settled(all), when: func(w *world) {
			w.Cluster.Spec.AuthOptions, w.Pods = nil, nil
		}, want: []string{"delete demo"}},
		"a renamed head Service is made, and the old one stays for the workers that know it": {given: settled(), when: func(w *world) {
			w.Cluster.Spec.HeadGroupSpec.HeadService = &corev1.Service{ObjectMeta: named("mine")}
		}, want: []string{"apply mine"}},
		"a renamed head Service goes when no worker knows it": {given: settled(), when: func(w *world) {
			w.Cluster.Spec.HeadGroupSpec.HeadService = &corev1.Service{ObjectMeta: named("mine")}
			w.Pods = nil
		}, want: []string{"apply mine", "delete demo-head-svc"}},
		"a headless Service that must not be headless is made anew": {given: settled(), when: func(w *world) {
			w.Cluster.Spec.HeadGroupSpec.ServiceType = corev1.ServiceTypeNodePort
		}, want: []string{"delete demo-head-svc"}},
		"a Service that must be headless is made anew": {given: settled(func(w *world) {
			w.Cluster.Spec.HeadGroupSpec.ServiceType = corev1.ServiceTypeNodePort
		}), when: func(w *world) {
			w.owned(kindService, "demo-head-svc").(*corev1.Service).Spec.ClusterIP = "10.0.0.7"
			w.Cluster.Spec.HeadGroupSpec.ServiceType = ""
		}, want: []string{"delete demo-head-svc"}},
		"what another controller made for the cluster, and gave to it, is left alone": {given: settled(), when: func(w *world) {
			w.own(withKind(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "oauth", OwnerReferences: ownerReferences(w.Cluster)}}, kindService))
		}},
		"what KubeRay made and nobody wants goes": {given: settled(), when: func(w *world) {
			w.own(withKind(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "demo-serve-svc", OwnerReferences: ownerReferences(w.Cluster)}}, kindService))
		}, want: []string{"delete demo-serve-svc"}},
		"an object that goes is waited for": {given: settled(), when: func(w *world) {
			w.owned(kindService, "demo-head-svc").SetDeletionTimestamp(&metav1.Time{Time: planNow})
		}},
		"what others changed is put right": {given: settled(all), when: func(w *world) {
			role := w.owned(kindRole, "demo").(*rbacv1.Role)
			role.Rules = role.Rules[:1]
		}, want: []string{"apply demo"}},
		"what others added is left alone": {given: settled(all), when: func(w *world) {
			w.owned(kindIngress, "demo-head-ingress").SetLabels(map[string]string{"theirs": "1", "ray.io/cluster": "demo",
				"ray.io/identifier": "demo-head", "app.kubernetes.io/name": "kuberay", "app.kubernetes.io/created-by": "kuberay-operator"})
		}},
		"objects of others are left alone and told of, and everything else goes on": {given: demo(all, func(w *world) {
			w.foreign(kindService, &corev1.Service{ObjectMeta: named("demo-head-svc")})
			w.foreign(kindSecret, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "demo", OwnerReferences: []metav1.OwnerReference{
				{Kind: "RayCluster", Name: "demo", UID: "before", Controller: ptr.To(true)}}}})
		}), want: []string{"apply demo", "apply demo", "apply demo", "apply demo-head-ingress", "apply demo-serve-svc"},
			collisions: []string{
				"the cluster needs Service demo-head-svc, but one of that name exists already and has no owner",
				"the cluster needs Secret demo, but one of that name exists already and belongs to RayCluster demo (uid before)"}},
		"an object that was refused waits, and what the cache does not show is told of": {given: demo(func(w *world) {
			autoscaled()(w.Cluster)
			w.Holds = map[string]action.Hold{
				"Service/demo-head-svc": {Reason: "FailedToCreateService", Until: planNow.Add(1)},
				"Role/demo":             {Collision: true, Until: planNow.Add(1)}}
		}), want: []string{"apply demo", "apply demo"},
			collisions: []string{"the cluster needs Role demo, but one of that name exists already and belongs to someone else"}},
		"the Service that a RayService has for each of its clusters is the RayService's": {given: settled(func(w *world) {
			w.Cluster.Labels = map[string]string{rayv1.LabelOriginatedFromKind: rayv1.KindRayService}
			w.own(withKind(&corev1.Service{ObjectMeta: named("demo-serve-svc")}, kindService))
		})},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.when != nil {
				tc.when(tc.given)
			}
			p := &planner{snapshot: tc.given.Snapshot, cluster: tc.given.Cluster, settings: tc.given.settings, now: planNow}
			p.objects()
			if d := cmp.Diff(tc.collisions, p.collisions); d != "" {
				t.Errorf("collisions (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tc.want, tc.given.steps()); d != "" {
				t.Errorf("writes (-want +got):\n%s", d)
			}
		})
	}
}

func TestEventsOfObjects(t *testing.T) {
	reasons := func(w *world) []string {
		var got []string
		for _, a := range Plan(w.Snapshot, w.settings, planNow).Actions {
			switch a := a.(type) {
			case action.Apply:
				got = append(got, a.Done.Reason+" or "+a.Failed.Reason)
			case action.Delete:
				got = append(got, a.Done.Reason+" or "+a.Failed.Reason)
			}
		}
		return got
	}
	if d := cmp.Diff([]string{"CreatedService or FailedToCreateService"}, reasons(demo())); d != "" {
		t.Errorf("of a new cluster (-want +got):\n%s", d)
	}
	w := settled(all)
	w.Cluster.Annotations = map[string]string{rayv1.AnnotationIngressClass: "nginx"}
	want := []string{"UpdatedIngress or FailedToUpdateIngress", "DeletedService or FailedToDeleteService"}
	if d := cmp.Diff(want, reasons(w)); d != "" {
		t.Errorf("of a changed one (-want +got):\n%s", d)
	}
}
