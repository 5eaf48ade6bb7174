// Package rayservice tests, on a real API server and with scripted dashboards and Serve proxies, that a RayService behaves as
// clients know it from KubeRay, or better on purpose. Each case has a number; docs/compatibility.md is made from their list.
package rayservice
