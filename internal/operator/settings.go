package operator

import (
	"github.com/heliostat-io/heliostat/internal/config"
	"github.com/heliostat-io/heliostat/internal/raycluster"
	"github.com/heliostat-io/heliostat/internal/rayjob"
)

// clusterSettings picks what shapes the objects of RayClusters.
func clusterSettings(cfg config.Config, version string) raycluster.Settings {
	env := cfg.Environment
	return raycluster.Settings{
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
	}
}

// jobSettings picks what matters to RayJobs.
func jobSettings(cfg config.Config) rayjob.Settings {
	return rayjob.Settings{
		ClusterDomain:        cfg.Environment.ClusterDomain,
		LoginShell:           cfg.Environment.LoginShell,
		DeleteJobAfterFinish: cfg.Environment.DeleteRayJobAfterFinish,
		StatusCheckTimeout:   cfg.Environment.RayJobStatusCheckTimeout,
	}
}
