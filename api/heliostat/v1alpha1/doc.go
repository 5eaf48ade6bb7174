// Package v1alpha1 holds the kinds of Heliostat's own API group, heliostat.io. They serve the operator itself; users of
// Ray never write them.
//
// +kubebuilder:object:generate=true
// +groupName=heliostat.io
package v1alpha1
