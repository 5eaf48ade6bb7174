// Package metrics says in numbers what the objects say of themselves. Its series are made from the caches when they are
// asked for, so nothing is lost with a restart, and nothing is left of an object that is gone.
package metrics

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// scrapeLimit bounds one answer: a cache that is not filled yet would let it wait.
const scrapeLimit = 5 * time.Second

// Informer tells of changes of the objects of one kind.
type Informer interface {
	AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error)
}

// Clusters are the series about RayClusters. Those called kuberay_* are what dashboards for KubeRay expect. Only the
// replica that leads has series, so that sums over replicas are right.
type Clusters struct {
	reader  client.Reader
	leading func() bool
	log     logr.Logger

	info, provisioned, duration *prometheus.Desc
	provisioning                prometheus.Histogram
}

// NewClusters returns series about the RayClusters that reader lists.
func NewClusters(reader client.Reader, leading func() bool, log logr.Logger) *Clusters {
	labels := []string{"name", "namespace", "uid"}
	return &Clusters{
		reader: reader, leading: leading, log: log,
		info: prometheus.NewDesc("kuberay_cluster_info", "One for each RayCluster, with the kind that it was made for.",
			append(labels[:len(labels):len(labels)], "owner_kind"), nil),
		provisioned: prometheus.NewDesc("kuberay_cluster_condition_provisioned",
			"One for each RayCluster, with whether its condition RayClusterProvisioned is True.",
			append(labels[:len(labels):len(labels)], "condition"), nil),
		duration: prometheus.NewDesc("kuberay_cluster_provisioned_duration_seconds",
			"Time from the creation of a RayCluster until all its Pods were ready. After a suspend it is that of the last time, "+
				"and counts from the creation all the same.", labels, nil),
		provisioning: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "heliostat_cluster_provisioning_duration_seconds",
			Help: "Time from when a RayCluster was made, or was no longer suspended, until all its Pods were ready.",
			// From simulated Pods to large images on nodes that have to be bought first.
			Buckets: []float64{1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600},
		}),
	}
}

// Describe implements [prometheus.Collector].
func (c *Clusters) Describe(out chan<- *prometheus.Desc) {
	out <- c.info
	out <- c.provisioned
	out <- c.duration
	c.provisioning.Describe(out)
}

// Collect implements [prometheus.Collector].
func (c *Clusters) Collect(out chan<- prometheus.Metric) {
	c.provisioning.Collect(out)
	if !c.leading() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), scrapeLimit)
	defer cancel()
	clusters := &rayv1.RayClusterList{}
	if err := c.reader.List(ctx, clusters, client.UnsafeDisableDeepCopy); err != nil {
		c.log.Error(err, "Cannot list RayClusters for their metrics")
		return
	}
	for i := range clusters.Items {
		c.collect(out, &clusters.Items[i])
	}
}

func (c *Clusters) collect(out chan<- prometheus.Metric, cluster *rayv1.RayCluster) {
	gauge := func(desc *prometheus.Desc, value float64, more ...string) {
		labels := append([]string{cluster.Name, cluster.Namespace, string(cluster.UID)}, more...)
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	owner := cluster.Labels[rayv1.LabelOriginatedFromKind]
	if owner == "" {
		owner = "None"
	}
	gauge(c.info, 1, owner)
	condition := meta.FindStatusCondition(cluster.Status.Conditions, rayv1.ConditionRayClusterProvisioned)
	done := condition != nil && condition.Status == "True"
	gauge(c.provisioned, 1, strconv.FormatBool(done))
	if done {
		gauge(c.duration, condition.LastTransitionTime.Sub(cluster.CreationTimestamp.Time).Seconds())
	}
}

// Watch counts, into a histogram, how long each provisioning takes that ends from now on.
func (c *Clusters) Watch(informer Informer) error {
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(before, after any) {
		old, isCluster := before.(*rayv1.RayCluster)
		cluster, isAlso := after.(*rayv1.RayCluster)
		if isCluster && isAlso && c.leading() {
			c.observe(old, cluster)
		}
	}})
	if err != nil {
		return fmt.Errorf("watch RayClusters for their metrics: %w", err)
	}
	return nil
}

func (c *Clusters) observe(before, after *rayv1.RayCluster) {
	const kind = rayv1.ConditionRayClusterProvisioned
	done := meta.FindStatusCondition(after.Status.Conditions, kind)
	if before.UID != after.UID || meta.IsStatusConditionTrue(before.Status.Conditions, kind) || done == nil || done.Status != "True" {
		return
	}
	start := after.CreationTimestamp.Time
	resumed := meta.FindStatusCondition(after.Status.Conditions, rayv1.ConditionRayClusterSuspended)
	if resumed != nil && after.Status.StateTransitionTimes[rayv1.ClusterStateSuspended] != nil {
		start = resumed.LastTransitionTime.Time
	}
	c.provisioning.Observe(done.LastTransitionTime.Sub(start).Seconds())
}
