// Package v1alpha1 holds the frozen version v1alpha1 of the API group ray.io: RayCluster, RayJob and RayService.
//
// It is deprecated and served for old manifests alone. Objects are stored as v1, and no field is converted: reading or
// writing an object through this version drops what only v1 knows. The operator never reads it, and it does not change.
//
// +kubebuilder:object:generate=true
// +groupName=ray.io
package v1alpha1
