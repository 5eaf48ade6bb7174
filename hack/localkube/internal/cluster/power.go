package cluster

import (
	"context"
	"fmt"
	"os"

	"github.com/heliostat-io/heliostat/hack/localkube/internal/cgroup"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/mounts"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/netplan"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/proc"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/state"
)

// PowerOff ends a node as a power cut does: its programs and Pods end at once, and its network is silent. Its disk stays.
func (m Manager) PowerOff(ctx context.Context, name string) error {
	cluster, n, host, err := m.machine(name)
	if err != nil {
		return err
	}
	records, err := proc.Records(m.Dirs.Records())
	if err != nil {
		return err
	}
	// First, so that nobody can say any more that something ends.
	if err := m.network(cluster).SetPlugged(n, false); err != nil {
		return fmt.Errorf("changing the cable of %s: %w", name, err)
	}
	if err := m.stopNode(ctx, cluster, n, host, records); err != nil {
		return fmt.Errorf("powering off %s: %w", name, err)
	}
	m.Log.Printf("%s is off", name)
	return nil
}

// PowerOn starts a node that was powered off. It knows nothing of the Pods that ran on it, as after any start.
func (m Manager) PowerOn(ctx context.Context, name string) error {
	cluster, n, host, err := m.machine(name)
	if err != nil {
		return err
	}
	if err := m.forgetRun(cluster, n, host); err != nil {
		return fmt.Errorf("powering on %s: %w", name, err)
	}
	if err := m.network(cluster).SetPlugged(n, true); err != nil {
		return fmt.Errorf("changing the cable of %s: %w", name, err)
	}
	node := &start{Manager: m, cluster: cluster, options: Options{Wait: DefaultWait}, starter: m.starter(), host: host}
	if err := node.startNode(ctx, n); err != nil {
		return fmt.Errorf("powering on %s: %w", name, err)
	}
	m.Log.Printf("%s is on", name)
	return nil
}

// machine is a node of the running cluster, and what its Pods are kept in.
func (m Manager) machine(name string) (state.Cluster, int, cgroup.Host, error) {
	cluster, n, err := m.nodeCalled(name)
	if err != nil {
		return state.Cluster{}, 0, cgroup.Host{}, err
	}
	host, err := cgroup.Detect()
	return cluster, n, host, err
}

// forgetRun takes away what a node has only while it runs: mounts, its folder under /run, and its cgroup.
func (m Manager) forgetRun(cluster state.Cluster, n int, host cgroup.Host) error {
	big, run := m.Dirs.Node(n)
	if err := mounts.Clear(run, big); err != nil {
		return err
	}
	if err := os.RemoveAll(run); err != nil {
		return fmt.Errorf("removing the run folder of %s: %w", netplan.NodeName(n), err)
	}
	return host.Remove(netplan.Plan{Index: cluster.Index}.CgroupName(n))
}

// StopProgram kills a program of the control plane.
func (m Manager) StopProgram(name string) error {
	record, err := m.program(name)
	if err != nil {
		return err
	}
	if err := proc.Stop(record, 0); err != nil {
		return err
	}
	m.Log.Printf("%s is stopped", name)
	return nil
}

// StartProgram starts a program that was stopped, as it was started first.
func (m Manager) StartProgram(name string) error {
	record, err := m.program(name)
	if err != nil {
		return err
	}
	if record.Alive() {
		m.Log.Printf("%s runs", name)
		return nil
	}
	if len(record.Args) == 0 {
		return fmt.Errorf("starting %s: an older localkube has started it, and did not write down how", name)
	}
	if _, err := m.starter().Start(proc.Spec{Name: name, Args: record.Args, NetNS: record.NetNS}); err != nil {
		return err
	}
	m.Log.Printf("%s is started", name)
	return nil
}

// program is the record of a program of the control plane.
func (m Manager) program(name string) (proc.Record, error) {
	if err := requireRoot(); err != nil {
		return proc.Record{}, err
	}
	if _, err := m.running(); err != nil {
		return proc.Record{}, err
	}
	records, err := proc.Records(m.Dirs.Records())
	if err != nil {
		return proc.Record{}, err
	}
	for _, record := range records {
		if record.Name == name {
			return record, nil
		}
	}
	return proc.Record{}, fmt.Errorf("cluster %s has no program called %q: there are %v", m.Dirs.Name, name, componentNames(0))
}
