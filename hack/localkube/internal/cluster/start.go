package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/heliostat-io/heliostat/hack/localkube/internal/addons"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/cgroup"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/component"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/netplan"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/ports"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/proc"
)

// daemons are the programs that one attempt has started.
type daemons struct {
	mu  sync.Mutex
	all []*proc.Daemon
}

func (d *daemons) add(daemon *proc.Daemon) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, daemon)
}

func (d *daemons) list() []*proc.Daemon {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.all)
}

func (s *start) launch(name, netns string, args []string) (*proc.Daemon, error) {
	daemon, err := s.starter.Start(proc.Spec{Name: name, Args: args, NetNS: netns})
	if err != nil {
		return nil, err
	}
	s.daemons.add(daemon)
	return daemon, nil
}

func (s *start) startControlPlane(ctx context.Context) error {
	free, err := ports.Free(2)
	if err != nil {
		return err
	}
	plan := netplan.Plan{Index: s.cluster.Index}
	plane := component.ControlPlane{
		Kube:           s.cluster.Kube,
		PKI:            s.Dirs.PKI(),
		EtcdData:       s.Dirs.Etcd(),
		EtcdClientPort: free[0],
		EtcdPeerPort:   free[1],
		IP:             plan.HostIP(),
		Port:           apiServerPort,
		Services:       plan.ServiceRange(),
		FastNodeLoss:   s.cluster.FastNodeLoss,
		APIServerArgs:  s.options.APIServerArgs,
		Scratch:        s.scratch(),
	}
	if _, err := s.launch("etcd", "", plane.Etcd()); err != nil {
		return err
	}
	if _, err := s.launch("kube-apiserver", "", plane.APIServer()); err != nil {
		return err
	}
	client, err := s.client(s.cluster)
	if err != nil {
		return err
	}
	if err := proc.WaitFor(ctx, s.options.Wait, "the API server is ready", client.Ready, s.daemons.list()...); err != nil {
		return err
	}
	if _, err := s.launch("kube-controller-manager", "", plane.ControllerManager()); err != nil {
		return err
	}
	_, err = s.launch("kube-scheduler", "", plane.Scheduler())
	return err
}

// startNodes starts all nodes at the same time.
func (s *start) startNodes(ctx context.Context) error {
	host, err := cgroup.Detect()
	if err != nil {
		return err
	}
	if err := saveControllers(host); err != nil {
		return err
	}
	s.host = host
	problems := make([]error, s.cluster.Nodes)
	var nodes sync.WaitGroup
	for n := 1; n <= s.cluster.Nodes; n++ {
		nodes.Go(func() {
			if err := s.startNode(ctx, n); err != nil {
				problems[n-1] = fmt.Errorf("starting %s: %w", netplan.NodeName(n), err)
			}
		})
	}
	nodes.Wait()
	return errors.Join(problems...)
}

func (s *start) startNode(ctx context.Context, n int) error {
	node, err := s.node(s.cluster, n, s.host)
	if err != nil {
		return err
	}
	if err := writeNodeFiles(node); err != nil {
		return err
	}
	if err := s.host.Make(node.Cgroup); err != nil {
		return err
	}
	netns := s.network(s.cluster).NodeNS(n)
	if err := s.startRuntime(ctx, n, netns, node); err != nil {
		return err
	}
	for _, archive := range s.archives {
		contents, err := readIndex(archive)
		if err != nil {
			return err
		}
		if _, err := s.importInto(ctx, n, archive, contents); err != nil {
			return err
		}
	}
	kubelet, err := s.launch(nodeComponent(n, "kubelet"), netns, node.Kubelet())
	if err != nil {
		return err
	}
	// kube-proxy waits half a minute for its node to have an address. After that
	// it goes on without one, and ends as soon as the node gets it.
	client, err := s.client(s.cluster)
	if err != nil {
		return err
	}
	registered := func(ctx context.Context) error { return client.NodeHasAddress(ctx, node.Name) }
	if err := proc.WaitFor(ctx, s.options.Wait, "it has registered", registered, kubelet); err != nil {
		return err
	}
	_, err = s.launch(nodeComponent(n, "kube-proxy"), netns, node.Proxy())
	return err
}

func writeNodeFiles(node component.Node) error {
	for _, dir := range node.Folders() {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("making a folder: %w", err)
		}
	}
	files, err := node.Files()
	if err != nil {
		return err
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if err := os.WriteFile(path, files[path], 0o644); err != nil {
			return fmt.Errorf("writing a configuration file: %w", err)
		}
	}
	return nil
}

// startRuntime starts containerd. Its image store may be that of an earlier
// cluster; if that one ended hard, containers are still known in it, which the
// kubelet would take for Pods. containerd forgets them only when it starts.
func (s *start) startRuntime(ctx context.Context, n int, netns string, node component.Node) error {
	name := nodeComponent(n, "containerd")
	for range 2 {
		daemon, err := s.launch(name, netns, node.Containerd())
		if err != nil {
			return err
		}
		runtime := s.runtime(n)
		if err := proc.WaitFor(ctx, s.options.Wait, "containerd answers", runtime.ready, daemon); err != nil {
			return err
		}
		known, err := runtime.containers(ctx)
		if err != nil {
			return err
		}
		if len(known) == 0 {
			return nil
		}
		s.Log.Printf("%s: forgetting %d containers of an earlier cluster", node.Name, len(known))
		if err := runtime.forgetContainers(ctx); err != nil {
			return err
		}
		if err := s.stopDaemon(daemon); err != nil {
			return err
		}
	}
	return errors.New("containerd still knows containers of an earlier cluster; remove them with `localkube down --purge`")
}

func (s *start) stopDaemon(daemon *proc.Daemon) error {
	records, err := proc.Records(s.Dirs.Records())
	if err != nil {
		return err
	}
	for _, record := range records {
		if record.Name == daemon.Name {
			if err := proc.Stop(record, 10*time.Second); err != nil {
				return err
			}
		}
	}
	s.daemons.mu.Lock()
	defer s.daemons.mu.Unlock()
	s.daemons.all = slices.DeleteFunc(s.daemons.all, func(other *proc.Daemon) bool { return other == daemon })
	return nil
}

func (s *start) addObjects(ctx context.Context) error {
	plan := netplan.Plan{Index: s.cluster.Index}
	if err := s.apply(ctx, s.cluster.Kube, "cluster DNS", addons.DNS(plan.DNSIP())); err != nil {
		return err
	}
	return s.addVolumes(ctx, s.cluster.Kube)
}

func (s *start) waitReady(ctx context.Context) error {
	client, err := s.client(s.cluster)
	if err != nil {
		return err
	}
	nodesReady := func(ctx context.Context) error { return client.NodesReady(ctx, s.cluster.Nodes) }
	if err := proc.WaitFor(ctx, s.options.Wait, "all nodes are ready", nodesReady, s.daemons.list()...); err != nil {
		return err
	}
	dnsReady := func(ctx context.Context) error { return client.DeploymentAvailable(ctx, "kube-system", "coredns") }
	if err := proc.WaitFor(ctx, s.options.Wait, "cluster DNS is ready", dnsReady, s.daemons.list()...); err != nil {
		return err
	}
	for _, daemon := range s.daemons.list() {
		if err := daemon.Ended(); err != nil {
			return fmt.Errorf("checking that everything still runs: %w", err)
		}
	}
	return nil
}
