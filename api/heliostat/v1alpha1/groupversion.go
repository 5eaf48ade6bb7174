package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is the group and version under which this package's kinds are served and stored.
	GroupVersion = schema.GroupVersion{Group: "heliostat.io", Version: "v1alpha1"}

	// SchemeBuilder collects the functions that make a runtime.Scheme know the kinds of this package.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme registers the kinds of this package with a runtime.Scheme.
	// It fails only when the scheme already holds a different Go type under one of the names.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Holder{}, &HolderList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
