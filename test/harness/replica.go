package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// The times of replicas' Leases: short, so that tests need not wait long for a take-over.
const (
	LeaseDuration = 6 * time.Second
	RenewDeadline = 4 * time.Second
	retryPeriod   = time.Second
)

// BuildOperator builds the operator's program and returns its path.
func BuildOperator(t testing.TB) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "heliostat")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/heliostat")
	build.Dir = root(t)
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the operator: %v\n%s", err, text)
	}
	return program
}

// Replica is an operator in a process of its own, which the API server takes for a Pod.
type Replica struct {
	// Pod is the one that its token is bound to.
	Pod *corev1.Pod
	// Proxy is its only way to the API server.
	Proxy *Proxy

	process *exec.Cmd
	ended   atomic.Bool
	over    chan struct{}
	log     string
}

// StartReplica starts a replica that reaches the API server to leads to. It ends with the test at the latest.
func (i Installation) StartReplica(t testing.TB, program, name string, to *rest.Config, args ...string) *Replica {
	t.Helper()
	r := &Replica{Pod: i.NewPod(t, name), Proxy: NewProxy(t, to), over: make(chan struct{}), log: filepath.Join(t.TempDir(), name+".log")}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	access := clientcmdapi.NewConfig()
	access.Clusters["c"] = &clientcmdapi.Cluster{Server: r.Proxy.URL, CertificateAuthorityData: r.Proxy.CA}
	access.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: i.Token(t, r.Pod)}
	access.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	access.CurrentContext = "x"
	if err := clientcmd.WriteToFile(*access, kubeconfig); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(r.log)
	if err != nil {
		t.Fatal(err)
	}
	r.process = exec.Command(program, append([]string{
		"--kubeconfig=" + kubeconfig, "--metrics-addr=0", "--health-probe-bind-address=0", "--watch-namespace=" + i.Namespace,
		"--leader-election-namespace=" + i.Namespace, "--leader-election-lease-duration=" + LeaseDuration.String(),
		"--leader-election-renew-deadline=" + RenewDeadline.String(), "--leader-election-retry-period=" + retryPeriod.String(),
	}, args...)...)
	r.process.Stdout, r.process.Stderr = log, log
	if err := r.process.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		// Whether it ended well is for the tests to say, which look at Ended.
		_ = r.process.Wait()
		r.ended.Store(true)
		close(r.over)
	}()
	t.Cleanup(func() {
		_ = r.process.Process.Kill()
		<-r.over
		log.Close()
		if t.Failed() {
			t.Logf("--- log of replica %s\n%s", name, r.Log())
		}
	})
	return r
}

// UID is that of the replica's Pod.
func (r *Replica) UID() string { return string(r.Pod.UID) }

// Pause stops the process where it is, and Resume lets it go on.
func (r *Replica) Pause(t testing.TB) { r.signal(t, syscall.SIGSTOP) }

// Resume lets a paused process go on.
func (r *Replica) Resume(t testing.TB) { r.signal(t, syscall.SIGCONT) }

// Terminate asks the process to end in good order, and waits until it has.
func (r *Replica) Terminate(t testing.TB) {
	t.Helper()
	r.signal(t, syscall.SIGTERM)
	select {
	case <-r.over:
	case <-time.After(Patience):
		t.Fatalf("replica %s does not end", r.Pod.Name)
	}
}

func (r *Replica) signal(t testing.TB, signal syscall.Signal) {
	t.Helper()
	if err := r.process.Process.Signal(signal); err != nil {
		t.Fatalf("signal %v to replica %s: %v", signal, r.Pod.Name, err)
	}
}

// Ended tells whether the process is gone.
func (r *Replica) Ended() bool { return r.ended.Load() }

// Log is what the replica has said so far.
func (r *Replica) Log() string {
	text, err := os.ReadFile(r.log)
	if err != nil {
		return fmt.Sprintf("its log cannot be read: %v", err)
	}
	return string(text)
}

// Says tells whether the replica has said so.
func (r *Replica) Says(text string) bool { return strings.Contains(r.Log(), text) }
