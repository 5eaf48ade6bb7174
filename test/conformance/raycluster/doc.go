// Package raycluster tests, on a real API server, that a RayCluster behaves as clients know it from KubeRay, or better
// on purpose. Each case has a number; docs/compatibility.md is made from their list.
package raycluster
