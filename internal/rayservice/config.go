package rayservice

import (
	"cmp"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/excerpt"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
	"github.com/heliostat-io/heliostat/internal/ray/serve"
	"github.com/heliostat-io/heliostat/internal/raycluster"
)

// maxRecorded is the longest config, in bytes, that is recorded on a RayCluster. All annotations of an object together may
// have 256 KiB.
const maxRecorded = 128 << 10

// configs brings Serve on each cluster to the config that it is to have. What Serve reports is compared, not what was sent:
// a head that was replaced has lost what it was sent, and others may have changed it (RS-W13).
func (p *planner) configs() {
	for _, name := range []string{p.active, p.pending} {
		c := p.s.cluster(name)
		if c == nil || c.leaving() || !p.askReport(c) || !reported(c) {
			continue
		}
		if p.deserves(c) {
			p.apply(c, p.config)
			continue
		}
		p.restore(c)
	}
}

// deserves tells whether a cluster gets the config of the spec. The active one does not while another cluster is to take
// over, or while the spec asks for another cluster: the config was written for that one (RS-017, RS-W5).
func (p *planner) deserves(c *Cluster) bool {
	switch {
	case p.config == nil || p.invalid != nil:
		return false
	case c.name() == p.pending:
		return !p.rollsBack()
	case p.pending != "":
		return p.rollsBack() && (p.wanted(c) || !p.zeroDowntime())
	default:
		return p.wanted(c) || !p.zeroDowntime()
	}
}

// reported tells whether Serve has answered last time it was asked.
func reported(c *Cluster) bool {
	return c.Report != nil && c.Report.Err == nil && c.Report.Serve != nil
}

// applied tells whether Serve reports a config, or what it made of that when it took it.
func (c *Cluster) applied(config *serve.Config) bool {
	if !reported(c) || config == nil {
		return false
	}
	return config.Difference(c.Report.Serve) == "" || c.normalised(config)
}

// normalised tells whether all that Serve lacks of a config which it took are fields that it does not know; sending the config
// again would change nothing.
func (c *Cluster) normalised(config *serve.Config) bool {
	took := c.Put != nil && c.Put.Err == nil && c.Put.ID == config.Hash() && c.Report.Answered.After(c.Put.At)
	return took && len(config.Dropped(c.Report.Serve)) > 0
}

// apply sends a config, unless Serve has it, is being sent it, or refused it.
func (p *planner) apply(c *Cluster, config *serve.Config) {
	capacity := p.capacityOf(c)
	if c.applied(config) && sameCapacity(config, capacity, c.Report.Serve.TargetCapacity) {
		p.recordConfig(c, config)
		return
	}
	p.put(c, config, capacity)
}

// restore brings a config back to a cluster that has lost all its applications, and the capacity to what it is to be. Nothing
// else is changed on a cluster that the spec's config was not written for.
func (p *planner) restore(c *Cluster) {
	if has, ok := serve.Reported(c.Report.Serve); ok {
		if capacity := p.capacityOf(c); !sameCapacity(nil, capacity, c.Report.Serve.TargetCapacity) {
			p.put(c, has, capacity)
		}
		return
	}
	if good, err := serve.Parse(c.Object.Annotations[rayv1.AnnotationServeConfig]); err == nil {
		p.put(c, good, p.capacityOf(c))
	}
}

func (p *planner) put(c *Cluster, config *serve.Config, capacity *int32) {
	if c.Sending || p.rests(c, config) {
		p.again(pollAgain)
		return
	}
	body, err := config.Body(capacity)
	if err != nil {
		p.block(rayv1.ReasonConfigInvalid, err.Error())
		return
	}
	address, err := p.address(c)
	if err != nil {
		p.block(rayv1.ReasonServiceMissing, err.Error())
		return
	}
	p.do(action.PutServe{Cluster: c.Object, BaseURL: address, Secret: raycluster.AuthOf(c.Object).Secret, Session: c.Report.SessionName,
		Config: body, Hash: config.Hash(), Why: "Serve reports: " + excerpt.Beginning(cmp.Or(config.Difference(c.Report.Serve), "another target capacity"), 200)})
	p.again(pollAgain)
}

// rests tells whether the config that was sent last is not to be sent again yet: Serve has not been asked since it took it,
// or it was sent a moment ago.
func (p *planner) rests(c *Cluster, config *serve.Config) bool {
	put := c.Put
	switch {
	case put == nil:
		return false
	case put.Err == nil && !c.Report.Answered.After(put.At):
		return true
	case put.ID != config.Hash():
		return false
	case errors.Is(put.Err, dashboard.ErrRefused):
		return p.now.Sub(put.At) < refusedPause
	default:
		return p.now.Sub(put.At) < putAgain
	}
}

// refusal is what Serve said when it refused the config of the spec on a cluster, or empty.
func (p *planner) refusal(c *Cluster) string {
	if c == nil || c.Put == nil || p.config == nil || c.Put.ID != p.config.Hash() || !errors.Is(c.Put.Err, dashboard.ErrRefused) {
		return ""
	}
	return c.Put.Err.Error()
}

// recordConfig writes on a cluster which config it has, so that whoever leads can give it back after a head was replaced.
func (p *planner) recordConfig(c *Cluster, config *serve.Config) {
	text := config.Text()
	if c.Object.Annotations[rayv1.AnnotationServeConfig] == text || p.updates(c) {
		return
	}
	if len(text) > maxRecorded {
		p.notes = append(p.notes, fmt.Sprintf("serveConfigV2 has %d bytes, more than the %d that can be recorded: if the head of the old cluster is lost during an upgrade, "+
			"its applications cannot be brought back", len(text), maxRecorded))
		return
	}
	next := c.Object.DeepCopy()
	next.Annotations = overlay(next.Annotations, map[string]string{rayv1.AnnotationServeConfig: text})
	a := action.Update{Object: next, Base: c.Object, Why: "Serve has taken the config",
		Failed: action.Warning("FailedToUpdateRayCluster", "Update", "cannot record the config of Serve on the RayCluster")}
	if !p.held(a.Key()) {
		p.do(a)
	}
}

// updates tells whether this pass changes the cluster already; a second change from the same state would be refused.
func (p *planner) updates(c *Cluster) bool {
	for _, a := range p.decision.Actions {
		if update, ok := a.(action.Update); ok && update.Object.GetName() == c.name() {
			return true
		}
	}
	return false
}

// sameCapacity compares the capacity that is wanted, or else the one that the config itself asks for, with that which Serve
// reports. None means all of it.
func sameCapacity(config *serve.Config, want *int32, have *float64) bool {
	wanted := 100.0
	switch {
	case want != nil:
		wanted = float64(*want)
	case config != nil && config.TargetCapacity() != nil:
		wanted = *config.TargetCapacity()
	}
	return wanted == ptr.Deref(have, 100)
}

// address is the base URL of a cluster's dashboard.
func (p *planner) address(c *Cluster) (string, error) {
	address, err := raycluster.DashboardAddress(c.HeadService, p.settings.Clusters.ClusterDomain)
	if err != nil {
		return "", fmt.Errorf("RayCluster %s: %w", c.name(), err)
	}
	return "http://" + address, nil
}

// headAnswers tells whether it makes sense to ask the head of a cluster: it has been ready, so its dashboard is up.
func headAnswers(c *Cluster) bool {
	head := c.head()
	if head == nil || head.DeletionTimestamp != nil || !hasAddress(head.Pod) {
		return false
	}
	return c.Object.Annotations[rayv1.AnnotationServeConfig] != "" || podReady(head.Pod)
}

func podReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
