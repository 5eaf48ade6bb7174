// Package netplan decides which addresses and interface names a cluster uses.
// It is pure: what the machine already uses is given to it.
package netplan

import (
	"errors"
	"fmt"
	"net/netip"
)

// Indexes is how many clusters one machine can hold, and how many choices of
// addresses there are for one.
const Indexes = 8

// wide is the prefix length below which a route of the machine does not stand
// in the way: ours are longer, so they win, and a private network that sends
// all of 10.0.0.0/8 somewhere is common.
const wide = 12

// Plan is the address plan of one cluster. Plans of different indexes do not
// overlap.
type Plan struct {
	// Index is 0 to Indexes-1.
	Index int
}

// Choose returns the plan of the lowest index that no other cluster has and
// whose ranges none of the machine's routes and addresses touch.
func Choose(inUse []netip.Prefix, otherIndexes map[int]bool) (Plan, error) {
	for index := range Indexes {
		plan := Plan{Index: index}
		if !otherIndexes[index] && !plan.touches(inUse) {
			return plan, nil
		}
	}
	return Plan{}, errors.New("every address range that localkube could use (10.231.0.0/21, 10.232.0.0/13, 10.240.0.0/13) overlaps with a route or an address of this machine")
}

func (p Plan) touches(inUse []netip.Prefix) bool {
	for _, ours := range []netip.Prefix{p.NodeRange(), p.PodRange(), p.ServiceRange()} {
		for _, used := range inUse {
			if used.Bits() >= wide && used.Overlaps(ours) {
				return true
			}
		}
	}
	return false
}

// prefix is 10.b.c.0/bits.
func prefix(b, c byte, bits int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, b, c, 0}), bits)
}

// NodeRange is the network of the machine and the nodes.
func (p Plan) NodeRange() netip.Prefix { return prefix(231, byte(p.Index), 24) }

// PodRange holds the Pods of all nodes.
func (p Plan) PodRange() netip.Prefix { return prefix(byte(232+p.Index), 0, 16) }

// ServiceRange holds the cluster addresses of Services.
func (p Plan) ServiceRange() netip.Prefix { return prefix(byte(240+p.Index), 0, 16) }

// HostIP is the machine's own address in NodeRange; the API server listens on it.
func (p Plan) HostIP() netip.Addr { return netip.AddrFrom4([4]byte{10, 231, byte(p.Index), 1}) }

// NodeIP is the address of node n, counted from 1.
func (p Plan) NodeIP(n int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 231, byte(p.Index), byte(10 + n)})
}

// PodCIDR is the part of PodRange that belongs to node n.
func (p Plan) PodCIDR(n int) netip.Prefix { return prefix(byte(232+p.Index), byte(n), 24) }

// APIServiceIP is the address of the Service "kubernetes": always the first.
func (p Plan) APIServiceIP() netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(240 + p.Index), 0, 1})
}

// DNSIP is the address of the cluster's DNS Service.
func (p Plan) DNSIP() netip.Addr { return netip.AddrFrom4([4]byte{10, byte(240 + p.Index), 0, 10}) }

// HostInterface is the machine's end of the cable to the cluster's switch.
func (p Plan) HostInterface() string { return fmt.Sprintf("lk%d", p.Index) }

// CgroupName is the cgroup under which all Pods of node n run. It is also the
// name of the node's Pod network, which the CNI library uses for its cache.
func (p Plan) CgroupName(n int) string { return fmt.Sprintf("lk%d-n%d", p.Index, n) }

// NodeName is the name of node n as Kubernetes shows it.
func NodeName(n int) string { return fmt.Sprintf("node-%d", n) }
