package operator

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/heliostat-io/heliostat/internal/config"
	"github.com/heliostat-io/heliostat/internal/raycluster"
	"github.com/heliostat-io/heliostat/internal/rayjob"
)

// clusterSettings picks what shapes the objects of RayClusters. The mapper tells whether Kubernetes is OpenShift.
func clusterSettings(cfg config.Config, version string, mapper meta.RESTMapper) (raycluster.Settings, error) {
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
		OperatorVersion:          version,
		DefaultContainerEnvs:     cfg.DefaultContainerEnvs,
		DefaultPodLabels:         cfg.DefaultPodLabels,
		DefaultPodAnnotations:    cfg.DefaultPodAnnotations,
		HeadSidecarContainers:    cfg.HeadSidecarContainers,
		WorkerSidecarContainers:  cfg.WorkerSidecarContainers,
	}, nil
}

// jobSettings picks what matters to RayJobs.
func jobSettings(cfg config.Config) rayjob.Settings {
	return rayjob.Settings{
		ClusterDomain:        cfg.Environment.ClusterDomain,
		LoginShell:           cfg.Environment.LoginShell,
		DeleteJobAfterFinish: cfg.Environment.DeleteRayJobAfterFinish,
		StatusCheckTimeout:   cfg.Environment.RayJobStatusCheckTimeout,
		TransitionGrace:      cfg.Environment.RayJobTransitionGrace,
		DeletionPolicy:       cfg.FeatureGates.Enabled(config.RayJobDeletionPolicy),
	}
}
