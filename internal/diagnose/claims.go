package diagnose

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

const (
	// provisioning is how long the making of a volume may take.
	provisioning = 2 * time.Minute
	// annotationSelectedNode is set on a claim when the scheduler has chosen a node for its first Pod.
	annotationSelectedNode = "volume.kubernetes.io/selected-node"
	annotationDefaultClass = "storageclass.kubernetes.io/is-default-class"
	// noProvisioner is the provisioner of classes whose volumes are made by hand.
	noProvisioner = "kubernetes.io/no-provisioner"
)

// wanted are the claims that Pods of the snapshot use or are to use.
func (s *Snapshot) wanted() []*corev1.PersistentVolumeClaim {
	used := map[string]bool{}
	for _, r := range s.references() {
		if r.kind == kindClaim {
			used[r.name] = true
		}
	}
	for _, pod := range s.Pods {
		for _, name := range claimsOf(pod) {
			used[name] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(s.Claims), func(c *corev1.PersistentVolumeClaim) bool { return !used[c.Name] })
}

func claimsOf(pod *corev1.Pod) []string {
	var names []string
	for i := range pod.Spec.Volumes {
		volume := &pod.Spec.Volumes[i]
		switch {
		case volume.PersistentVolumeClaim != nil:
			names = append(names, volume.PersistentVolumeClaim.ClaimName)
		case volume.Ephemeral != nil:
			// Kubernetes names the claim of an ephemeral volume so.
			names = append(names, pod.Name+"-"+volume.Name)
		}
	}
	return names
}

func claimLost(s *Snapshot) []Finding {
	var findings []Finding
	for _, claim := range s.wanted() {
		if claim.Status.Phase != corev1.ClaimLost {
			continue
		}
		findings = append(findings, Finding{Reason: "ClaimLost", Object: kindClaim + " " + claim.Name,
			Message: fmt.Sprintf("its PersistentVolume %s is gone", claim.Spec.VolumeName),
			Cause: fmt.Sprintf("PersistentVolume %s, which PersistentVolumeClaim %s is bound to, was deleted, and its "+
				"data with it.", claim.Spec.VolumeName, claim.Name),
			Next: fmt.Sprintf("Delete PersistentVolumeClaim %s and create it anew; restore its data from a backup if "+
				"you need it.", claim.Name)})
	}
	return findings
}

// pending are the wanted claims that have waited too long for a volume.
func (s *Snapshot) pending() []*corev1.PersistentVolumeClaim {
	return slices.DeleteFunc(s.wanted(), func(c *corev1.PersistentVolumeClaim) bool {
		return c.Status.Phase != corev1.ClaimPending || c.DeletionTimestamp != nil || s.youngerThan(c.CreationTimestamp, settling)
	})
}

func claimNoClass(s *Snapshot) []Finding {
	var findings []Finding
	for _, claim := range s.pending() {
		if why, next := s.classTrouble(claim); why != "" {
			findings = append(findings, Finding{Reason: "StorageClassNotFound", Object: kindClaim + " " + claim.Name, Message: why,
				Cause: fmt.Sprintf("Nothing makes a volume for PersistentVolumeClaim %s: %s.", claim.Name, why), Next: next})
		}
	}
	return findings
}

// classTrouble is why no class makes a volume for a claim, and what to do. It is empty when one may.
func (s *Snapshot) classTrouble(claim *corev1.PersistentVolumeClaim) (why, next string) {
	class := claim.Spec.StorageClassName
	fitting := fmt.Sprintf("create a PersistentVolume that fits PersistentVolumeClaim %s", claim.Name)
	switch {
	case s.StorageClasses == nil || claim.Spec.VolumeName != "":
		return "", ""
	case class == nil:
		isDefault := func(c *storagev1.StorageClass) bool { return c.Annotations[annotationDefaultClass] == "true" }
		if slices.ContainsFunc(s.StorageClasses, isDefault) {
			return "", ""
		}
		return "it names no StorageClass, and none is the default", fmt.Sprintf("Create PersistentVolumeClaim %s anew with "+
			"spec.storageClassName set "+
			"to one of those that \"kubectl get storageclass\" shows, or mark one of them as the default.", claim.Name)
	case *class == "":
		return "its spec.storageClassName is \"\", so it waits for a PersistentVolume made by hand",
			fmt.Sprintf("Either %s, or create the claim anew with the name of a StorageClass in "+
				"spec.storageClassName.", fitting)
	case named(s.StorageClasses, *class) == nil:
		return fmt.Sprintf("there is no StorageClass %s", *class),
			fmt.Sprintf("Create StorageClass %s, or create PersistentVolumeClaim %s anew with one that \"kubectl get "+
				"storageclass\" shows.", *class, claim.Name)
	}
	return "", ""
}

func claimPending(s *Snapshot) []Finding {
	var findings []Finding
	for _, claim := range s.pending() {
		if why, _ := s.classTrouble(claim); why != "" {
			continue
		}
		if why := s.provisionTrouble(claim); why != "" {
			findings = append(findings, Finding{Reason: "ClaimPending", Object: kindClaim + " " + claim.Name, Message: why,
				Cause: fmt.Sprintf("PersistentVolumeClaim %s has no volume: %s.", claim.Name, strings.TrimSuffix(why, ".")),
				Next:  s.pendingNext(claim)})
		}
	}
	return findings
}

// classOf is the StorageClass that a claim names, or nil.
func (s *Snapshot) classOf(claim *corev1.PersistentVolumeClaim) *storagev1.StorageClass {
	if claim.Spec.StorageClassName == nil {
		return nil
	}
	return named(s.StorageClasses, *claim.Spec.StorageClassName)
}

func byHand(class *storagev1.StorageClass) bool {
	return class != nil && class.Provisioner == noProvisioner
}

func (s *Snapshot) pendingNext(claim *corev1.PersistentVolumeClaim) string {
	if class := s.classOf(claim); byHand(class) {
		return fmt.Sprintf("Create a PersistentVolume of StorageClass %s that fits PersistentVolumeClaim %s, or create the claim anew with "+
			"a lower spec.resources.requests.storage.", class.Name, claim.Name)
	}
	return fmt.Sprintf("Read \"kubectl describe pvc %s\" and the log of the storage driver behind its "+
		"StorageClass; Pods that use the "+
		"claim start when it is Bound.", claim.Name)
}

// provisionTrouble is why a claim has no volume yet. That it waits for its first Pod is none. Where volumes are made by hand, an event
// says only that nothing makes them.
func (s *Snapshot) provisionTrouble(claim *corev1.PersistentVolumeClaim) string {
	class, failure := s.classOf(claim), s.provisionFailure(claim)
	waits := class != nil && class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer &&
		claim.Annotations[annotationSelectedNode] == ""
	young := s.youngerThan(claim.CreationTimestamp, provisioning)
	switch {
	case byHand(class) && (failure != "" || !waits && !young):
		return fmt.Sprintf("volumes of StorageClass %s are made by hand, and none fits", class.Name)
	case failure != "":
		return failure
	case class == nil, waits, young:
		return ""
	default:
		return fmt.Sprintf("provisioner %s of StorageClass %s does not answer", class.Provisioner, class.Name)
	}
}

// provisionFailure is what an event says about the making of a claim's volume, or empty.
func (s *Snapshot) provisionFailure(claim *corev1.PersistentVolumeClaim) string {
	for _, event := range s.eventsAbout(kindClaim, claim.Name) {
		if (event.Reason == "ProvisioningFailed" || event.Reason == "FailedBinding") && s.recent(&event) {
			return shortened(event.Message)
		}
	}
	return ""
}

// claimOnSeveralNodes is silent while all Pods run: there are drivers that allow more than the access mode says.
func claimOnSeveralNodes(s *Snapshot) []Finding {
	var findings []Finding
	for _, claim := range s.wanted() {
		nodes, stuck := s.usersOf(claim.Name)
		once := len(claim.Spec.AccessModes) > 0 && !slices.ContainsFunc(claim.Spec.AccessModes, func(m corev1.PersistentVolumeAccessMode) bool {
			return m == corev1.ReadWriteMany || m == corev1.ReadOnlyMany
		})
		if !once || len(nodes) < 2 || stuck == "" {
			continue
		}
		findings = append(findings, Finding{Reason: "ClaimOnSeveralNodes", Object: kindClaim + " " + claim.Name,
			Message: fmt.Sprintf("access mode %s, and Pods that use it are on nodes %s; Pod %s "+
				"cannot start", claim.Spec.AccessModes[0], list(nodes), stuck),
			Cause: fmt.Sprintf("PersistentVolumeClaim %s can be used on one node at a time, and Pods that use it are on "+
				"nodes %s.",
				claim.Name, list(nodes)),
			Next: fmt.Sprintf("Use a claim with the access mode ReadWriteMany in the Pod templates in place of %s, or "+
				"bring all its Pods to one node "+
				"with nodeSelector or podAffinity.", claim.Name)})
	}
	return findings
}

// usersOf are the nodes on which living Pods use a claim, and one of those Pods that has not started, if there is one.
func (s *Snapshot) usersOf(claim string) (nodes []string, stuck string) {
	for _, pod := range s.Pods {
		if stageOf(pod) != living || pod.Spec.NodeName == "" || !slices.Contains(claimsOf(pod), claim) {
			continue
		}
		nodes = append(nodes, pod.Spec.NodeName)
		waits := pod.Status.Phase == corev1.PodPending && !s.youngerThan(pod.CreationTimestamp, settling)
		if waits && (stuck == "" || pod.Name < stuck) {
			stuck = pod.Name
		}
	}
	slices.Sort(nodes)
	return slices.Compact(nodes), stuck
}

func storageNotReady(s *Snapshot) []Finding {
	var findings []Finding
	for _, cluster := range s.settled() {
		o := clusterObject(cluster)
		c := o.condition(rayv1.ConditionStorageReady, metav1.ConditionFalse)
		if c == nil || s.youngerThan(c.LastTransitionTime, settling) {
			continue
		}
		findings = append(findings, Finding{Reason: c.Reason, Object: o.String(), Message: oneLine(c.Message),
			Cause: fmt.Sprintf("The volume on which the head of %s keeps its state is not as "+
				"spec.gcsFaultToleranceOptions.storage asks for.", o),
			Next: fmt.Sprintf("Compare the claim that the message names with spec.gcsFaultToleranceOptions.storage of %s; "+
				"if another cluster uses it, "+
				"give each its own claim.", o)})
	}
	return findings
}
