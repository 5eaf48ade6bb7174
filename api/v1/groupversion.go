package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of all kinds in this package.
const GroupName = "ray.io"

// Kinds of this group, as they stand in a manifest's "kind".
const (
	// KindRayCluster is one Ray cluster: a head and its groups of workers.
	KindRayCluster = "RayCluster"
	// KindRayJob is one Ray job together with the cluster that it runs on.
	KindRayJob = "RayJob"
	// KindRayService is a set of Ray Serve applications together with the cluster that serves them.
	KindRayService = "RayService"
	// KindRayCronJob creates a RayJob at each tick of a schedule.
	KindRayCronJob = "RayCronJob"
)

var (
	// GroupVersion is the group and version under which this package's kinds are served and stored.
	GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1"}

	// SchemeBuilder collects the functions that make a runtime.Scheme know the kinds of this package.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme registers the kinds of this package with a runtime.Scheme.
	// It fails only when the scheme already holds a different Go type under one of the names.
	AddToScheme = SchemeBuilder.AddToScheme
)

// Resource returns the group-qualified form of a plural resource name such as "rayclusters".
func Resource(resource string) schema.GroupResource {
	return GroupVersion.WithResource(resource).GroupResource()
}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&RayCluster{}, &RayClusterList{},
		&RayJob{}, &RayJobList{},
		&RayService{}, &RayServiceList{},
		&RayCronJob{}, &RayCronJobList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
