package component

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func testNode() Node {
	return Node{
		Name: "node-2", IP: netip.MustParseAddr("10.231.0.12"),
		PodCIDR: netip.MustParsePrefix("10.232.2.0/24"), AllPods: netip.MustParsePrefix("10.232.0.0/16"),
		DNS: netip.MustParseAddr("10.240.0.10"), Cgroup: "lk0-n2", Kube: "/bin/kube", PKI: "/c/pki",
		Big: "/c/n2", Run: "/run/c/n2", ImageStore: "/c/n2/containerd", CNIPlugins: "/usr/lib/cni",
	}
}

func readConfig(t *testing.T, node Node, suffix string) map[string]any {
	t.Helper()
	files, err := node.Files()
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range files {
		if !strings.HasSuffix(path, suffix) {
			continue
		}
		var config map[string]any
		if err := json.Unmarshal(content, &config); err != nil {
			t.Fatalf("%s is not JSON: %v", path, err)
		}
		return config
	}
	t.Fatalf("no file %s among the node's", suffix)
	return nil
}

func TestKubeletConfigFollowsTheMachineAndTheOptions(t *testing.T) {
	tests := map[string]struct {
		change func(*Node)
		want   map[string]any
	}{
		"cgroup v2 needs no word about v1": {
			change: func(*Node) {},
			want: map[string]any{
				"cgroupRoot": "/lk0-n2", "cgroupDriver": "cgroupfs", "failCgroupV1": nil,
				"nodeStatusUpdateFrequency": "5s", "nodeLeaseDurationSeconds": nil,
				"containerRuntimeEndpoint": "unix:///run/c/n2/containerd.sock",
			},
		},
		"on cgroup v1 the kubelet must not refuse to start": {
			change: func(n *Node) { n.CgroupV1 = true },
			want:   map[string]any{"failCgroupV1": false},
		},
		"a node that shall be missed soon reports often": {
			change: func(n *Node) { n.FastNodeLoss = true },
			want:   map[string]any{"nodeStatusUpdateFrequency": "2s", "nodeLeaseDurationSeconds": 8.0},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			node := testNode()
			test.change(&node)
			config := readConfig(t, node, "/kubelet.json")
			got := map[string]any{}
			for key := range test.want {
				got[key] = config[key]
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("kubelet configuration (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPodNetworkHasAddressesOfTheNodeOnly(t *testing.T) {
	config := readConfig(t, testNode(), ".conflist")
	plugins := config["plugins"].([]any)
	ipam := plugins[0].(map[string]any)["ipam"]
	want := map[string]any{
		"type": "host-local", "dataDir": "/run/c/n2/addresses",
		"ranges": []any{[]any{map[string]any{"subnet": "10.232.2.0/24"}}},
		"routes": []any{map[string]any{"dst": "0.0.0.0/0"}},
	}
	if diff := cmp.Diff(want, ipam); diff != "" {
		t.Errorf("address management (-want +got):\n%s", diff)
	}
	if config["name"] != "lk0-n2" {
		t.Errorf("the network is called %v; cleaning up looks for the cgroup's name", config["name"])
	}
}

func TestContainerdKeepsToItsOwnFolders(t *testing.T) {
	config := testNode().containerdConfig()
	for _, want := range []string{
		`root = "/c/n2/containerd"`, `state = "/run/c/n2/state"`, `address = "/run/c/n2/containerd.sock"`,
		`Root = "/run/c/n2/runc"`, `restrict_oom_score_adj = true`, `netns_mounts_under_state_dir = true`,
		`sandbox_image = "docker.io/library/pause:1"`, `bin_dir = "/usr/lib/cni"`,
	} {
		if !strings.Contains(config, want) {
			t.Errorf("containerd's configuration lacks %s:\n%s", want, config)
		}
	}
}

func TestControlPlaneFlags(t *testing.T) {
	plane := ControlPlane{
		Kube: "/bin/kube", PKI: "/pki", EtcdClientPort: 1234, EtcdPeerPort: 1235,
		IP: netip.MustParseAddr("127.0.0.1"), Port: 6443, Services: netip.MustParsePrefix("10.96.0.0/16"),
		APIServerArgs: []string{"--v=2"},
	}
	alone, fast := plane, plane
	alone.Alone, fast.FastNodeLoss = true, true
	tests := map[string]struct {
		args         []string
		want, refuse []string
	}{
		"etcd asks its clients for a certificate": {
			args: plane.Etcd(), want: []string{"--client-cert-auth", "--listen-client-urls=https://127.0.0.1:1234"},
		},
		"an API server with nodes knows node authorization": {
			args:   plane.APIServer(),
			want:   []string{"--authorization-mode=Node,RBAC", "--etcd-servers=https://127.0.0.1:1234", "--v=2"},
			refuse: []string{"--disable-admission-plugins=ServiceAccount"},
		},
		"an API server alone admits Pods without a service account": {
			args: alone.APIServer(), want: []string{"--disable-admission-plugins=ServiceAccount", "--endpoint-reconciler-type=none"},
		},
		"controllers are patient by default": {
			args: plane.ControllerManager(), refuse: []string{"--node-monitor-grace-period=8s"},
		},
		"controllers notice lost nodes early on request": {
			args: fast.ControllerManager(), want: []string{"--node-monitor-grace-period=8s"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for _, flag := range test.want {
				if !slices.Contains(test.args, flag) {
					t.Errorf("no %s in %v", flag, test.args)
				}
			}
			for _, flag := range test.refuse {
				if slices.Contains(test.args, flag) {
					t.Errorf("unwanted %s in %v", flag, test.args)
				}
			}
		})
	}
}
