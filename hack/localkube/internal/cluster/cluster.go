// Package cluster brings a cluster up on this machine and takes it down again.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/heliostat-io/heliostat/hack/localkube/internal/builder"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/cgroup"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/component"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/debian"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/hostnet"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/kubeapi"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/netplan"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/proc"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/progress"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/state"
)

// Options say what a cluster shall be like.
type Options struct {
	// Nodes is the number of nodes, 1 to state.MaxNodes.
	Nodes int
	// FastNodeLoss makes the cluster notice a lost node within about eight
	// seconds instead of Kubernetes' default of fifty.
	FastNodeLoss bool
	// APIServerArgs are added to the API server's command line.
	APIServerArgs []string
	// Wait is how long any one thing may take to become ready. On an idle
	// machine none takes more than five seconds.
	Wait time.Duration
}

// DefaultWait is for machines that do a lot of other things as well.
const DefaultWait = 3 * time.Minute

// Manager works on one cluster.
type Manager struct {
	// Dirs are the cluster's folders.
	Dirs state.Dirs
	// Images is the cache folder for image archives.
	Images string
	// Builder builds the programs when they are missing.
	Builder builder.Builder
	// Launcher is the command line that leads to proc.Launch.
	Launcher []string
	// Log is told about progress.
	Log *progress.Log
}

// ErrNotRoot is returned by what only root can do.
var ErrNotRoot = errors.New("nodes need network namespaces, mounts and cgroups, and those need root: run it with sudo (`localkube apiserver` works without)")

const apiServerPort = 6443

func (m Manager) network(cluster state.Cluster) hostnet.Network {
	return hostnet.Network{Plan: netplan.Plan{Index: cluster.Index}, Dir: m.Dirs.NetNS(), Nodes: cluster.Nodes}
}

func (m Manager) starter() proc.Starter {
	return proc.Starter{RecordDir: m.Dirs.Records(), LogDir: m.Dirs.Logs(), Launcher: m.Launcher}
}

func serverURL(cluster state.Cluster) string {
	plan := netplan.Plan{Index: cluster.Index}
	return component.ControlPlane{IP: plan.HostIP(), Port: apiServerPort}.Server()
}

func (m Manager) client(cluster state.Cluster) (*kubeapi.Client, error) {
	return kubeapi.New(serverURL(cluster), m.Dirs.PKI())
}

// node returns what the programs of node n are told.
func (m Manager) node(cluster state.Cluster, n int, host cgroup.Host) (component.Node, error) {
	plan := netplan.Plan{Index: cluster.Index}
	plugins, err := debian.ThisMachine().CNIPlugins()
	if err != nil {
		return component.Node{}, err
	}
	big, run := m.Dirs.Node(n)
	return component.Node{
		Name:         netplan.NodeName(n),
		IP:           plan.NodeIP(n),
		PodCIDR:      plan.PodCIDR(n),
		AllPods:      plan.PodRange(),
		DNS:          plan.DNSIP(),
		Cgroup:       plan.CgroupName(n),
		CgroupV1:     host.V1,
		Kube:         cluster.Kube,
		PKI:          m.Dirs.PKI(),
		Big:          big,
		Run:          run,
		ImageStore:   m.Dirs.ImageStore(n),
		CNIPlugins:   plugins,
		FastNodeLoss: cluster.FastNodeLoss,
	}, nil
}

// componentNames are the names of all processes of a cluster of that many nodes.
func componentNames(nodes int) []string {
	names := []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}
	for n := 1; n <= nodes; n++ {
		names = append(names, nodeComponent(n, "containerd"), nodeComponent(n, "kubelet"), nodeComponent(n, "kube-proxy"))
	}
	return names
}

func nodeComponent(n int, name string) string { return fmt.Sprintf("n%d-%s", n, name) }

// healthy returns nil when the remembered cluster was brought up completely, all
// of its processes run, and all of its nodes are ready.
func (m Manager) healthy(ctx context.Context, cluster state.Cluster) error {
	if !cluster.Up {
		return errors.New("it was not brought up completely")
	}
	records, err := proc.Records(m.Dirs.Records())
	if err != nil {
		return err
	}
	alive := map[string]bool{}
	for _, record := range records {
		alive[record.Name] = record.Alive()
	}
	for _, name := range componentNames(cluster.Nodes) {
		if !alive[name] {
			return fmt.Errorf("%s does not run", name)
		}
	}
	client, err := m.client(cluster)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := client.Ready(ctx); err != nil {
		return err
	}
	return client.NodesReady(ctx, cluster.Nodes)
}

// running returns the remembered cluster if it was brought up, and otherwise an
// error that says how to start it.
func (m Manager) running() (state.Cluster, error) {
	cluster, err := m.owned()
	if err != nil {
		return state.Cluster{}, err
	}
	if cluster == nil || !cluster.Up {
		return state.Cluster{}, fmt.Errorf("cluster %s is not up: start it with `localkube up`", m.Dirs.Name)
	}
	return *cluster, nil
}

// owned returns the remembered cluster, nil if there is none, and an error if
// the name is used by a cluster of another cache folder.
func (m Manager) owned() (*state.Cluster, error) {
	cluster, err := m.Dirs.Load()
	if err != nil || cluster == nil {
		return nil, err
	}
	if cluster.Dir != m.Dirs.Big {
		return nil, fmt.Errorf("a cluster called %s with its data in %s is up: choose another --name, or set %s=%s to work on that one",
			m.Dirs.Name, cluster.Dir, state.EnvCache, filepath.Dir(filepath.Dir(cluster.Dir)))
	}
	return cluster, nil
}

// Kubectl returns a command that runs kubectl against the running cluster.
func (m Manager) Kubectl(ctx context.Context, args ...string) (*exec.Cmd, error) {
	cluster, err := m.running()
	if err != nil {
		return nil, err
	}
	return m.kubectl(ctx, cluster.Kube, args...), nil
}

func (m Manager) kubectl(ctx context.Context, kube string, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, kube, append([]string{"kubectl"}, args...)...)
	command.Env = append(os.Environ(), "KUBECONFIG="+m.Dirs.Kubeconfig(), "KUBECACHEDIR="+filepath.Join(m.scratch(), "kubectl"))
	return command
}

func requireRoot() error {
	if os.Geteuid() != 0 {
		return ErrNotRoot
	}
	return nil
}
