package metrics

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// Services are the series about RayServices. Those called kuberay_* are what dashboards for KubeRay expect. Only the replica
// that leads has series, so that sums over replicas are right.
type Services struct {
	reader  client.Reader
	leading func() bool
	clock   clock.PassiveClock
	log     logr.Logger

	info, ready, upgrading, age, switched *prometheus.Desc

	mu sync.Mutex
	// cutOvers is how often traffic moved since this process began to watch. The RayService itself remembers only the last.
	cutOvers map[types.UID]int
}

// NewServices returns series about the RayServices that reader lists.
func NewServices(reader client.Reader, leading func() bool, clock clock.PassiveClock, log logr.Logger) *Services {
	labels := []string{"name", "namespace", "uid"}
	withCondition := append(labels[:len(labels):len(labels)], "condition")
	return &Services{
		reader: reader, leading: leading, clock: clock, log: log, cutOvers: map[types.UID]int{},
		info:  prometheus.NewDesc("kuberay_service_info", "One for each RayService.", labels, nil),
		ready: prometheus.NewDesc("kuberay_service_condition_ready", "One for each RayService, with whether its condition Ready is True.", withCondition, nil),
		upgrading: prometheus.NewDesc("kuberay_service_condition_upgrade_in_progress",
			"One for each RayService, with whether its condition UpgradeInProgress is True.", withCondition, nil),
		age: prometheus.NewDesc("heliostat_rayservice_upgrade_age_seconds",
			"Time since a second cluster has been prepared to take over, for each RayService for which one is.", labels, nil),
		switched: prometheus.NewDesc("heliostat_rayservice_cutovers_total",
			"How often the traffic of a RayService moved from one cluster to another, or to its first one.", labels, nil),
	}
}

// Describe implements [prometheus.Collector].
func (s *Services) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{s.info, s.ready, s.upgrading, s.age, s.switched} {
		out <- desc
	}
}

// Collect implements [prometheus.Collector].
func (s *Services) Collect(out chan<- prometheus.Metric) {
	if !s.leading() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), scrapeLimit)
	defer cancel()
	services := &rayv1.RayServiceList{}
	if err := s.reader.List(ctx, services, client.UnsafeDisableDeepCopy); err != nil {
		s.log.Error(err, "Cannot list RayServices for their metrics")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range services.Items {
		s.collect(out, &services.Items[i])
	}
}

func (s *Services) collect(out chan<- prometheus.Metric, service *rayv1.RayService) {
	tell := func(desc *prometheus.Desc, kind prometheus.ValueType, value float64, more ...string) {
		labels := append([]string{service.Name, service.Namespace, string(service.UID)}, more...)
		out <- prometheus.MustNewConstMetric(desc, kind, value, labels...)
	}
	conditions := service.Status.Conditions
	tell(s.info, prometheus.GaugeValue, 1)
	tell(s.ready, prometheus.GaugeValue, 1, strconv.FormatBool(meta.IsStatusConditionTrue(conditions, rayv1.ConditionRayServiceReady)))
	upgrade := meta.FindStatusCondition(conditions, rayv1.ConditionUpgradeInProgress)
	upgrading := upgrade != nil && upgrade.Status == "True"
	tell(s.upgrading, prometheus.GaugeValue, 1, strconv.FormatBool(upgrading))
	if upgrading {
		tell(s.age, prometheus.GaugeValue, s.clock.Since(upgrade.LastTransitionTime.Time).Seconds())
	}
	tell(s.switched, prometheus.CounterValue, float64(s.cutOvers[service.UID]))
}

// Watch counts how often traffic moves from now on. Every replica does so, and only the one that leads tells.
func (s *Services) Watch(informer Informer) error {
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(before, after any) {
			old, isService := before.(*rayv1.RayService)
			service, isAlso := after.(*rayv1.RayService)
			if isService && isAlso {
				s.observe(old, service)
			}
		},
		DeleteFunc: func(gone any) {
			if unseen, ok := gone.(cache.DeletedFinalStateUnknown); ok {
				gone = unseen.Obj
			}
			if service, isService := gone.(*rayv1.RayService); isService {
				s.forget(service.UID)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watch RayServices for their metrics: %w", err)
	}
	return nil
}

func (s *Services) observe(before, after *rayv1.RayService) {
	if before.UID != after.UID {
		s.forget(before.UID)
		return
	}
	moved := newCutOvers(before.Status.CutOvers, after.Status.CutOvers)
	s.mu.Lock()
	defer s.mu.Unlock()
	if moved > 0 {
		s.cutOvers[after.UID] += moved
	}
}

// newCutOvers counts those at the head of a list, newest first, that another list does not begin with.
func newCutOvers(before, after []rayv1.RayServiceCutOver) int {
	if len(before) == 0 {
		return len(after)
	}
	for i := range after {
		if after[i].Time.Equal(&before[0].Time) && after[i].To == before[0].To {
			return i
		}
	}
	return len(after)
}

func (s *Services) forget(service types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.cutOvers, service)
}
