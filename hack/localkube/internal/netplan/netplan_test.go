package netplan

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChoose(t *testing.T) {
	tests := map[string]struct {
		inUse  []string
		others map[int]bool
		want   int
	}{
		"an empty machine gets the first plan": {want: 0},
		"a plan of another cluster is skipped": {others: map[int]bool{0: true, 1: true}, want: 2},
		"a route into the Pod range is avoided": {
			inUse: []string{"10.232.4.0/24"}, want: 1,
		},
		"an address in the node network is avoided": {
			inUse: []string{"10.231.0.77/32"}, want: 1,
		},
		"a route around the Service ranges of two plans is avoided": {
			inUse: []string{"10.240.0.0/15"}, want: 2,
		},
		"a very wide route does not stand in the way": {
			inUse: []string{"10.0.0.0/8", "0.0.0.0/0"}, want: 0,
		},
		"an unrelated network does not stand in the way": {
			inUse: []string{"192.168.1.0/24", "172.17.0.0/16"}, want: 0,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var inUse []netip.Prefix
			for _, text := range test.inUse {
				inUse = append(inUse, netip.MustParsePrefix(text))
			}
			got, err := Choose(inUse, test.others)
			if err != nil {
				t.Fatal(err)
			}
			if got.Index != test.want {
				t.Errorf("got plan %d, want %d", got.Index, test.want)
			}
		})
	}
}

func TestChooseSaysSoWhenNothingIsFree(t *testing.T) {
	if plan, err := Choose([]netip.Prefix{netip.MustParsePrefix("10.224.0.0/12")}, nil); err == nil {
		t.Errorf("got plan %d on a machine that uses all of our node networks, want an error", plan.Index)
	}
}

func TestPlansDoNotOverlap(t *testing.T) {
	seen := map[netip.Prefix]int{}
	for index := range Indexes {
		plan := Plan{Index: index}
		for _, ours := range []netip.Prefix{plan.NodeRange(), plan.PodRange(), plan.ServiceRange()} {
			for other, owner := range seen {
				if ours.Overlaps(other) {
					t.Errorf("range %s of plan %d overlaps with %s of plan %d", ours, index, other, owner)
				}
			}
			seen[ours] = index
		}
	}
}

func TestAddressesLieInTheirRanges(t *testing.T) {
	plan := Plan{Index: 3}
	got := map[string]string{
		"host": plan.HostIP().String(), "node 2": plan.NodeIP(2).String(), "Pods of node 2": plan.PodCIDR(2).String(),
		"API": plan.APIServiceIP().String(), "DNS": plan.DNSIP().String(),
		"interface": plan.HostInterface(), "cgroup": plan.CgroupName(2), "name": NodeName(2),
	}
	want := map[string]string{
		"host": "10.231.3.1", "node 2": "10.231.3.12", "Pods of node 2": "10.235.2.0/24",
		"API": "10.243.0.1", "DNS": "10.243.0.10",
		"interface": "lk3", "cgroup": "lk3-n2", "name": "node-2",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
	if !plan.NodeRange().Contains(plan.NodeIP(20)) || !plan.PodRange().Overlaps(plan.PodCIDR(20)) {
		t.Error("the twentieth node lies outside of the cluster's ranges")
	}
}
