// Package v1 holds the types of the API group ray.io, version v1: RayCluster, RayJob, RayService and RayCronJob.
//
// The wire format is the one that Ray users know from KubeRay: every manifest written for ray.io/v1 is read
// unchanged. Fields and conditions that exist only here are listed in additions.md beside this file.
//
// The package depends on Kubernetes API types alone, so that clients can import it without pulling in a controller.
//
// +kubebuilder:object:generate=true
// +groupName=ray.io
package v1
