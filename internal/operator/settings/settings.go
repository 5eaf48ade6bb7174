// Package settings picks from the configuration of the operator what each controller depends on.
package settings

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/heliostat-io/heliostat/internal/config"
	"github.com/heliostat-io/heliostat/internal/raycluster"
	"github.com/heliostat-io/heliostat/internal/rayjob"
	"github.com/heliostat-io/heliostat/internal/rayservice"
)

// Clusters picks what shapes the objects of RayClusters. The mapper tells whether Kubernetes is OpenShift.
func Clusters(cfg config.Config, version string, mapper meta.RESTMapper) (raycluster.Settings, error) {
	env := cfg.Environment
	routes := !env.IngressOnOpenShift
	if routes {
		kind := raycluster.RouteKind()
		_, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil && !meta.IsNoMatchError(err) {
			return raycluster.Settings{}, fmt.Errorf("ask the API server for kind %s: %w", kind.GroupKind(), err)
		}
		routes = err == nil
	}
	return raycluster.Settings{
		Routes:                   routes,
		ClusterDomain:            env.ClusterDomain,
		InjectInitContainer:      env.InjectInitContainer,
		InjectProbes:             env.InjectProbes,
		LoginShell:               env.LoginShell,
		HeadClusterIPService:     env.HeadClusterIPService,
		DeterministicHeadPodName: env.DeterministicHeadPodName,
		RandomPodDelete:          env.RandomPodDelete,
		RedisCleanup:             env.GCSFTRedisCleanup,
		EmbeddedStorage:          cfg.FeatureGates.Enabled(config.GCSFaultToleranceEmbeddedStorage),
		OperatorVersion:          version,
		DefaultContainerEnvs:     cfg.DefaultContainerEnvs,
		DefaultPodLabels:         cfg.DefaultPodLabels,
		DefaultPodAnnotations:    cfg.DefaultPodAnnotations,
		HeadSidecarContainers:    cfg.HeadSidecarContainers,
		WorkerSidecarContainers:  cfg.WorkerSidecarContainers,
	}, nil
}

// Jobs picks what matters to RayJobs.
func Jobs(cfg config.Config) rayjob.Settings {
	return rayjob.Settings{
		ClusterDomain:        cfg.Environment.ClusterDomain,
		LoginShell:           cfg.Environment.LoginShell,
		DeleteJobAfterFinish: cfg.Environment.DeleteRayJobAfterFinish,
		StatusCheckTimeout:   cfg.Environment.RayJobStatusCheckTimeout,
		TransitionGrace:      cfg.Environment.RayJobTransitionGrace,
		DeletionPolicy:       cfg.FeatureGates.Enabled(config.RayJobDeletionPolicy),
	}
}

// Services picks what matters to RayServices.
func Services(cfg config.Config, clusters raycluster.Settings, gateways bool) rayservice.Settings {
	return rayservice.Settings{
		Clusters:      clusters,
		ZeroDowntime:  cfg.Environment.ZeroDowntime,
		Incremental:   cfg.FeatureGates.Enabled(config.RayServiceIncrementalUpgrade),
		GatewayAPI:    gateways,
		ProxiesByName: cfg.UseKubernetesProxy,
	}
}

// GatewayAPI tells whether Gateways and HTTPRoutes can be made. An API that is installed later is noticed with the next start.
func GatewayAPI(cfg config.Config, mapper meta.RESTMapper) (bool, error) {
	if !cfg.FeatureGates.Enabled(config.RayServiceIncrementalUpgrade) {
		return false, nil
	}
	for _, kind := range []string{"Gateway", "HTTPRoute"} {
		_, err := mapper.RESTMapping(schema.GroupKind{Group: gatewayv1.GroupName, Kind: kind}, gatewayv1.GroupVersion.Version)
		if meta.IsNoMatchError(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("ask the API server for kind %s of the Gateway API: %w", kind, err)
		}
	}
	return true, nil
}
