package rayservice

import (
	"slices"
	"time"

	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/ray/serve"
	"github.com/heliostat-io/heliostat/internal/raycluster"
)

// Settings are the operator's settings that matter to RayServices.
type Settings struct {
	// Clusters are those for the objects of RayClusters.
	Clusters raycluster.Settings
	// ZeroDowntime prepares a second cluster where upgradeStrategy has no type.
	ZeroDowntime bool
	// Incremental allows the type NewClusterWithIncrementalUpgrade.
	Incremental bool
	// GatewayAPI tells whether the Gateway API is installed.
	GatewayAPI bool
	// ProxiesByName asks Pods by their names and not by their addresses, for requests that go through the API server.
	ProxiesByName bool
}

const (
	// pollAgain is how soon a service is looked at again while something is awaited that no watch reports.
	pollAgain = 2 * time.Second
	// putAgain is the pause after a config that Serve could not take, refusedPause after one that it refused.
	putAgain     = 5 * time.Second
	refusedPause = time.Minute
	// collisionPause is the time between two looks at what others have put in the place of ours.
	collisionPause = 30 * time.Second
	// leastFailures is how many questions in a row a proxy must have failed to answer before requests are kept from it.
	leastFailures = 2
	// silence is how long a Pod must have failed to tell of its requests before no word is expected of it any more.
	silence = 30 * time.Second
	// quietTime is how long no request must have been seen on a Pod before it counts as idle. Ray brings its metrics up to
	// date every 10 seconds.
	quietTime = 20 * time.Second
	// defaultDrain and defaultDeletionDelay are used where the RayService does not say.
	defaultDrain         = 300 * time.Second
	defaultDeletionDelay = 60 * time.Second
)

// Decision is what a plan wants done, and what it wants to be asked from now on.
type Decision struct {
	action.Plan
	Questions
}

// Plan decides what to do for a RayService. It is a pure function of its arguments.
func Plan(s Snapshot, settings Settings, now time.Time) Decision {
	if s.Service == nil {
		return Decision{}
	}
	p := newPlanner(s, settings, now)
	switch managedBy := s.Service.Spec.ManagedBy; {
	case s.Service.DeletionTimestamp != nil:
		// Whoever manages it by now: our finalizer is on it only if we have made clusters for it.
		p.deleted()
		return p.decision
	case managedBy != nil && *managedBy != rayv1.ManagedByOperator:
		return Decision{}
	case !slices.Contains(s.Service.Finalizers, rayv1.FinalizerRayService):
		p.do(action.Finalizers{Object: s.Service, Want: append(slices.Clone(s.Service.Finalizers), rayv1.FinalizerRayService),
			Why: "the clusters must be gone before the RayService may go"})
		return p.decision
	}
	switch {
	case p.suspension():
	case p.timedOut():
		p.retire()
	default:
		p.serve()
	}
	p.conditions()
	p.decision.Status = p.statusWrite()
	return p.decision
}

type planner struct {
	s        Snapshot
	settings Settings
	now      time.Time
	// service is a copy of s.Service with the next status.
	service *rayv1.RayService
	st      *rayv1.RayServiceStatuses // that status
	// invalid says what is wrong with the spec apart from the config, nil if nothing is.
	invalid error
	// config is that of the spec; when it cannot be used, configErr says why.
	config    *serve.Config
	configErr error
	// active and pending are the names of the clusters that serve and that are to take over, as the facts have it and as
	// this pass wants it. Either may be empty.
	active, pending string
	// shares are those of a step by step take-over as they are, next as this pass wants them.
	shares, next shares
	// rollback tells that such a take-over is being undone.
	rollback bool
	// promoted is the cluster that the route leads to alone from now on, nil when it does not change hands.
	promoted *Cluster
	// obstacle is what somebody must change before the service can become what is asked for.
	obstacle obstacle
	// waiting says what the take-over by the pending cluster waits for.
	waiting  string
	notes    []string
	decision Decision
}

type obstacle struct{ reason, message string }

func newPlanner(s Snapshot, settings Settings, now time.Time) *planner {
	p := &planner{s: s, settings: settings, now: now, service: s.Service.DeepCopy()}
	p.st = &p.service.Status
	p.decision.Known = action.Told(s.Holds)
	p.invalid = Validate(s.Service, settings)
	p.config, p.configErr = serve.Parse(s.Service.Spec.ServeConfigV2)
	return p
}

// serve is a pass over a service that is neither suspended nor given up.
func (p *planner) serve() {
	p.roles()
	p.chooseClusters()
	p.readShares()
	p.makeClusters()
	p.clusterServices()
	p.headLabels()
	p.configs()
	p.takeOver()
	p.services()
	p.retire()
}

func (p *planner) do(a action.Action) { p.decision.Actions = append(p.decision.Actions, a) }
func (p *planner) again(after time.Duration) {
	p.decision.LookAgain = action.Soonest(p.decision.LookAgain, after)
}
func (p *planner) tell(event *action.Event) { p.decision.Events = append(p.decision.Events, *event) }

// block notes what somebody must change. The first obstacle of a pass is the one that is told.
func (p *planner) block(reason, message string) {
	if p.obstacle.reason == "" {
		p.obstacle = obstacle{reason, message}
	}
}

// frozen tells whether the spec cannot be acted upon while something serves: then all stays as the last good one had it.
func (p *planner) frozen() bool {
	return p.invalid != nil || p.configErr != nil && p.active != ""
}

// strategy is how a changed cluster takes over.
func (p *planner) strategy() rayv1.RayServiceUpgradeType {
	strategy := p.service.Spec.UpgradeStrategy
	switch {
	case strategy != nil && ptr.Deref(strategy.Type, "") != "":
		return *strategy.Type
	case p.settings.ZeroDowntime:
		return rayv1.RayServiceNewCluster
	default:
		return rayv1.RayServiceUpgradeNone
	}
}

// zeroDowntime tells whether a changed cluster is prepared beside the one that serves.
func (p *planner) zeroDowntime() bool {
	switch p.strategy() {
	case rayv1.RayServiceNewCluster:
		return true
	case rayv1.RayServiceNewClusterWithIncrementalUpgrade:
		return p.settings.Incremental
	default:
		return false
	}
}

// held tells whether a write waits after it was refused, and then says why.
func (p *planner) held(key string) bool {
	hold, ok := p.s.Holds[key]
	if !ok {
		return false
	}
	reason := hold.Reason
	if hold.Collision {
		reason = rayv1.ReasonNameCollision
	}
	p.block(reason, hold.Message)
	wait := hold.Until.Sub(p.now)
	p.again(wait)
	return wait > 0
}
