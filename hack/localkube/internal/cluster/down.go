package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/heliostat-io/heliostat/hack/localkube/internal/cgroup"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/kernel"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/mounts"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/netplan"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/proc"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/state"
)

// Down ends the cluster and leaves the machine as it was before. Image stores
// and logs stay unless purge is set. A cluster that is not there is fine.
func (m Manager) Down(ctx context.Context, purge bool) error {
	if err := requireRoot(); err != nil {
		return err
	}
	release, err := m.lock(ctx)
	if err != nil {
		return err
	}
	defer release()
	cluster, err := m.owned()
	if err != nil {
		return err
	}
	if cluster == nil {
		m.Log.Printf("cluster %s is not up", m.Dirs.Name)
	} else {
		if err := m.clean(ctx, *cluster); err != nil {
			return err
		}
		m.Log.Printf("cluster %s is down", m.Dirs.Name)
	}
	if !purge {
		return nil
	}
	if err := os.RemoveAll(m.Dirs.Big); err != nil {
		return fmt.Errorf("removing the data of cluster %s: %w", m.Dirs.Name, err)
	}
	m.Log.Printf("removed its image stores and logs as well")
	return nil
}

func (m Manager) lock(ctx context.Context) (func(), error) {
	return state.Lock(ctx, state.LockFile(), func() {
		m.Log.Printf("waiting for another localkube to finish")
	})
}

// clean removes everything of a cluster from the machine, whatever state it is
// in. It goes on after an error, as far as that is safe.
func (m Manager) clean(ctx context.Context, cluster state.Cluster) error {
	host, err := cgroup.Detect()
	if err != nil {
		return err
	}
	records, err := proc.Records(m.Dirs.Records())
	if err != nil {
		return err
	}
	// Only while its Pods run can be seen what they have left elsewhere.
	traces := m.podTraces(cluster)
	var problems []error
	problems = append(problems, m.stopNodes(ctx, cluster, host, records))
	// Their data is thrown away, so there is nothing that they could lose.
	problems = append(problems, stopAll(records, 0))
	network := m.network(cluster)
	problems = append(problems, network.Down())
	problems = append(problems, m.removeTraces(cluster, host, traces))
	problems = append(problems, mounts.Clear(m.Dirs.Run, m.Dirs.Big))
	problems = append(problems, m.stopLatecomers())
	if err := errors.Join(problems...); err != nil {
		// What is left may be mounted or in use: its folders and the memory of
		// the cluster stay, so that the next attempt finds it.
		return fmt.Errorf("taking cluster %s down: %w", m.Dirs.Name, err)
	}
	return m.removeFolders(host)
}

// stopLatecomers ends programs that were recorded while the others were stopped:
// a localkube that was killed may have left one on its way. Without the folder
// for its record, one that comes later still gives up by itself.
func (m Manager) stopLatecomers() error {
	late, err := proc.Records(m.Dirs.Records())
	if err != nil {
		return err
	}
	if err := os.RemoveAll(m.Dirs.Records()); err != nil {
		return fmt.Errorf("removing process records: %w", err)
	}
	return stopAll(late, 0)
}

// stopNodes ends what runs on the nodes, all nodes at the same time.
func (m Manager) stopNodes(ctx context.Context, cluster state.Cluster, host cgroup.Host, records []proc.Record) error {
	problems := make([]error, cluster.Nodes)
	var nodes sync.WaitGroup
	for n := 1; n <= cluster.Nodes; n++ {
		nodes.Go(func() {
			if err := m.stopNode(ctx, cluster, n, host, records); err != nil {
				problems[n-1] = fmt.Errorf("stopping %s: %w", netplan.NodeName(n), err)
			}
		})
	}
	nodes.Wait()
	return errors.Join(problems...)
}

// stopNode ends the kubelet first, so that nothing is started again, then the
// Pods, and containerd last, which has to write down that they are gone.
func (m Manager) stopNode(ctx context.Context, cluster state.Cluster, n int, host cgroup.Host, records []proc.Record) error {
	var agents, runtimes []proc.Record
	for _, record := range records {
		switch record.Name {
		case nodeComponent(n, "kubelet"), nodeComponent(n, "kube-proxy"):
			agents = append(agents, record)
		case nodeComponent(n, "containerd"):
			runtimes = append(runtimes, record)
		}
	}
	plan := netplan.Plan{Index: cluster.Index}
	_, run := m.Dirs.Node(n)
	socket := filepath.Join(run, "containerd.sock")
	var problems []error
	problems = append(problems, stopAll(agents, 0))
	problems = append(problems, host.Kill(plan.CgroupName(n)))
	shims, err := proc.Shims(socket)
	problems = append(problems, err, stopAll(shims, 0))
	for _, runtime := range runtimes {
		if runtime.Alive() {
			// Containers that stay known only cost time at the next start, which
			// forgets them as well.
			_ = m.runtime(n).forgetContainers(ctx)
		}
	}
	problems = append(problems, stopAll(runtimes, 10*time.Second))
	// A shim that was just being started when we looked.
	shims, err = proc.Shims(socket)
	problems = append(problems, err, stopAll(shims, 0), host.Kill(plan.CgroupName(n)))
	return errors.Join(problems...)
}

func stopAll(records []proc.Record, grace time.Duration) error {
	problems := make([]error, len(records))
	var stopping sync.WaitGroup
	for i, record := range records {
		stopping.Go(func() { problems[i] = proc.Stop(record, grace) })
	}
	stopping.Wait()
	return errors.Join(problems...)
}

// removeFolders removes the cluster's folders, image stores and logs aside, and
// restores the kernel's settings if this was the last cluster.
func (m Manager) removeFolders(host cgroup.Host) error {
	if err := m.removeData(); err != nil {
		return err
	}
	others, err := m.Dirs.Others()
	if err != nil {
		return err
	}
	if len(others) == 0 {
		settings := kernel.Settings{Root: "/proc/sys"}
		if err := settings.Restore(state.SysctlFile()); err != nil {
			return err
		}
		if err := restoreControllers(host); err != nil {
			return err
		}
	}
	// Last, since it holds the memory of the cluster.
	if err := os.RemoveAll(m.Dirs.Run); err != nil {
		return fmt.Errorf("removing the run folder of cluster %s: %w", m.Dirs.Name, err)
	}
	return nil
}

// removeData removes all data of the cluster from the disk but image stores and
// logs. Nothing may be mounted there: what is behind a mount is not ours.
func (m Manager) removeData() error {
	if err := mounts.Clear(m.Dirs.Big); err != nil {
		return fmt.Errorf("removing data of cluster %s: %w", m.Dirs.Name, err)
	}
	remove := []string{m.Dirs.PKI(), m.Dirs.Etcd(), m.Dirs.Volumes(), m.scratch()}
	for n := 1; n <= state.MaxNodes; n++ {
		big, _ := m.Dirs.Node(n)
		entries, err := os.ReadDir(big)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("listing the data of %s: %w", netplan.NodeName(n), err)
		}
		for _, entry := range entries {
			if path := filepath.Join(big, entry.Name()); path != m.Dirs.ImageStore(n) {
				remove = append(remove, path)
			}
		}
		// containerd keeps what it knows of Pods beside the images.
		for _, pods := range []string{"sandboxes", "containers"} {
			remove = append(remove, filepath.Join(m.Dirs.ImageStore(n), "io.containerd.grpc.v1.cri", pods))
		}
	}
	for _, path := range remove {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("removing data of cluster %s: %w", m.Dirs.Name, err)
		}
	}
	return nil
}

func (m Manager) scratch() string { return filepath.Join(m.Dirs.Big, "scratch") }
