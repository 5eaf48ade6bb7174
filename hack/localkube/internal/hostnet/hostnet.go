package hostnet

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/heliostat-io/heliostat/hack/localkube/internal/netplan"
)

// Network is the network of one cluster.
type Network struct {
	// Plan gives addresses and names.
	Plan netplan.Plan
	// Dir is where the namespaces are mounted.
	Dir string
	// Nodes is the number of nodes.
	Nodes int
}

// NodeNS is the file of node n's network namespace.
func (w Network) NodeNS(n int) string { return filepath.Join(w.Dir, fmt.Sprintf("n%d", n)) }

func (w Network) switchNS() string { return filepath.Join(w.Dir, "switch") }

// InUse returns the networks that the machine has routes to or addresses in,
// the default route aside.
func InUse() ([]netip.Prefix, error) {
	routes, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		return nil, fmt.Errorf("listing the machine's routes: %w", err)
	}
	var found []netip.Prefix
	for _, route := range routes {
		if prefix, ok := toPrefix(route.Dst); ok {
			found = append(found, prefix)
		}
	}
	addresses, err := netlink.AddrList(nil, netlink.FAMILY_V4)
	if err != nil {
		return nil, fmt.Errorf("listing the machine's addresses: %w", err)
	}
	for _, address := range addresses {
		if prefix, ok := toPrefix(address.IPNet); ok {
			found = append(found, prefix)
		}
	}
	return found, nil
}

func toPrefix(network *net.IPNet) (netip.Prefix, bool) {
	if network == nil {
		return netip.Prefix{}, false
	}
	address, ok := netip.AddrFromSlice(network.IP)
	bits, _ := network.Mask.Size()
	if !ok || bits == 0 {
		return netip.Prefix{}, false
	}
	return netip.PrefixFrom(address.Unmap(), bits).Masked(), true
}

func toIPNet(prefix netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: prefix.Addr().AsSlice(), Mask: net.CIDRMask(prefix.Bits(), prefix.Addr().BitLen())}
}

// Up makes the network. What it has made when it fails, Down removes.
func (w Network) Up() error {
	if err := makeNetNS(w.switchNS()); err != nil {
		return err
	}
	if err := w.makeSwitch(); err != nil {
		return err
	}
	if err := w.connectHost(); err != nil {
		return fmt.Errorf("connecting this machine to the cluster's network: %w", err)
	}
	for n := 1; n <= w.Nodes; n++ {
		if err := w.connectNode(n); err != nil {
			return fmt.Errorf("connecting %s to the cluster's network: %w", netplan.NodeName(n), err)
		}
	}
	return nil
}

const bridgeName = "br0"

// in calls do with a netlink handle on the namespace of a file.
func in(file string, do func(*netlink.Handle) error) error {
	namespace, err := netns.GetFromPath(file)
	if err != nil {
		return fmt.Errorf("opening network namespace %s: %w", file, err)
	}
	defer namespace.Close()
	handle, err := netlink.NewHandleAt(namespace)
	if err != nil {
		return fmt.Errorf("talking to network namespace %s: %w", file, err)
	}
	defer handle.Close()
	return do(handle)
}

func (w Network) makeSwitch() error {
	return in(w.switchNS(), func(at *netlink.Handle) error {
		attributes := netlink.NewLinkAttrs()
		attributes.Name = bridgeName
		bridge := &netlink.Bridge{LinkAttrs: attributes}
		if err := at.LinkAdd(bridge); err != nil {
			return fmt.Errorf("making the cluster's switch: %w", err)
		}
		return setUp(at, bridgeName)
	})
}

// cable adds a pair of interfaces: inner in the namespace of at, and outer in
// the switch.
func (w Network) cable(at *netlink.Handle, inner, outer string) error {
	switchNS, err := netns.GetFromPath(w.switchNS())
	if err != nil {
		return fmt.Errorf("opening the switch's network namespace: %w", err)
	}
	defer switchNS.Close()
	attributes := netlink.NewLinkAttrs()
	attributes.Name = inner
	pair := &netlink.Veth{LinkAttrs: attributes, PeerName: outer, PeerNamespace: netlink.NsFd(int(switchNS))}
	if err := at.LinkAdd(pair); err != nil {
		return fmt.Errorf("adding interface %s: %w", inner, err)
	}
	err = in(w.switchNS(), func(at *netlink.Handle) error {
		port, err := at.LinkByName(outer)
		if err != nil {
			return fmt.Errorf("finding the switch's port %s: %w", outer, err)
		}
		bridge, err := at.LinkByName(bridgeName)
		if err != nil {
			return fmt.Errorf("finding the switch: %w", err)
		}
		if err := at.LinkSetMaster(port, bridge); err != nil {
			return fmt.Errorf("plugging in the switch's port %s: %w", outer, err)
		}
		return setUp(at, outer)
	})
	if err != nil {
		return err
	}
	return setUp(at, inner)
}

func setUp(at *netlink.Handle, name string) error {
	link, err := at.LinkByName(name)
	if err != nil {
		return fmt.Errorf("finding interface %s: %w", name, err)
	}
	if err := at.LinkSetUp(link); err != nil {
		return fmt.Errorf("setting interface %s up: %w", name, err)
	}
	return nil
}

func setAddress(at *netlink.Handle, name string, address netip.Addr, bits int) error {
	link, err := at.LinkByName(name)
	if err != nil {
		return fmt.Errorf("finding interface %s: %w", name, err)
	}
	network := &net.IPNet{IP: address.AsSlice(), Mask: net.CIDRMask(bits, 32)}
	if err := at.AddrReplace(link, &netlink.Addr{IPNet: network}); err != nil {
		return fmt.Errorf("giving interface %s the address %s: %w", name, address, err)
	}
	return nil
}

func (w Network) connectHost() error {
	at, err := netlink.NewHandle()
	if err != nil {
		return fmt.Errorf("talking to the kernel's network: %w", err)
	}
	defer at.Close()
	name := w.Plan.HostInterface()
	if err := w.cable(at, name, "host"); err != nil {
		return err
	}
	// The machine may forward packets for others, for Docker's containers say;
	// it must not do so for those that come from the cluster.
	if err := writeSysctl("net/ipv4/conf/"+name+"/forwarding", "0"); err != nil {
		return err
	}
	if err := setAddress(at, name, w.Plan.HostIP(), w.Plan.NodeRange().Bits()); err != nil {
		return err
	}
	for _, route := range w.refusals() {
		if err := at.RouteReplace(&route); err != nil {
			return fmt.Errorf("refusing addresses of %s: %w", route.Dst, err)
		}
	}
	for n := 1; n <= w.Nodes; n++ {
		if err := routeVia(at, w.Plan.PodCIDR(n), w.Plan.NodeIP(n)); err != nil {
			return err
		}
	}
	return nil
}

// refusals are the routes by which the machine refuses what no longer route
// leads into the cluster.
func (w Network) refusals() []netlink.Route {
	return []netlink.Route{
		{Dst: toIPNet(w.Plan.ServiceRange()), Type: unix.RTN_UNREACHABLE},
		{Dst: toIPNet(w.Plan.PodRange()), Type: unix.RTN_UNREACHABLE},
	}
}

func routeVia(at *netlink.Handle, to netip.Prefix, via netip.Addr) error {
	if err := at.RouteReplace(&netlink.Route{Dst: toIPNet(to), Gw: via.AsSlice()}); err != nil {
		return fmt.Errorf("adding the route to %s: %w", to, err)
	}
	return nil
}

func (w Network) connectNode(n int) error {
	file := w.NodeNS(n)
	if err := makeNetNS(file); err != nil {
		return err
	}
	err := in(file, func(at *netlink.Handle) error {
		if err := setUp(at, "lo"); err != nil {
			return err
		}
		if err := w.cable(at, "eth0", fmt.Sprintf("n%d", n)); err != nil {
			return err
		}
		if err := setAddress(at, "eth0", w.Plan.NodeIP(n), w.Plan.NodeRange().Bits()); err != nil {
			return err
		}
		return w.addNodeRoutes(at, n)
	})
	if err != nil {
		return err
	}
	return inNetNS(file, func() error { return writeSysctl("net/ipv4/ip_forward", "1") })
}

func (w Network) addNodeRoutes(at *netlink.Handle, n int) error {
	for other := 1; other <= w.Nodes; other++ {
		if other == n {
			continue
		}
		if err := routeVia(at, w.Plan.PodCIDR(other), w.Plan.NodeIP(other)); err != nil {
			return err
		}
	}
	// There is no default route: whoever tries to pull an image is told at once
	// that the network is unreachable. Programs in the node's own namespace need
	// some route to Services, though, since the kernel looks for one before
	// kube-proxy's rules replace the address.
	return routeVia(at, w.Plan.ServiceRange(), w.Plan.HostIP())
}

// Down removes the network. Whatever is not there is fine.
func (w Network) Down() error {
	var problems []error
	name := w.Plan.HostInterface()
	if link, err := netlink.LinkByName(name); err == nil {
		if err := netlink.LinkDel(link); err != nil {
			problems = append(problems, fmt.Errorf("removing interface %s: %w", name, err))
		}
	}
	for _, route := range w.refusals() {
		if err := netlink.RouteDel(&route); err != nil && !errors.Is(err, unix.ESRCH) {
			problems = append(problems, fmt.Errorf("removing the route to %s: %w", route.Dst, err))
		}
	}
	entries, err := os.ReadDir(w.Dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		problems = append(problems, fmt.Errorf("listing network namespaces: %w", err))
	}
	for _, entry := range entries {
		if err := removeNetNS(filepath.Join(w.Dir, entry.Name())); err != nil {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

// SetPlugged pulls the cable of node n out of the switch, or plugs it in again.
// The node itself goes on running and keeps its addresses and routes.
func (w Network) SetPlugged(n int, plugged bool) error {
	return in(w.switchNS(), func(at *netlink.Handle) error {
		name := fmt.Sprintf("n%d", n)
		if plugged {
			return setUp(at, name)
		}
		port, err := at.LinkByName(name)
		if err != nil {
			return fmt.Errorf("finding the switch's port %s: %w", name, err)
		}
		if err := at.LinkSetDown(port); err != nil {
			return fmt.Errorf("unplugging the switch's port %s: %w", name, err)
		}
		return nil
	})
}
