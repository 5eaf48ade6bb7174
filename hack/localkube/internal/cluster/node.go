package cluster

import (
	"fmt"

	"github.com/heliostat-io/heliostat/hack/localkube/internal/netplan"
)

// SetPlugged cuts a node off from the network, or connects it again, to see what
// happens when a node is lost.
func (m Manager) SetPlugged(node string, plugged bool) error {
	if err := requireRoot(); err != nil {
		return err
	}
	cluster, err := m.running()
	if err != nil {
		return err
	}
	for n := 1; n <= cluster.Nodes; n++ {
		if netplan.NodeName(n) != node {
			continue
		}
		if err := m.network(cluster).SetPlugged(n, plugged); err != nil {
			return fmt.Errorf("changing the cable of %s: %w", node, err)
		}
		m.Log.Printf("%s is connected: %t", node, plugged)
		return nil
	}
	return fmt.Errorf("cluster %s has no node called %q", m.Dirs.Name, node)
}
