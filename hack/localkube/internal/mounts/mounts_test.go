package mounts

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const table = `22 27 0:21 / /proc rw,relatime - proc proc rw
33 31 0:29 / /sys/fs/cgroup/memory rw,relatime shared:5 - cgroup cgroup rw,memory
40 27 0:50 / /var/a rw - overlay overlay rw
41 27 0:51 / /var/a\040b rw,relatime shared:9 master:2 - tmpfs tmpfs rw
42 40 0:52 / /var/a/deep rw - tmpfs tmpfs rw
43 27 0:53 / /var/ab rw - tmpfs tmpfs rw
cut
`

func TestParse(t *testing.T) {
	want := []Mount{
		{Point: "/proc", Type: "proc"},
		{Point: "/sys/fs/cgroup/memory", Type: "cgroup"},
		{Point: "/var/a", Type: "overlay"},
		{Point: "/var/a b", Type: "tmpfs"},
		{Point: "/var/a/deep", Type: "tmpfs"},
		{Point: "/var/ab", Type: "tmpfs"},
	}
	if diff := cmp.Diff(want, parse(table)); diff != "" {
		t.Errorf("mounts (-want +got):\n%s", diff)
	}
}

func TestUnderLeavesNeighboursAlone(t *testing.T) {
	want := []string{"/var/a/deep", "/var/a"}
	if diff := cmp.Diff(want, under(parse(table), "/var/a")); diff != "" {
		t.Errorf("mounts under /var/a, newest first (-want +got):\n%s", diff)
	}
}
