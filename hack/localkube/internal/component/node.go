package component

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
)

// Images that every node needs. They are packed on this machine and imported,
// never pulled.
const (
	PauseImage   = "docker.io/library/pause:1"
	BusyboxImage = "docker.io/library/busybox:1"
	CoreDNSImage = "docker.io/library/coredns:1"
)

// Node is what the programs of one node need to know.
type Node struct {
	// Name is its name in Kubernetes.
	Name string
	// IP is its address.
	IP netip.Addr
	// PodCIDR is the range of its Pods; AllPods is that of all nodes together.
	PodCIDR, AllPods netip.Prefix
	// DNS is the address of the cluster's DNS Service.
	DNS netip.Addr
	// Cgroup is the name of the cgroup for its Pods, just below the root.
	Cgroup string
	// CgroupV1 is whether the machine manages resources with cgroup v1.
	CgroupV1 bool
	// Kube is the path of the kube program, PKI the folder of certificates.
	Kube, PKI string
	// Big and Run are the node's folders on disk and under /run.
	Big, Run string
	// ImageStore is containerd's root.
	ImageStore string
	// CNIPlugins is the folder with the CNI plugins.
	CNIPlugins string
	// FastNodeLoss shortens the kubelet's lease to go with the same setting of
	// the control plane.
	FastNodeLoss bool
}

// Socket is where the node's containerd listens.
func (n Node) Socket() string { return filepath.Join(n.Run, "containerd.sock") }

func (n Node) cniDir() string    { return filepath.Join(n.Run, "cni") }
func (n Node) podLogs() string   { return filepath.Join(n.Big, "pod-logs") }
func (n Node) configDir() string { return filepath.Join(n.Big, "config") }

// KubeletDir is the kubelet's root: volumes, and what Pods write to emptyDirs.
func (n Node) KubeletDir() string { return filepath.Join(n.Big, "kubelet") }

// Folders are those that have to exist before the programs start.
func (n Node) Folders() []string {
	return []string{n.cniDir(), n.podLogs(), n.configDir(), n.KubeletDir(), n.ImageStore, filepath.Join(n.Run, "state")}
}

// Files are the configuration files, by path.
func (n Node) Files() (map[string][]byte, error) {
	files := map[string][]byte{
		filepath.Join(n.configDir(), "containerd.toml"): []byte(n.containerdConfig()),
		// Pods without the cluster's DNS get no resolver: there is nothing
		// outside that they could reach.
		filepath.Join(n.configDir(), "resolv.conf"): nil,
	}
	for path, content := range map[string]any{
		filepath.Join(n.cniDir(), "10-localkube.conflist"): n.cniConfig(),
		filepath.Join(n.configDir(), "kubelet.json"):       n.kubeletConfig(),
		filepath.Join(n.configDir(), "kube-proxy.json"):    n.proxyConfig(),
	} {
		encoded, err := json.MarshalIndent(content, "", "  ")
		if err != nil {
			return nil, fmt.Errorf("encoding %s: %w", path, err)
		}
		files[path] = append(encoded, '\n')
	}
	return files, nil
}

// Containerd is the command line of containerd.
func (n Node) Containerd() []string {
	return []string{"containerd", "--config=" + filepath.Join(n.configDir(), "containerd.toml")}
}

// Kubelet is the command line of the kubelet.
func (n Node) Kubelet() []string {
	return []string{
		n.Kube, "kubelet",
		"--config=" + filepath.Join(n.configDir(), "kubelet.json"),
		"--kubeconfig=" + filepath.Join(n.PKI, "kubelet-"+n.Name+".conf"),
		"--hostname-override=" + n.Name,
		"--node-ip=" + n.IP.String(),
		"--root-dir=" + n.KubeletDir(),
		"--cert-dir=" + filepath.Join(n.KubeletDir(), "pki"),
	}
}

// Proxy is the command line of kube-proxy.
func (n Node) Proxy() []string {
	return []string{n.Kube, "kube-proxy", "--config=" + filepath.Join(n.configDir(), "kube-proxy.json")}
}

// containerdConfig is in the format of containerd 1.x, which 2.x reads as well.
func (n Node) containerdConfig() string {
	lines := []string{
		`version = 2`,
		fmt.Sprintf(`root = %q`, n.ImageStore),
		fmt.Sprintf(`state = %q`, filepath.Join(n.Run, "state")),
		`[grpc]`,
		fmt.Sprintf(`  address = %q`, n.Socket()),
		`[plugins."io.containerd.grpc.v1.cri"]`,
		fmt.Sprintf(`  sandbox_image = %q`, PauseImage),
		`  # Without CAP_SYS_RESOURCE, root may not lower a process's oom_score_adj,`,
		`  # and runc ends every Pod that asks for it.`,
		`  restrict_oom_score_adj = true`,
		`  # So that the namespaces are unmounted with all else after a hard stop.`,
		`  netns_mounts_under_state_dir = true`,
		`  [plugins."io.containerd.grpc.v1.cri".cni]`,
		fmt.Sprintf(`    bin_dir = %q`, n.CNIPlugins),
		fmt.Sprintf(`    conf_dir = %q`, n.cniDir()),
		`  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]`,
		`    runtime_type = "io.containerd.runc.v2"`,
		`    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]`,
		`      SystemdCgroup = false`,
		fmt.Sprintf(`      Root = %q`, filepath.Join(n.Run, "runc")),
	}
	return strings.Join(lines, "\n") + "\n"
}

type object = map[string]any

// cniConfig gives each Pod a cable of its own to the node, which routes. With a
// bridge in the node, answers of a Pod to a neighbour that came through a
// Service would bypass kube-proxy's rules wherever br_netfilter is not loaded.
func (n Node) cniConfig() object {
	return object{
		"cniVersion": "1.0.0",
		"name":       n.Cgroup,
		"plugins": []object{
			{
				"type": "ptp",
				"ipam": object{
					"type":    "host-local",
					"dataDir": filepath.Join(n.Run, "addresses"),
					"ranges":  [][]object{{{"subnet": n.PodCIDR.String()}}},
					"routes":  []object{{"dst": "0.0.0.0/0"}},
				},
			},
			{"type": "portmap", "capabilities": object{"portMappings": true}},
		},
	}
}

func (n Node) kubeletConfig() object {
	config := object{
		"apiVersion": "kubelet.config.k8s.io/v1beta1",
		"kind":       "KubeletConfiguration",
		"address":    n.IP.String(),
		"authentication": object{
			"anonymous": object{"enabled": false},
			"webhook":   object{"enabled": true},
			"x509":      object{"clientCAFile": filepath.Join(n.PKI, "ca.crt")},
		},
		"authorization":            object{"mode": "Webhook"},
		"tlsCertFile":              filepath.Join(n.PKI, "kubelet-"+n.Name+".crt"),
		"tlsPrivateKeyFile":        filepath.Join(n.PKI, "kubelet-"+n.Name+".key"),
		"clusterDNS":               []string{n.DNS.String()},
		"clusterDomain":            "cluster.local",
		"resolvConf":               filepath.Join(n.configDir(), "resolv.conf"),
		"containerRuntimeEndpoint": "unix://" + n.Socket(),
		"cgroupDriver":             "cgroupfs",
		"cgroupRoot":               "/" + n.Cgroup,
		"failSwapOn":               false,
		"podLogsDir":               n.podLogs(),
		"podCIDR":                  n.PodCIDR.String(),
		"volumePluginDir":          filepath.Join(n.KubeletDir(), "volume-plugins"),
		"healthzBindAddress":       "127.0.0.1",
		// The machine's disk is shared with all that is not the cluster: how
		// full it is says nothing about the Pods, and images cannot be pulled
		// again once collected.
		"imageGCHighThresholdPercent": 100,
		"evictionHard": object{
			"memory.available": "100Mi",
			"nodefs.available": "0%", "nodefs.inodesFree": "0%",
			"imagefs.available": "0%", "imagefs.inodesFree": "0%",
		},
		"nodeStatusUpdateFrequency": "5s",
		"registerNode":              true,
	}
	if n.CgroupV1 {
		config["failCgroupV1"] = false
	}
	if n.FastNodeLoss {
		config["nodeLeaseDurationSeconds"] = 8
		config["nodeStatusUpdateFrequency"] = "2s"
	}
	return config
}

func (n Node) proxyConfig() object {
	return object{
		"apiVersion":       "kubeproxy.config.k8s.io/v1alpha1",
		"kind":             "KubeProxyConfiguration",
		"mode":             "nftables",
		"clusterCIDR":      n.AllPods.String(),
		"hostnameOverride": n.Name,
		"clientConnection": object{"kubeconfig": filepath.Join(n.PKI, "proxy.conf")},
		// Connection tracking is set for the whole kernel: leave it as it is.
		"conntrack": object{"maxPerCore": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
	}
}
