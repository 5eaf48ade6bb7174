package raycluster

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
)

// defaultClaimSize is the size of the claim where the spec names none.
const defaultClaimSize = "1Gi"

// claimName is the name of the claim on which the GCS of a cluster keeps its state: a given one, or "<cluster>-gcs-pvc".
func claimName(cluster *rayv1.RayCluster) string {
	if given := givenClaim(cluster); given != "" {
		return given
	}
	return cluster.Name + "-gcs-pvc"
}

// givenClaim is the name of a claim of the user, or empty when the claim is ours to make.
func givenClaim(cluster *rayv1.RayCluster) string { return storageOf(cluster).ClaimName }

func storageOf(cluster *rayv1.RayCluster) rayv1.GcsEmbeddedStorage {
	if !embedded(cluster) {
		return rayv1.GcsEmbeddedStorage{}
	}
	return ptr.Deref(cluster.Spec.GcsFaultToleranceOptions.Storage, rayv1.GcsEmbeddedStorage{})
}

// gcsClaim is the claim that the operator makes. One that outlives its cluster has no owner.
func gcsClaim(cluster *rayv1.RayCluster) *corev1.PersistentVolumeClaim {
	storage := storageOf(cluster)
	claim := &corev1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: kindClaim},
		ObjectMeta: ownedMeta(cluster, claimName(cluster)),
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      storage.AccessModes,
			StorageClassName: storage.StorageClassName,
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceStorage: ptr.Deref(storage.Size, resource.MustParse(defaultClaimSize))}},
		},
	}
	if len(claim.Spec.AccessModes) == 0 {
		claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	}
	if keepsClaim(cluster) {
		claim.OwnerReferences = nil
	}
	return claim
}

func keepsClaim(cluster *rayv1.RayCluster) bool {
	return ptr.Deref(storageOf(cluster).DeletionPolicy, rayv1.GCSStorageDeleteWithCluster) == rayv1.GCSStorageRetain
}

// claim makes the claim, and lets it go with the cluster, or not, as the spec says. A claim of that name that is there already
// is used, whoever made it: that is how a new cluster takes over the state of an earlier one.
func (p *planner) claim() {
	if !embedded(p.cluster) {
		return
	}
	name := claimName(p.cluster)
	live, _ := p.snapshot.standing(kindClaim, name).(*corev1.PersistentVolumeClaim)
	switch {
	case givenClaim(p.cluster) != "" && live == nil:
		p.storage = troubled(rayv1.ReasonClaimMissing, "PersistentVolumeClaim %s, which the spec names, does not exist: the head cannot start", name)
	case givenClaim(p.cluster) != "":
	case live == nil:
		create := action.Create{
			Object: gcsClaim(p.cluster), Group: objectKey(kindClaim, name), Why: "the GCS keeps its state on it",
			Done:   action.Normal("CreatedPVC", "Create", "created PersistentVolumeClaim"),
			Failed: action.Warning("FailedToCreatePVC", "Create", "cannot make the PersistentVolumeClaim for the state of the GCS"),
		}
		if !p.held(create.Key()) {
			p.do(create)
		}
		p.storage = troubled(rayv1.ReasonClaimMissing, "PersistentVolumeClaim %s is not there yet", name)
	default:
		p.own(live)
		if differences := claimDiffers(live, gcsClaim(p.cluster)); differences != "" {
			p.storage = troubled(rayv1.ReasonClaimDiffers, "PersistentVolumeClaim %s is used as it is: %s", name, differences)
		}
	}
	p.otherwiseInUse(name)
	if p.storage.Status != "" {
		p.again(collisionPause) // a claim, or a Pod, of others wakes nobody
	}
}

// otherwiseInUse looks whether a Pod of another cluster, or of an earlier one of this name, may still write to the claim.
func (p *planner) otherwiseInUse(name string) {
	for _, other := range p.snapshot.Heads {
		if metav1.IsControlledBy(other, p.cluster) || ended(other) || !mounts(other, name) {
			continue
		}
		p.storage = troubled(rayv1.ReasonClaimInUse,
			"PersistentVolumeClaim %s is mounted by Pod %s of another cluster: two heads on one volume would destroy what is on it", name, other.Name)
	}
}

func troubled(reason, format string, args ...any) metav1.Condition {
	return metav1.Condition{Status: metav1.ConditionFalse, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// own makes the claim go with the cluster, or stay, as the spec says.
func (p *planner) own(live *corev1.PersistentVolumeClaim) {
	owner := metav1.GetControllerOf(live)
	changed := live.DeepCopy()
	var why string
	switch keep := keepsClaim(p.cluster); {
	case live.DeletionTimestamp != nil:
		return
	case keep && owner != nil && owner.UID == p.cluster.UID:
		changed.OwnerReferences = slices.DeleteFunc(changed.OwnerReferences,
			func(r metav1.OwnerReference) bool { return r.UID == p.cluster.UID })
		why = "it is to outlive the cluster"
	case !keep && owner == nil:
		changed.OwnerReferences = append(changed.OwnerReferences, ownerReferences(p.cluster)...)
		why = "it is to go with the cluster"
	default:
		return
	}
	update := action.Update{Object: changed, Base: live, Why: why,
		Failed: action.Warning("FailedToCreatePVC", "Update", "cannot change the owner of the PersistentVolumeClaim")}
	if !p.held(update.Key()) {
		p.do(update)
	}
}

// claimDiffers says in what a claim differs from what the spec asks for, or is empty. What the spec leaves open does not count.
func claimDiffers(live, want *corev1.PersistentVolumeClaim) string {
	size, asked := live.Spec.Resources.Requests[corev1.ResourceStorage], want.Spec.Resources.Requests[corev1.ResourceStorage]
	switch {
	case size.Cmp(asked) != 0:
		return fmt.Sprintf("it asks for %s of storage, the spec for %s", size.String(), asked.String())
	case !equality.Semantic.DeepEqual(live.Spec.AccessModes, want.Spec.AccessModes):
		return fmt.Sprintf("its access modes are %v, those of the spec are %v", live.Spec.AccessModes, want.Spec.AccessModes)
	case want.Spec.StorageClassName != nil && ptr.Deref(live.Spec.StorageClassName, "") != *want.Spec.StorageClassName:
		return fmt.Sprintf("its storage class is %q, that of the spec is %q", ptr.Deref(live.Spec.StorageClassName, ""), *want.Spec.StorageClassName)
	}
	return ""
}

func mounts(pod *corev1.Pod, claim string) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim
	})
}

// sharesClaim tells whether a head would write to a volume on which another one is.
func (p *planner) sharesClaim() bool { return p.storage.Reason == rayv1.ReasonClaimInUse }

// storageReady says whether the volume of the GCS is as the spec asks for; it is there only where one is asked for.
func (p *planner) storageReady(st *rayv1.RayClusterStatus) []action.Event {
	if !embedded(p.cluster) {
		condition := rayv1.ConditionStorageReady
		st.Conditions = slices.DeleteFunc(st.Conditions, func(c metav1.Condition) bool { return c.Type == condition })
		return nil
	}
	c := p.storage
	if c.Status == "" {
		c = metav1.Condition{Status: metav1.ConditionTrue, Reason: rayv1.ReasonClaimReady,
			Message: fmt.Sprintf("PersistentVolumeClaim %s keeps the state of the GCS", claimName(p.cluster))}
	}
	c.Type = rayv1.ConditionStorageReady
	changed := p.set(st, c)
	if !changed || c.Status == metav1.ConditionTrue || c.Reason == rayv1.ReasonClaimMissing && givenClaim(p.cluster) == "" {
		return nil
	}
	return []action.Event{*action.Warning("FailedToCreatePVC", "Validate", c.Message)}
}
