package sim

import (
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/leadership"
	"github.com/heliostat-io/heliostat/internal/operator"
	"github.com/heliostat-io/heliostat/test/sim/kube"
)

// TestMain lets the garbage of thousands of worlds wait: what lives at one time is little.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// lab holds what all histories of a test share.
type lab struct {
	schema *kube.Schema
	// kinds are all kinds.
	kinds []string
	// cached are the kinds as the barrier wants them.
	cached    []leadership.CachedKind
	scenarios []scenario
	// ofClusters, ofJobs and ofServices are the places of the scenarios of each kind for which seeds are drawn.
	ofClusters, ofJobs, ofServices []int
	// only are what caches select of a kind, as internal/operator sets them up.
	only map[string]labels.Selector
	// undisturbed are the results without a fault, by scenario. Each is found out when it is first asked for.
	undisturbed []func() result
}

// all and onlyServices are the scenarios that a laboratory can be for.
func all(scenario) bool            { return true }
func onlyServices(s scenario) bool { return s.ofServices }

// newLab returns a laboratory for the wanted scenarios.
func newLab(t *testing.T, wanted func(scenario) bool) *lab {
	t.Helper()
	scheme, err := operator.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	schema, err := kube.NewSchema(scheme,
		[]client.Object{&rayv1.RayCluster{}, &rayv1.RayJob{}, &rayv1.RayService{}, &corev1.Pod{}, &corev1.Secret{}, &corev1.Event{}, &batchv1.Job{},
			&appsv1.ControllerRevision{}, &discoveryv1.EndpointSlice{}},
		[]client.Object{&corev1.Service{}, &corev1.PersistentVolumeClaim{}, &corev1.ServiceAccount{}, &rbacv1.Role{}, &rbacv1.RoleBinding{}, &networkingv1.Ingress{}, &policyv1.PodDisruptionBudget{}})
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{schema: schema, kinds: schema.Kinds(), scenarios: slices.Concat(clusterScenarios(), jobScenarios(), serviceScenarios())}
	l.scenarios = slices.DeleteFunc(l.scenarios, func(s scenario) bool { return !wanted(s) })
	for i, s := range l.scenarios {
		switch {
		case s.calm:
		case s.ofServices:
			l.ofServices = append(l.ofServices, i)
		case s.ofJobs:
			l.ofJobs = append(l.ofJobs, i)
		default:
			l.ofClusters = append(l.ofClusters, i)
		}
	}
	for i := range l.scenarios {
		l.undisturbed = append(l.undisturbed, sync.OnceValue(func() result { return l.run(&l.scenarios[i], undisturbed()) }))
	}
	l.only = map[string]labels.Selector{"Job": labels.SelectorFromSet(labels.Set{rayv1.LabelCreatedBy: rayv1.CreatedByOperator})}
	for _, name := range l.kinds {
		kind, list := schema.Describe(name)
		cached := leadership.CachedKind{Kind: kind, List: list}
		if only := l.only[name]; only != nil {
			cached.Selector = client.MatchingLabelsSelector{Selector: only}
		}
		l.cached = append(l.cached, cached)
	}
	return l
}

func (l *lab) run(s *scenario, p plan) result { return play(newWorld(l, s, p)) }

// trace plays a history once more and tells it.
func (l *lab) trace(s *scenario, p plan) []string {
	w := newWorld(l, s, p)
	w.trace = &[]string{}
	trace := w.trace
	play(w)
	return *trace
}
