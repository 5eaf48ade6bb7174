// Package rayjob tests, on a real API server and with a scripted dashboard, that a RayJob behaves as clients know it from
// KubeRay, or better on purpose. Each case has a number; docs/compatibility.md is made from their list.
package rayjob
