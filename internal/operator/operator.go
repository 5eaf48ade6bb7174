// Package operator wires the parts of Heliostat into one process. It decides nothing; see the packages of the
// controllers for what is done and why.
package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	heliostatv1alpha1 "github.com/heliostat-io/heliostat/api/heliostat/v1alpha1"
	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/config"
	"github.com/heliostat-io/heliostat/internal/diagnose"
	"github.com/heliostat-io/heliostat/internal/leadership"
	ownmetrics "github.com/heliostat-io/heliostat/internal/metrics"
	"github.com/heliostat-io/heliostat/internal/operator/settings"
	"github.com/heliostat-io/heliostat/internal/ray/poll"
	"github.com/heliostat-io/heliostat/internal/raycluster"
	"github.com/heliostat-io/heliostat/internal/raycronjob"
	"github.com/heliostat-io/heliostat/internal/rayjob"
	"github.com/heliostat-io/heliostat/internal/rayservice"
	"github.com/heliostat-io/heliostat/internal/rights/selfcheck"
	"github.com/heliostat-io/heliostat/internal/wake"
)

const (
	// parallelWrites is how many writes of one plan may be under way at once.
	parallelWrites = 16
	// rayWorkers is how many requests to Ray dashboards may be under way at once.
	rayWorkers = 8
	// shutdownLimit bounds how long the process takes to stop: the last writes are waited for, then the lease goes.
	shutdownLimit = 20 * time.Second
)

// Options are what the process gives to the operator besides its configuration.
type Options struct {
	// REST is how to reach the API server.
	REST *rest.Config
	// Identity names this replica in the Lease. It must be unique among replicas.
	Identity string
	// Namespace of the operator's own Pod; the Lease is there unless the configuration names another namespace.
	Namespace string
	// Version is put into Pods as ray.io/kuberay-version.
	Version string
	// HTTP reaches Ray dashboards. Optional.
	HTTP *http.Client
	// Registerer takes the operator's own metrics; by default the registry that the metrics endpoint serves.
	Registerer prometheus.Registerer
	// Clock is what controllers tell the time by; by default the machine's.
	Clock clock.WithTicker
	// Log receives all log lines.
	Log logr.Logger
}

// Scheme knows every kind that the operator reads or writes.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), rayv1.AddToScheme(scheme), heliostatv1alpha1.AddToScheme(scheme), gatewayv1.Install(scheme)); err != nil {
		return nil, fmt.Errorf("register kinds: %w", err)
	}
	return scheme, nil
}

// Run runs the operator until ctx ends.
func Run(ctx context.Context, cfg config.Config, options Options) error {
	mgr, err := newManager(cfg, options)
	if err != nil {
		return err
	}
	w := &wiring{cfg: cfg, options: options, mgr: mgr, clock: options.Clock, clusters: wake.New(), jobs: wake.New(), services: wake.New()}
	if w.clock == nil {
		w.clock = clock.RealClock{}
	}
	if err := w.connect(ctx); err != nil {
		return err
	}
	checking, stop := context.WithCancel(ctx)
	var background sync.WaitGroup
	background.Go(func() { w.rights.Run(checking) })
	defer background.Wait()
	defer stop()
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run the operator: %w", err)
	}
	return nil
}

func newManager(cfg config.Config, options Options) (manager.Manager, error) {
	scheme, err := Scheme()
	if err != nil {
		return nil, err
	}
	caches, err := cacheOptions(cfg)
	if err != nil {
		return nil, err
	}
	readOwnWrites := readsOwnWrites(cfg)
	mgr, err := ctrl.NewManager(options.REST, ctrl.Options{
		Scheme:                  scheme,
		Logger:                  options.Log,
		Cache:                   caches,
		Client:                  client.Options{Cache: &client.CacheOptions{Unstructured: true, EnableReadYourWritesConsistency: &readOwnWrites}},
		Metrics:                 metricsserver.Options{BindAddress: cfg.MetricsAddr},
		HealthProbeBindAddress:  cfg.ProbeAddr,
		GracefulShutdownTimeout: ptr.To(shutdownLimit),
		// Leadership is a property of a write here, see internal/leadership; all replicas run hot.
		LeaderElection: false,
		// The names are constants of this program; the check would only forbid two operators in one test process.
		Controller: ctrlconfig.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		return nil, fmt.Errorf("set up the manager: %w", err)
	}
	return mgr, nil
}

// readsOwnWrites tells whether the client can wait for its own writes; one that covers several single namespaces cannot
// (a limit of controller-runtime).
func readsOwnWrites(cfg config.Config) bool { return len(cfg.WatchNamespaces) <= 1 }

// cacheOptions narrows the caches to what the operator reads.
func cacheOptions(cfg config.Config) (cache.Options, error) {
	rayNodes, err := labels.NewRequirement(rayv1.LabelNodeType, selection.In,
		[]string{rayv1.NodeTypeHead, rayv1.NodeTypeWorker, rayv1.NodeTypeRedisCleanup, rayv1.NodeTypeSubmitter})
	if err != nil {
		return cache.Options{}, fmt.Errorf("select Ray Pods: %w", err)
	}
	ofClusters, err := labels.NewRequirement(rayv1.LabelCluster, selection.Exists, nil)
	if err != nil {
		return cache.Options{}, fmt.Errorf("select what belongs to RayClusters: %w", err)
	}
	ofServe, err := labels.NewRequirement(rayv1.LabelServe, selection.Exists, nil)
	if err != nil {
		return cache.Options{}, fmt.Errorf("select what leads to Serve: %w", err)
	}
	labelled := cache.ByObject{Label: labels.NewSelector().Add(*ofClusters)}
	options := cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:   {Label: labels.NewSelector().Add(*rayNodes)},
			&corev1.Event{}: {Field: fields.SelectorFromSet(fields.Set{"involvedObject.kind": "Pod", "reason": diagnose.ReasonFailedMount})},
			&batchv1.Job{}:  {Label: labels.SelectorFromSet(labels.Set{rayv1.LabelCreatedBy: rayv1.CreatedByOperator})},
			// Nobody else's Secrets are kept in memory.
			&corev1.Secret{}:                labelled,
			&rbacv1.Role{}:                  labelled,
			&rbacv1.RoleBinding{}:           labelled,
			&appsv1.ControllerRevision{}:    labelled,
			&networkingv1.Ingress{}:         labelled,
			&policyv1.PodDisruptionBudget{}: labelled,
			&corev1.ServiceAccount{}:        {Transform: justIdentity},
			// Slices have the labels of their Services.
			&discoveryv1.EndpointSlice{}: {Label: labels.NewSelector().Add(*ofServe)},
		},
	}
	if len(cfg.WatchNamespaces) > 0 {
		options.DefaultNamespaces = map[string]cache.Config{}
		for _, namespace := range cfg.WatchNamespaces {
			options.DefaultNamespaces[namespace] = cache.Config{}
		}
	}
	return options, nil
}

// justIdentity keeps of a service account only that it is there, and whose it is: users may name any for a head.
func justIdentity(object any) (any, error) {
	account, ok := object.(*corev1.ServiceAccount)
	if !ok {
		return object, nil
	}
	account.ManagedFields, account.Secrets, account.ImagePullSecrets = nil, nil, nil
	return account, nil
}

type wiring struct {
	cfg      config.Config
	options  Options
	mgr      manager.Manager
	clock    clock.WithTicker
	clusters *wake.Bell
	jobs     *wake.Bell
	services *wake.Bell
	// dashboards asks Ray dashboards about jobs and Serve, census asks them about actors, proxies asks single Pods of
	// RayServices, and sender writes to dashboards. All are there after talkToRay.
	dashboards *poll.Poller
	census     *poll.Poller
	proxies    *poll.Poller
	sender     *action.Ray
	// gateways tells whether traffic can be moved step by step: the Gateway API is installed, and the feature gate is on.
	gateways bool
	// crons is nil while the feature gate is off.
	crons *raycronjob.Reconciler
	// rights finds out which rights are missing.
	rights *selfcheck.Checker
}

// connect registers everything that runs with the manager.
func (w *wiring) connect(ctx context.Context) error {
	registerer := w.options.Registerer
	if registerer == nil {
		registerer = metrics.Registry
	}
	forClusters, err := settings.Clusters(w.cfg, w.options.Version, w.mgr.GetRESTMapper())
	if err != nil {
		return err
	}
	if w.gateways, err = settings.GatewayAPI(w.cfg, w.mgr.GetRESTMapper()); err != nil {
		return err
	}
	if w.rights, err = w.checkOfRights(registerer, forClusters); err != nil {
		return err
	}
	gate, fenced, err := w.election(ctx, registerer, forClusters)
	if err != nil {
		return err
	}
	if err := w.talkToRay(ctx, registerer, gate); err != nil {
		return err
	}
	told := ownmetrics.NewEvents()
	if err := errors.Join(w.healthChecks(), registerer.Register(told), w.series(ctx, registerer, gate)); err != nil {
		return fmt.Errorf("register background work: %w", err)
	}
	executor := func(controller string) *action.Executor {
		made := action.NewDoubtful(w.clock)
		if !readsOwnWrites(w.cfg) {
			made = action.NewMade(w.clock)
		}
		return &action.Executor{
			Client: w.mgr.GetClient(), Live: w.mgr.GetAPIReader(), Gate: gate, Fenced: fenced, Denied: w.rights.Suspect,
			Events: w.mgr.GetEventRecorder(controller), Told: told.Count, Ray: w.sender, Made: made, Parallel: parallelWrites,
		}
	}
	clusters := &raycluster.Reconciler{
		Reader: w.mgr.GetClient(), Executor: executor(raycluster.Name), Gate: gate, Holds: action.NewHolds(), Streaks: raycluster.NewStreaks(), Specs: raycluster.NewSpecs(forClusters),
		Losses: raycluster.NewLosses(), Census: w.census, Settings: forClusters, Clock: w.clock, Bell: w.clusters,
		Resync: w.cfg.Environment.RayClusterResync, Concurrency: w.cfg.ReconcileConcurrency,
	}
	jobs := &rayjob.Reconciler{
		Reader: w.mgr.GetClient(), Executor: executor(rayjob.Name), Gate: gate, Holds: action.NewHolds(), Poller: w.dashboards, Memory: rayjob.NewMemory(),
		Settings: settings.Jobs(w.cfg), Clock: w.clock, Bell: w.jobs, Concurrency: w.cfg.ReconcileConcurrency,
	}
	services := &rayservice.Reconciler{
		Reader: w.mgr.GetClient(), Executor: executor(rayservice.Name), Gate: gate, Holds: action.NewHolds(),
		Dashboards: w.dashboards, Proxies: w.proxies, Memory: rayservice.NewMemory(),
		Settings: settings.Services(w.cfg, forClusters, w.gateways), Clock: w.clock, Bell: w.services, Concurrency: w.cfg.ReconcileConcurrency,
	}
	return errors.Join(clusters.SetupWithManager(w.mgr), jobs.SetupWithManager(w.mgr), services.SetupWithManager(w.mgr), w.cronJobs(executor, gate))
}

// cronJobs adds the controller of RayCronJobs, if the feature gate is on.
func (w *wiring) cronJobs(executor func(controller string) *action.Executor, gate leadership.Gate) error {
	if !w.cfg.FeatureGates.Enabled(config.RayCronJob) {
		return nil
	}
	w.crons = &raycronjob.Reconciler{
		Reader: w.mgr.GetClient(), Executor: executor(raycronjob.Name), Gate: gate, Holds: action.NewHolds(),
		Jobs: settings.Jobs(w.cfg), Clock: w.clock, Bell: wake.New(), Concurrency: w.cfg.ReconcileConcurrency,
	}
	return w.crons.SetupWithManager(w.mgr)
}

// series adds what the metrics endpoint tells of single RayClusters, RayJobs and RayServices, if that is asked for.
func (w *wiring) series(ctx context.Context, registerer prometheus.Registerer, gate leadership.Gate) error {
	if !w.cfg.EnableMetrics {
		return nil
	}
	leading := func() bool {
		_, ok := gate.Current()
		return ok
	}
	reader, log := w.mgr.GetClient(), w.options.Log.WithName("metrics")
	for kind, series := range map[client.Object]interface {
		prometheus.Collector
		Watch(informer ownmetrics.Informer) error
	}{
		&rayv1.RayCluster{}: ownmetrics.NewClusters(reader, leading, log),
		&rayv1.RayJob{}:     ownmetrics.NewJobs(reader, leading, log),
		&rayv1.RayService{}: ownmetrics.NewServices(reader, leading, w.clock, log),
	} {
		informer, err := w.mgr.GetCache().GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watch %T for its metrics: %w", kind, err)
		}
		if err := errors.Join(registerer.Register(series), series.Watch(informer)); err != nil {
			return fmt.Errorf("register the series of %T: %w", kind, err)
		}
	}
	return nil
}

// wakeAll has everything planned once, because a standby planned nothing.
func (w *wiring) wakeAll(ctx context.Context) {
	if !w.mgr.GetCache().WaitForCacheSync(ctx) {
		return
	}
	err := errors.Join(
		w.clusters.RingAll(ctx, w.mgr.GetClient(), &rayv1.RayClusterList{}),
		w.jobs.RingAll(ctx, w.mgr.GetClient(), &rayv1.RayJobList{}),
		w.services.RingAll(ctx, w.mgr.GetClient(), &rayv1.RayServiceList{}),
	)
	if w.crons != nil {
		err = errors.Join(err, w.crons.WakeAll(ctx))
	}
	if err != nil && ctx.Err() == nil {
		w.options.Log.Error(err, "Cannot queue everything at the start of the term")
	}
}

func (w *wiring) healthChecks() error {
	synced := func(request *http.Request) error {
		if !w.mgr.GetCache().WaitForCacheSync(request.Context()) {
			return errors.New("the caches are not filled yet")
		}
		return nil
	}
	return errors.Join(w.mgr.AddHealthzCheck("process", healthz.Ping), w.mgr.AddReadyzCheck("caches", synced))
}

// Identity returns a name for this replica that no other has: the host name (the Pod's name in a cluster) and the
// start time.
func Identity() (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("read the host name for the identity in the Lease: %w", err)
	}
	return fmt.Sprintf("%s_%s", host, metav1.Now().UTC().Format("20060102T150405.000000")), nil
}
