package rayservice

import (
	"strconv"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/raycluster"
)

// clusterName is "<rayservice>-<five characters>". The ending follows from the RayService's UID and the number of clusters
// that were chosen for it so far; it is recorded in the status before the cluster is made.
func clusterName(service *rayv1.RayService) string {
	incarnation := strconv.Itoa(int(service.Status.ClusterIncarnations))
	return service.Name + "-" + raycluster.NameSuffix(string(service.UID), "cluster", incarnation)
}

// headServiceName is the Service that leads to the head of the active cluster.
func headServiceName(service *rayv1.RayService) string { return service.Name + "-head-svc" }

// serveServiceName is the Service that leads to Serve on the active cluster.
func serveServiceName(service *rayv1.RayService) string {
	if custom := service.Spec.ServeService; custom != nil && custom.Name != "" {
		return custom.Name
	}
	return raycluster.ServeServiceName(service.Name)
}

// gatewayName and routeName are what a step by step take-over sends traffic through.
func gatewayName(service *rayv1.RayService) string { return service.Name + "-gateway" }
func routeName(service *rayv1.RayService) string   { return service.Name + "-httproute" }
