package get

import (
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
)

func clusterSource() source[*rayv1.RayCluster] {
	return source[*rayv1.RayCluster]{
		what:   string(kube.RayCluster),
		object: func() *rayv1.RayCluster { return &rayv1.RayCluster{} },
		list:   func() client.ObjectList { return &rayv1.RayClusterList{} },
	}
}

func clusters() view[*rayv1.RayCluster] {
	return view[*rayv1.RayCluster]{
		source:  clusterSource(),
		kind:    kube.RayCluster,
		word:    "cluster",
		short:   "List Ray clusters",
		columns: clusterColumns,
	}
}

// clusterColumns has the namespace in every case, because scripts count columns.
func clusterColumns(now time.Time) []column[*rayv1.RayCluster] {
	type cluster = *rayv1.RayCluster
	return []column[cluster]{
		{name: "NAME", cell: nameOf[cluster]},
		{name: namespaceColumn, cell: func(c cluster) string { return c.Namespace }},
		{name: "DESIRED WORKERS", cell: func(c cluster) string { return strconv.Itoa(int(c.Status.DesiredWorkerReplicas)) }},
		{name: "AVAILABLE WORKERS", cell: func(c cluster) string { return strconv.Itoa(int(c.Status.AvailableWorkerReplicas)) }},
		{name: "CPUS", cell: func(c cluster) string { return c.Status.DesiredCPU.String() }},
		{name: "GPUS", cell: func(c cluster) string { return c.Status.DesiredGPU.String() }},
		{name: "TPUS", cell: func(c cluster) string { return c.Status.DesiredTPU.String() }},
		{name: "MEMORY", cell: func(c cluster) string { return c.Status.DesiredMemory.String() }},
		{name: "CONDITION", cell: condition},
		{name: "STATUS", cell: func(c cluster) string { return string(c.Status.State) }},
		{name: "AGE", cell: ageOf[cluster](now)},
		{name: "RAY VERSION", cell: func(c cluster) string { return orNone(c.Spec.RayVersion) }, wide: true},
		{name: "HEAD POD IP", cell: func(c cluster) string { return orNone(c.Status.Head.PodIP) }, wide: true},
		{name: "HEAD SERVICE IP", cell: func(c cluster) string { return orNone(c.Status.Head.ServiceIP) }, wide: true},
	}
}

// condition is the first of these conditions that is True, as in KubeRay's plugin. Clusters of either operator have them.
func condition(cluster *rayv1.RayCluster) string {
	for _, kind := range []string{
		rayv1.ConditionRayClusterProvisioned,
		rayv1.ConditionHeadPodReady,
		rayv1.ConditionReplicaFailure,
		rayv1.ConditionRayClusterSuspended,
		rayv1.ConditionRayClusterSuspending,
	} {
		if meta.IsStatusConditionTrue(cluster.Status.Conditions, kind) {
			return kind
		}
	}
	return ""
}

func orNone(text string) string {
	if text == "" {
		return none
	}
	return text
}
