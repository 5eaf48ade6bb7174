package cgroup

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestToSwitchOn(t *testing.T) {
	tests := map[string]struct {
		available, on string
		want          []string
	}{
		"what systemd leaves off": {
			available: "cpuset cpu io memory hugetlb pids rdma misc\n", on: "cpu memory pids\n", want: []string{"cpuset", "hugetlb"},
		},
		"a kernel without huge pages": {available: "cpuset cpu memory pids", on: "", want: []string{"cpu", "cpuset", "memory", "pids"}},
		"everything is on":            {available: "cpuset cpu memory pids", on: "pids memory cpu cpuset"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, toSwitchOn(test.available, test.on)); diff != "" {
				t.Errorf("controllers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMakeFillsTheCpusetAndRemoveTakesAllLevelsAway(t *testing.T) {
	cpuset, memory := t.TempDir(), t.TempDir()
	for file, content := range map[string]string{"cpuset.cpus": "0-3\n", "cpuset.mems": "0\n"} {
		if err := os.WriteFile(filepath.Join(cpuset, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	host := Host{V1: true, roots: []string{cpuset, memory}}
	if err := host.Make("lk0-n1"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(cpuset, "lk0-n1", "cpuset.cpus"))
	if err != nil || string(got) != "0-3\n" {
		t.Errorf("got CPUs %q and error %v, want those of the root", got, err)
	}
	// A real cgroup has no files of its own that would stop rmdir.
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		if err := os.Remove(filepath.Join(cpuset, "lk0-n1", file)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(memory, "lk0-n1", "kubepods", "pod1"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := host.Remove("lk0-n1"); err != nil {
		t.Fatal(err)
	}
	for _, root := range host.roots {
		if _, err := os.Stat(filepath.Join(root, "lk0-n1")); !os.IsNotExist(err) {
			t.Errorf("the cgroup below %s is still there: %v", root, err)
		}
	}
	if err := host.Remove("lk0-n1"); err != nil {
		t.Errorf("removing it a second time: %v", err)
	}
}
