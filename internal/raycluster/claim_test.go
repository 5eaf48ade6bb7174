package raycluster

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// withVolume is a new cluster that keeps its state on a volume.
func withVolume(edits ...func(*rayv1.GcsEmbeddedStorage)) *world {
	return demo(func(w *world) {
		onVolume(edits...)(w.Cluster)
		w.settings.EmbeddedStorage = true
		w.Cluster.Spec.WorkerGroupSpecs = nil
	})
}

func retained(s *rayv1.GcsEmbeddedStorage) { s.DeletionPolicy = ptr.To(rayv1.GCSStorageRetain) }
func named(s *rayv1.GcsEmbeddedStorage)    { s.ClaimName = "mine" }

func (w *world) claim(name string) *corev1.PersistentVolumeClaim {
	claim, _ := w.standing(kindClaim, name).(*corev1.PersistentVolumeClaim)
	return claim
}

// has puts a claim there that the cluster does not own.
func (w *world) has(name string, edits ...func(*corev1.PersistentVolumeClaim)) {
	claim := gcsClaim(w.Cluster)
	claim.Name, claim.OwnerReferences = name, nil
	for _, edit := range edits {
		edit(claim)
	}
	w.Named[objectKey(kindClaim, name)] = claim
}

func headOn(claim, owner string, phase corev1.PodPhase) *corev1.Pod {
	pod := headOf(demoCluster(onVolume(func(s *rayv1.GcsEmbeddedStorage) { s.ClaimName = claim })))
	pod.Name, pod.OwnerReferences[0].UID, pod.Status.Phase = owner+"-head", "u-other", phase
	return pod
}

func TestPlanOfTheClaim(t *testing.T) {
	for name, tc := range map[string]struct {
		given *world
		when  func(*world)
		want  []string
		// reason is that of condition StorageReady.
		reason, message string
		events          int
	}{
		"a claim is made, owned by the cluster (CL-081)": {given: withVolume(), want: []string{"apply demo-head-svc", "create demo-gcs-pvc", "create head"},
			reason: rayv1.ReasonClaimMissing, message: "is not there yet"},
		"one that is there is used, and goes with the cluster": {given: withVolume(), when: func(w *world) { w.has("demo-gcs-pvc") },
			want: []string{"apply demo-head-svc", "update demo-gcs-pvc", "create head"}, reason: rayv1.ReasonClaimReady},
		"one that is there is used, and stays": {given: withVolume(retained), when: func(w *world) { w.has("demo-gcs-pvc") },
			want: []string{"apply demo-head-svc", "create head"}, reason: rayv1.ReasonClaimReady},
		"one of another owner is left to it": {given: withVolume(), when: func(w *world) {
			w.has("demo-gcs-pvc", func(c *corev1.PersistentVolumeClaim) {
				c.OwnerReferences = []metav1.OwnerReference{{UID: "u-9", Controller: ptr.To(true)}}
			})
		}, want: []string{"apply demo-head-svc", "create head"}, reason: rayv1.ReasonClaimReady},
		"one of another size is used as it is, and told": {given: withVolume(), when: func(w *world) {
			w.has("demo-gcs-pvc", func(c *corev1.PersistentVolumeClaim) {
				c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("7Gi")}
			})
		}, want: []string{"apply demo-head-svc", "update demo-gcs-pvc", "create head"}, reason: rayv1.ReasonClaimDiffers, events: 1,
			message: "it asks for 7Gi of storage, the spec for 1Gi"},
		"a class that the spec leaves open does not count": {given: withVolume(retained), when: func(w *world) {
			w.has("demo-gcs-pvc", func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = ptr.To("default") })
		}, want: []string{"apply demo-head-svc", "create head"}, reason: rayv1.ReasonClaimReady},
		"a given claim that is missing (CL-083)": {given: withVolume(named), want: []string{"apply demo-head-svc", "create head"},
			reason: rayv1.ReasonClaimMissing, events: 1, message: "mine, which the spec names, does not exist"},
		"a given claim is used": {given: withVolume(named), when: func(w *world) { w.has("mine") },
			want: []string{"apply demo-head-svc", "create head"}, reason: rayv1.ReasonClaimReady},
		"a head of another cluster is on it": {given: withVolume(named), when: func(w *world) {
			w.has("mine")
			w.Heads = []*corev1.Pod{headOn("mine", "other", corev1.PodRunning)}
		}, want: []string{"apply demo-head-svc"}, reason: rayv1.ReasonClaimInUse, events: 1, message: "Pod other-head of another cluster"},
		"a head of another cluster that has ended is not": {given: withVolume(named), when: func(w *world) {
			w.has("mine")
			w.Heads = []*corev1.Pod{headOn("mine", "other", corev1.PodFailed), headOn("else", "third", corev1.PodRunning)}
		}, want: []string{"apply demo-head-svc", "create head"}, reason: rayv1.ReasonClaimReady},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.when != nil {
				tc.when(tc.given)
			}
			plan := Plan(tc.given.Snapshot, tc.given.settings, planNow)
			c := meta.FindStatusCondition(plan.Status.Object.(*rayv1.RayCluster).Status.Conditions, rayv1.ConditionStorageReady)
			if c == nil || c.Reason != tc.reason || !strings.Contains(c.Message, tc.message) {
				t.Errorf("condition StorageReady is %v", c)
			}
			if len(plan.Events) != tc.events {
				t.Errorf("events are %v, want %d", plan.Events, tc.events)
			}
			if d := cmp.Diff(tc.want, tc.given.pass(planNow)); d != "" {
				t.Errorf("actions (-want +got):\n%s", d)
			}
		})
	}
}

func TestTheClaimIsAsTheSpecAsks(t *testing.T) {
	plain, rich := withVolume(), withVolume(retained, func(s *rayv1.GcsEmbeddedStorage) {
		s.Size, s.StorageClassName = ptr.To(resource.MustParse("5Gi")), ptr.To("fast")
		s.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
	})
	plain.pass(planNow)
	rich.pass(planNow)
	first, second := plain.claim("demo-gcs-pvc"), rich.claim("demo-gcs-pvc")
	if !metav1.IsControlledBy(first, plain.Cluster) || first.Spec.AccessModes[0] != corev1.ReadWriteOnce ||
		first.Spec.Resources.Requests.Storage().String() != "1Gi" || first.Spec.StorageClassName != nil {
		t.Errorf("by default the claim is %+v", first)
	}
	if len(second.OwnerReferences) != 0 || second.Spec.AccessModes[0] != corev1.ReadWriteOncePod ||
		second.Spec.Resources.Requests.Storage().String() != "5Gi" || *second.Spec.StorageClassName != "fast" {
		t.Errorf("with all options (CL-082) the claim is %+v", second)
	}
}

func TestAClaimIsNeverDeleted(t *testing.T) {
	w := withVolume()
	w.pass(planNow)
	w.Cluster.Spec.GcsFaultToleranceOptions = nil
	w.pass(planNow.Add(time.Minute))
	w.Cluster.Spec.Suspend = ptr.To(true)
	w.pass(planNow.Add(2 * time.Minute))
	if w.claim("demo-gcs-pvc") == nil {
		t.Error("the claim, and the state on it, is gone")
	}
}

func TestAnOwnerIsTakenFromAClaimThatIsToStay(t *testing.T) {
	w := withVolume()
	w.pass(planNow)
	retained(w.Cluster.Spec.GcsFaultToleranceOptions.Storage)
	w.pass(planNow.Add(time.Minute))
	if owners := w.claim("demo-gcs-pvc").OwnerReferences; len(owners) != 0 {
		t.Errorf("owners are %v", owners)
	}
}

func TestNoFinalizerForAVolume(t *testing.T) {
	w := withVolume()
	for range 3 {
		w.pass(planNow)
	}
	if len(w.Cluster.Finalizers) > 0 || len(w.Cluster.Status.RedisStorages) > 0 {
		t.Errorf("finalizers are %v, storages %v", w.Cluster.Finalizers, w.Cluster.Status.RedisStorages)
	}
}
