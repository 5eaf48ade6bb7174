//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-io/heliostat/internal/config"
)

// holder is the identity that holds the operator's lease: the name of its Pod, and what tells this run of it from others.
func (s serving) holder(g Gomega) string {
	lease := &coordinationv1.Lease{}
	g.Expect(s.Get(s.t.Context(), client.ObjectKey{Namespace: operatorNamespace, Name: config.LeaseName}, lease)).To(Succeed())
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

// killLeader ends the leading operator with SIGKILL, so that it can neither finish what it does nor give the lease back,
// and returns when another run of it leads. A deleted Pod would be asked to end first, even with a grace period of zero.
func (s serving) killLeader() {
	s.t.Helper()
	killed := s.holder(s.g)
	name, _, _ := strings.Cut(killed, "_")
	pod := &corev1.Pod{}
	s.g.Expect(s.Get(s.t.Context(), client.ObjectKey{Namespace: operatorNamespace, Name: name}, pod)).To(Succeed())
	process, err := processOf(pod, "manager")
	s.g.Expect(err).ToNot(HaveOccurred())
	s.g.Expect(syscall.Kill(process, syscall.SIGKILL)).To(Succeed())
	since := time.Now()
	s.t.Logf("killed the leader %s", killed)
	s.g.Eventually(func(g Gomega) {
		g.Expect(s.holder(g)).ToNot(Or(BeEmpty(), Equal(killed)))
	}, servePatience, 100*time.Millisecond).Should(Succeed(), "another run of the operator leads")
	s.t.Logf("%s leads %s later", s.holder(s.g), time.Since(since).Round(100*time.Millisecond))
}

// processOf finds the process of that name in a Pod. Nodes of localkube are namespaces of this machine, so their processes
// are its own.
func processOf(pod *corev1.Pod, command string) (int, error) {
	groups, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return 0, err
	}
	for _, group := range groups {
		dir := filepath.Dir(group)
		// A process may end while we look at it.
		text, err := os.ReadFile(group)
		if err != nil || !strings.Contains(string(text), "pod"+string(pod.UID)) {
			continue
		}
		name, err := os.ReadFile(filepath.Join(dir, "comm"))
		if err == nil && strings.TrimSpace(string(name)) == command {
			return strconv.Atoi(filepath.Base(dir))
		}
	}
	return 0, fmt.Errorf("no process %q of Pod %s runs on this machine", command, pod.Name)
}
