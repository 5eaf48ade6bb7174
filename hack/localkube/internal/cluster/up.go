package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/heliostat-io/heliostat/hack/localkube/internal/cgroup"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/debian"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/hostnet"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/images"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/kernel"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/netplan"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/pki"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/proc"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/state"
)

// Up brings the cluster up. If it is up already, Up says so and changes nothing;
// if what is there is broken or half made, it is taken down first. When
// something fails, or ctx ends, everything is taken down again and only the logs
// stay.
func (m Manager) Up(ctx context.Context, options Options) error {
	if options.Nodes < 1 || options.Nodes > state.MaxNodes {
		return fmt.Errorf("a cluster of %d nodes: choose 1 to %d", options.Nodes, state.MaxNodes)
	}
	if err := requireRoot(); err != nil {
		return err
	}
	if err := debian.ThisMachine().Check(); err != nil {
		return err
	}
	release, err := m.lock(ctx)
	if err != nil {
		return err
	}
	defer release()
	found, err := m.owned()
	if err != nil {
		return err
	}
	if found != nil {
		reason := m.healthy(ctx, *found)
		if reason == nil {
			return m.alreadyUp(ctx, *found, options)
		}
		m.Log.Printf("cluster %s is there but not well (%v); taking it down first", m.Dirs.Name, reason)
		if err := m.clean(ctx, *found); err != nil {
			return err
		}
	}
	programs, archives, err := m.prepare(ctx)
	if err != nil {
		return err
	}
	cluster, err := m.claim(options, programs.kube)
	if err != nil {
		return err
	}
	starter := &start{Manager: m, cluster: cluster, options: options, archives: archives}
	if err := starter.run(ctx); err != nil {
		m.Log.Printf("that failed; taking cluster %s down again (its logs stay in %s)", m.Dirs.Name, m.Dirs.Logs())
		return errors.Join(err, m.clean(context.WithoutCancel(ctx), cluster))
	}
	m.Log.Printf("cluster %s is up", m.Dirs.Name)
	return nil
}

func (m Manager) alreadyUp(ctx context.Context, found state.Cluster, wanted Options) error {
	if found.Nodes != wanted.Nodes || found.FastNodeLoss != wanted.FastNodeLoss {
		return fmt.Errorf("cluster %s is up with %d nodes and fast-node-loss=%t; run `localkube down` before you start it differently",
			m.Dirs.Name, found.Nodes, found.FastNodeLoss)
	}
	m.Log.Printf("cluster %s is up already", m.Dirs.Name)
	return m.renewVolumes(ctx, found)
}

type programs struct {
	kube, coredns, pause string
}

// prepare builds programs and packs images, as far as the cache lacks them.
// Nothing of the machine is touched yet.
func (m Manager) prepare(ctx context.Context) (programs, []string, error) {
	paths, err := m.Builder.Ensure(ctx, "kube", "coredns", "pause")
	if err != nil {
		return programs{}, nil, err
	}
	built := programs{kube: paths[0], coredns: paths[1], pause: paths[2]}
	packer := images.Packer{Dir: m.Images, CoreDNS: built.coredns, Pause: built.pause, Log: m.Log}
	archives, err := packer.Ensure(ctx)
	if err != nil {
		return programs{}, nil, err
	}
	return built, archives, nil
}

// claim chooses the cluster's addresses and writes down that it exists.
func (m Manager) claim(options Options, kube string) (state.Cluster, error) {
	inUse, err := hostnet.InUse()
	if err != nil {
		return state.Cluster{}, err
	}
	others, err := m.Dirs.Others()
	if err != nil {
		return state.Cluster{}, err
	}
	taken := map[int]bool{}
	for _, other := range others {
		taken[other.Index] = true
	}
	plan, err := netplan.Choose(inUse, taken)
	if err != nil {
		return state.Cluster{}, err
	}
	cluster := state.Cluster{
		Dir: m.Dirs.Big, Index: plan.Index, Nodes: options.Nodes, Kube: kube, FastNodeLoss: options.FastNodeLoss,
	}
	return cluster, m.Dirs.Save(cluster)
}

// start is one attempt to start a cluster.
type start struct {
	Manager
	cluster  state.Cluster
	options  Options
	archives []string
	starter  proc.Starter
	host     cgroup.Host
	daemons  daemons
}

// run goes through the steps of a start. What they have made when one fails is
// removed by the caller.
func (s *start) run(ctx context.Context) error {
	s.starter = s.Manager.starter()
	for _, step := range []struct {
		do   func(context.Context) error
		done string
	}{
		{s.makeFolders, ""},
		{s.makeNetwork, "network and certificates made"},
		{s.startControlPlane, "API server ready"},
		{s.startNodes, "nodes started"},
		{s.addObjects, ""},
		{s.waitReady, fmt.Sprintf("%d nodes and cluster DNS ready", s.cluster.Nodes)},
	} {
		if err := step.do(ctx); err != nil {
			return err
		}
		if step.done != "" {
			s.Log.Printf("%s", step.done)
		}
	}
	s.cluster.Up = true
	return s.Dirs.Save(s.cluster)
}

func (s *start) makeFolders(context.Context) error {
	// After a reboot nothing is remembered of a cluster that was up before, but
	// its data is still there.
	if err := s.removeData(); err != nil {
		return err
	}
	// Logs of the last run are of no use beside those of this one.
	if err := os.RemoveAll(s.Dirs.Logs()); err != nil {
		return fmt.Errorf("removing old logs: %w", err)
	}
	for _, dir := range []string{s.Dirs.Records(), s.Dirs.Logs(), s.scratch()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("making a folder of cluster %s: %w", s.Dirs.Name, err)
		}
	}
	return nil
}

func (s *start) makeNetwork(context.Context) error {
	settings := kernel.Settings{Root: "/proc/sys"}
	if err := settings.Save(state.SysctlFile()); err != nil {
		return err
	}
	if err := s.network(s.cluster).Up(); err != nil {
		return err
	}
	plan := netplan.Plan{Index: s.cluster.Index}
	var nodes []pki.Node
	for n := 1; n <= s.cluster.Nodes; n++ {
		nodes = append(nodes, pki.Node{Name: netplan.NodeName(n), IP: plan.NodeIP(n).String()})
	}
	return pki.Write(s.Dirs.PKI(), pki.Options{
		Cluster:     "localkube-" + s.Dirs.Name,
		Server:      serverURL(s.cluster),
		ServerHosts: []string{plan.HostIP().String(), plan.APIServiceIP().String()},
		Nodes:       nodes,
	})
}
