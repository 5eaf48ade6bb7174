//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// terminal is a screen of tmux on which one program runs.
type terminal struct {
	t      *testing.T
	socket string
}

// newTerminal starts a command of the shell on a screen of this size. Its exit code is shown when it has ended.
func newTerminal(t *testing.T, columns, rows int, command string) terminal {
	t.Helper()
	screen := terminal{t, fmt.Sprintf("heliostat-%d", os.Getpid())}
	t.Cleanup(func() { _ = exec.Command("tmux", "-L", screen.socket, "kill-server").Run() })
	screen.tmux("-f", "/dev/null", "new-session", "-d", "-x", fmt.Sprint(columns), "-y", fmt.Sprint(rows), command+"; echo it ended with $?; exec cat")
	return screen
}

// tmux runs a command of tmux and returns what it says.
func (s terminal) tmux(args ...string) string {
	s.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-L", s.socket}, args...)...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("tmux %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// shows is what stands on the screen. Lines that are wider than it are whole.
func (s terminal) shows() string { return s.tmux("capture-pane", "-p", "-J") }

// TestWatchingOnATerminal looks at a RayCluster that nothing is made for, on a screen as a user has it: the screen follows a change,
// has its first line on top in whichever size, and is left by an interrupt.
func TestWatchingOnATerminal(t *testing.T) {
	g := NewWithT(t)
	w := connect(t)
	program := filepath.Join(t.TempDir(), "kubectl-ray")
	if out, err := exec.Command("go", "build", "-o", program, "../../cmd/kubectl-ray").CombinedOutput(); err != nil {
		t.Fatalf("build kubectl-ray: %v\n%s", err, out)
	}
	pod := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "ray", Image: "rayproject/ray:2.59.0"}}}}
	cluster := &rayv1.RayCluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "watched"}, Spec: rayv1.RayClusterSpec{
		RayVersion: "2.59.0", Suspend: ptr.To(true), HeadGroupSpec: rayv1.HeadGroupSpec{RayStartParams: map[string]string{}, Template: pod},
	}}
	for _, group := range []string{"a", "b", "c"} {
		cluster.Spec.WorkerGroupSpecs = append(cluster.Spec.WorkerGroupSpecs, rayv1.WorkerGroupSpec{GroupName: "group-" + group,
			MinReplicas: ptr.To[int32](0), MaxReplicas: ptr.To[int32](5), RayStartParams: map[string]string{}, Template: pod})
	}
	g.Expect(w.Create(t.Context(), cluster)).To(Succeed())
	title := HavePrefix("RayCluster " + w.namespace + "/watched")
	whole := And(title, ContainSubstring("group-c"), Not(ContainSubstring("more lines")))

	screen := newTerminal(t, 120, 30, program+" status watched --watch --namespace "+w.namespace)
	g.Eventually(screen.shows, podPatience, 200*time.Millisecond).Should(And(whole, ContainSubstring("Ray 2.59.0")))
	base := cluster.DeepCopy()
	cluster.Spec.RayVersion = "2.60.0"
	g.Expect(w.Patch(t.Context(), cluster, client.MergeFrom(base))).To(Succeed())
	g.Eventually(screen.shows, podPatience, 200*time.Millisecond).Should(And(whole, ContainSubstring("Ray 2.60.0"), Not(ContainSubstring("Ray 2.59.0"))))

	screen.tmux("resize-window", "-x", "44", "-y", "7")
	g.Eventually(screen.shows, podPatience, 200*time.Millisecond).Should(And(title, ContainSubstring("Ray 2.60.0"), MatchRegexp(`(?m)^\(\d+ more lines\)$`), Not(ContainSubstring("group-c"))))
	screen.tmux("resize-window", "-x", "120", "-y", "30")
	g.Eventually(screen.shows, podPatience, 200*time.Millisecond).Should(whole)

	screen.tmux("send-keys", "C-c")
	g.Eventually(screen.shows, podPatience, 200*time.Millisecond).Should(ContainSubstring("it ended with 0"))
}
