package cluster

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/heliostat-io/heliostat/hack/localkube/internal/cgroup"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/netplan"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/state"
)

// The programs of a node write to some folders of the machine whose paths cannot
// be set. What is removed from them is known to be ours, file by file.
const (
	cniCache        = "/var/lib/cni/results"
	containerLogs   = "/var/log/containers"
	shimSockets     = "/run/containerd/s"
	deviceSocket    = "/var/lib/kubelet/device-plugins/kubelet.sock"
	otherContainerd = "/run/containerd/containerd.sock"
)

// podTraces returns the files that the Pods of a cluster have left in folders of
// the machine. It reads the folders in which containerd keeps one folder for
// each running container.
func (m Manager) podTraces(cluster state.Cluster) []string {
	var files []string
	for n := 1; n <= cluster.Nodes; n++ {
		_, run := m.Dirs.Node(n)
		files = append(files, tracesOf(filepath.Join(run, "state", "io.containerd.runtime.v2.task", "k8s.io"))...)
	}
	return files
}

func tracesOf(tasks string) []string {
	entries, err := os.ReadDir(tasks)
	if err != nil {
		// No folder means no containers.
		return nil
	}
	var files []string
	for _, entry := range entries {
		// The CNI library's memory of the loopback interface, which it calls by
		// the same name in every containerd.
		files = append(files, filepath.Join(cniCache, "cni-loopback-"+entry.Name()+"-lo"))
		address, err := os.ReadFile(filepath.Join(tasks, entry.Name(), "address"))
		if err != nil {
			continue
		}
		socket, isPath := strings.CutPrefix(strings.TrimSpace(string(address)), "unix://")
		if isPath && filepath.Dir(socket) == shimSockets {
			files = append(files, socket)
		}
	}
	return files
}

// removeTraces removes what the programs of a cluster have left outside of its
// folders: cgroups, the traces of its Pods, caches, links and sockets.
func (m Manager) removeTraces(cluster state.Cluster, host cgroup.Host, pods []string) error {
	plan := netplan.Plan{Index: cluster.Index}
	var problems []error
	for n := 1; n <= cluster.Nodes; n++ {
		problems = append(problems, host.Remove(plan.CgroupName(n)))
		// The network of a node is called like its cgroup.
		found, err := filepath.Glob(filepath.Join(cniCache, plan.CgroupName(n)+"-*"))
		problems = append(problems, err)
		pods = append(pods, found...)
	}
	links, err := m.logLinks()
	problems = append(problems, err)
	for _, file := range append(pods, links...) {
		problems = append(problems, removeFile(file))
	}
	problems = append(problems, removeDeadSocket(deviceSocket))
	folders := []string{
		cniCache, filepath.Dir(cniCache), containerLogs, filepath.Dir(deviceSocket), filepath.Dir(filepath.Dir(deviceSocket)),
	}
	if _, err := os.Stat(otherContainerd); errors.Is(err, os.ErrNotExist) {
		folders = append(folders, shimSockets, "/run/containerd/fifo", "/run/containerd/runc", "/run/containerd")
	}
	for _, folder := range folders {
		// Only if nothing is in it, or else it is somebody else's too.
		_ = os.Remove(folder)
	}
	return errors.Join(problems...)
}

func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing a trace of the cluster: %w", err)
	}
	return nil
}

// logLinks returns the links that kubelets make for log collectors, as far as
// they lead to our logs.
func (m Manager) logLinks() ([]string, error) {
	links, err := filepath.Glob(filepath.Join(containerLogs, "*.log"))
	if err != nil {
		return nil, fmt.Errorf("looking for links to logs: %w", err)
	}
	var ours []string
	for _, link := range links {
		target, err := os.Readlink(link)
		if err == nil && strings.HasPrefix(target, m.Dirs.Big+"/") {
			ours = append(ours, link)
		}
	}
	return ours, nil
}

// removeDeadSocket removes a socket that nobody listens on. Every kubelet of the
// machine makes its socket for device plugins at the same path; the one there
// may be that of a living kubelet, ours or another.
func removeDeadSocket(path string) error {
	connection, err := net.Dial("unix", path)
	if err == nil {
		connection.Close()
		return nil
	}
	if errors.Is(err, unix.ECONNREFUSED) {
		return removeFile(path)
	}
	return nil
}
