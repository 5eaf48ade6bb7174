package ray

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/heliostat-io/heliostat/test/fakecontainer"
)

func TestSetDrain(t *testing.T) {
	own := &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 5}}}
	for name, tc := range map[string]struct {
		version   string
		role      Role
		grace     *int64
		lifecycle *corev1.Lifecycle
		hostPID   bool
		// wantLimit is for how many seconds the hook drains, as the script has it, and "" where there is no hook of ours.
		wantLimit string
	}{
		"a release that ends at once":               {version: "2.56.1", role: Worker, wantLimit: "limit=20\n"},
		"as long as the Pod has":                    {version: "2.46.0", role: Worker, grace: ptr.To[int64](120), wantLimit: "limit=110\n"},
		"beside a hook for the start":               {version: "2.46.0", role: Worker, lifecycle: &corev1.Lifecycle{PostStart: own.PreStop}, wantLimit: "limit=20\n"},
		"no time":                                   {version: "2.46.0", role: Worker, grace: ptr.To[int64](10)},
		"a hook of the user's":                      {version: "2.46.0", role: Worker, lifecycle: own},
		"a Pod that sees other Pods' raylets":       {version: "2.46.0", role: Worker, hostPID: true},
		"a release that drains by itself":           {version: "2.57.0", role: Worker},
		"a version that is none":                    {version: "nightly", role: Worker},
		"no version":                                {role: Worker},
		"a head, whose work nobody could take over": {version: "2.46.0", role: Head},
	} {
		t.Run(name, func(t *testing.T) {
			node := Node{Cluster: Cluster{HeadHost: "demo-head-svc.ml.svc", GCSPort: "6379", Version: tc.version}, Role: tc.role}
			pod := &corev1.PodSpec{HostPID: tc.hostPID, TerminationGracePeriodSeconds: tc.grace, Containers: []corev1.Container{{Lifecycle: tc.lifecycle.DeepCopy()}}}

			node.SetDrain(pod, Shell{})

			after := pod.Containers[0].Lifecycle
			if tc.wantLimit == "" {
				if diff := cmp.Diff(tc.lifecycle, after); diff != "" {
					t.Errorf("the hooks changed (-before +after):\n%s", diff)
				}
				return
			}
			command := after.PreStop.Exec.Command
			script := command[len(command)-1]
			if !strings.Contains(script, tc.wantLimit) || !strings.Contains(script, "gcs=demo-head-svc.ml.svc:6379\n") {
				t.Errorf("the script does not drain with %q by the GCS of the cluster:\n%s", tc.wantLimit, script)
			}
			if tc.lifecycle != nil && after.PostStart == nil {
				t.Error("the user's hook for the start is gone")
			}
		})
	}
}

// gcs answers on the loopback interface for so many connections and is gone after them.
func gcs(t *testing.T, connections int) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listening as the GCS: %v", err)
	}
	if connections == 0 {
		_ = listener.Close()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range connections {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			_ = connection.Close()
		}
		_ = listener.Close()
	}()
	t.Cleanup(func() { _ = listener.Close(); <-done })
	return listener.Addr().String()
}

func TestDrainScript(t *testing.T) {
	const (
		raylet  = "/venv/ray/core/src/ray/raylet/raylet\x00--node_ip_address=10.0.0.7\x00--node_id=a1b2\x00--labels=\x00"
		ever    = 1000
		refuses = "exit 1\n"
	)
	for name, tc := range map[string]struct {
		cmdline     string
		connections int
		ray, sleep  string
		limit       int64
		wantDrained bool
		wantCode    int
	}{
		"waits until the raylet has ended":        {cmdline: raylet, connections: ever, sleep: `rm -r "$PROCESSES/7"`, limit: 600, wantDrained: true},
		"waits no longer than it may":             {cmdline: raylet, connections: ever, sleep: "exec " + mustFind(t, "sleep") + ` "$@"`, limit: 1, wantDrained: true},
		"waits no longer than the GCS is there":   {cmdline: raylet, connections: 2, limit: 600, wantDrained: true},
		"no raylet":                               {cmdline: "python\x00--node_id=a1b2\x00", connections: ever, limit: 600},
		"a raylet whose node is not said":         {cmdline: "/venv/raylet\x00--head\x00", connections: ever, limit: 600},
		"a GCS that is gone":                      {cmdline: raylet, limit: 600},
		"a GCS that refuses is told of":           {cmdline: raylet, connections: ever, ray: refuses, limit: 600, wantDrained: true, wantCode: 1},
		"a GCS that goes meanwhile is no failure": {cmdline: raylet, connections: 1, ray: refuses, limit: 600, wantDrained: true},
	} {
		t.Run(name, func(t *testing.T) {
			processes := t.TempDir()
			for pid, cmdline := range map[string]string{"1": "/bin/bash\x00-c\x00--\x00ray start\x00", "7": tc.cmdline, "8": ""} {
				mustWrite(t, filepath.Join(processes, pid, "cmdline"), cmdline)
			}
			c := fakecontainer.New(t, map[string]string{"PROCESSES": processes})
			c.Path = os.Getenv("PATH")
			c.Install(t, "ray", fakecontainer.Recorder+tc.ray)
			c.Install(t, "sleep", tc.sleep+"\n")
			address := gcs(t, tc.connections)

			ended, err := c.Exec("bash", "-c", "--", drainScript(processes, address, tc.limit))

			if err != nil || ended.Code != tc.wantCode {
				t.Fatalf("the hook ended with %d and %v: %s", ended.Code, err, ended.Stderr)
			}
			var want [][]string
			if tc.wantDrained {
				want = [][]string{{"ray", "drain-node", "--address", address, "--node-id", "a1b2", "--reason", "DRAIN_NODE_REASON_PREEMPTION",
					"--reason-message", "its Pod is deleted", "--deadline-remaining-seconds", strconv.FormatInt(tc.limit, 10)}}
			}
			if diff := cmp.Diff(want, ended.Calls); diff != "" {
				t.Errorf("Ray is called otherwise (-want +got):\n%s", diff)
			}
		})
	}
}

func mustFind(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatalf("the test needs %s: %v", program, err)
	}
	return path
}

func mustWrite(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatalf("making the directory of %s: %v", path, err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatalf("writing %s: %v", path, err)
	}
}
