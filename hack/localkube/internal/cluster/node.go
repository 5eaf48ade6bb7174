package cluster

import (
	"fmt"

	"github.com/heliostat-io/heliostat/hack/localkube/internal/netplan"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/state"
)

// SetPlugged cuts a node off from the network, or connects it again, to see what
// happens when a node is lost.
func (m Manager) SetPlugged(node string, plugged bool) error {
	cluster, n, err := m.nodeCalled(node)
	if err != nil {
		return err
	}
	if err := m.network(cluster).SetPlugged(n, plugged); err != nil {
		return fmt.Errorf("changing the cable of %s: %w", node, err)
	}
	m.Log.Printf("%s is connected: %t", node, plugged)
	return nil
}

// nodeCalled is the number of a node of the running cluster.
func (m Manager) nodeCalled(name string) (state.Cluster, int, error) {
	if err := requireRoot(); err != nil {
		return state.Cluster{}, 0, err
	}
	cluster, err := m.running()
	if err != nil {
		return state.Cluster{}, 0, err
	}
	for n := 1; n <= cluster.Nodes; n++ {
		if netplan.NodeName(n) == name {
			return cluster, n, nil
		}
	}
	return state.Cluster{}, 0, fmt.Errorf("cluster %s has no node called %q", m.Dirs.Name, name)
}
