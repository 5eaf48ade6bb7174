package create

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// Words of the CSI driver for Cloud Storage FUSE, as Google documents them: "Cloud Storage FUSE CSI driver reference" in
// the documentation of Google Kubernetes Engine.
const (
	fuseDriver           = "gcsfuse.csi.storage.gke.io"
	fuseVolume           = "cluster-storage"
	annotationFuse       = "gke-gcsfuse/volumes"
	annotationFuseCPU    = "gke-gcsfuse/cpu-limit"
	annotationFuseMemory = "gke-gcsfuse/memory-limit"
	annotationFuseDisk   = "gke-gcsfuse/ephemeral-storage-limit"
)

// mount puts the bucket into the first container of a template.
func (f *gcsFuse) mount(template *corev1.PodTemplateSpec) {
	template.Annotations = f.annotations()
	template.Spec.Volumes = append(template.Spec.Volumes, corev1.Volume{
		Name: fuseVolume,
		VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{
			Driver: fuseDriver, VolumeAttributes: f.attributes(),
		}},
	})
	container := &template.Spec.Containers[0]
	container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: fuseVolume, MountPath: f.MountPath})
}

// annotations ask GKE to add the container that serves the mount.
func (f *gcsFuse) annotations() map[string]string {
	annotations := map[string]string{annotationFuse: "true"}
	if f.Resources == nil {
		return annotations
	}
	for key, a := range map[string]amount{
		annotationFuseCPU:    f.Resources.CPU,
		annotationFuseMemory: f.Resources.Memory,
		annotationFuseDisk:   f.Resources.EphemeralStorage,
	} {
		if a != "" {
			annotations[key] = string(a)
		}
	}
	return annotations
}

func (f *gcsFuse) attributes() map[string]string {
	attributes := map[string]string{"bucketName": f.BucketName}
	if f.MountOptions != "" {
		attributes["mountOptions"] = f.MountOptions
	}
	for name, given := range map[string]*bool{
		"disableMetrics":                 f.DisableMetrics,
		"gcsfuseMetadataPrefetchOnMount": f.MetadataPrefetchOnMount,
		"skipCSIBucketAccessCheck":       f.SkipCSIBucketAccessCheck,
	} {
		if given != nil {
			attributes[name] = strconv.FormatBool(*given)
		}
	}
	return attributes
}
