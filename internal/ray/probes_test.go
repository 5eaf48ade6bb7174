package ray

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-io/heliostat/test/fakecontainer"
)

// wgetProgram stands in for wget: each part of Ray answers what the file of its name says, and not at all without one.
const wgetProgram = `
case "${!#}" in
  http://localhost:9000/-/healthz) part=serve ;;
  http://localhost:8265/api/gcs_healthz) part=gcs ;;
  http://localhost:52365/api/local_raylet_healthz) part=raylet ;;
  http://localhost:52365/api/healthz) part=all ;;
  *) exit 4 ;;
esac
[ -e "$ANSWERS/$part" ] || exit 4
cat "$ANSWERS/$part"
`

// probed is a head's container whose /tmp is a directory of the test.
type probed struct {
	*fakecontainer.Container
	answers, tmp string
	command      []string
}

func newProbed(t *testing.T, version string) probed {
	t.Helper()
	container := &corev1.Container{Ports: []corev1.ContainerPort{{Name: PortNameServe, ContainerPort: 9000}}}
	head := Node{Role: Head, Cluster: Cluster{Version: version, CreatedBy: "RayService"}}
	head.SetProbes(container, head.StartParams(container))
	p := probed{answers: t.TempDir(), tmp: t.TempDir()}
	for _, word := range container.ReadinessProbe.Exec.Command {
		p.command = append(p.command, strings.ReplaceAll(word, "/tmp", p.tmp))
	}
	p.Container = fakecontainer.New(t, map[string]string{"ANSWERS": p.answers})
	p.Path = os.Getenv("PATH")
	p.Install(t, "wget", wgetProgram)
	return p
}

// says lets a part of Ray answer; an empty answer is none.
func (p probed) says(t *testing.T, part, answer string) {
	t.Helper()
	err := os.RemoveAll(filepath.Join(p.answers, part))
	if err == nil && answer != "" {
		err = os.WriteFile(filepath.Join(p.answers, part), []byte(answer), 0o600)
	}
	if err != nil {
		t.Fatalf("preparing the answer of %s: %v", part, err)
	}
}

// newSession is what a start of Ray does.
func (p probed) newSession(t *testing.T, name string) {
	t.Helper()
	latest := filepath.Join(p.tmp, "ray", "session_latest")
	for _, err := range []error{
		os.MkdirAll(filepath.Join(p.tmp, "ray", name), 0o700), os.RemoveAll(latest), os.Symlink(filepath.Join(p.tmp, "ray", name), latest),
	} {
		if err != nil {
			t.Fatalf("preparing Ray's session: %v", err)
		}
	}
}

func (p probed) mustBe(t *testing.T, when string, ready bool) {
	t.Helper()
	ended, err := p.Run(p.command...)
	if err != nil {
		t.Fatal(err)
	}
	if (ended.Code == 0) != ready {
		t.Errorf("%s: the probe ends with code %d, want ready: %v (%s%s)", when, ended.Code, ready, ended.Stdout, ended.Stderr)
	}
}

// Given the head of a RayService, it is ready without Serve, and from Serve's first answer on only with Serve.
func TestAHeadWhoseServeProxyDiedIsNotReady(t *testing.T) {
	tests := map[string]struct {
		version string
		// parts are those of Ray that must answer besides Serve.
		parts map[string]string
		// elsewhere is when Ray keeps its session in another place.
		elsewhere bool
	}{
		"given an older Ray":               {version: "2.52.0", parts: map[string]string{"raylet": "success", "gcs": "success"}},
		"given a Ray with one answer":      {version: "2.60.0", parts: map[string]string{"all": "raylet: success\ngcs: success"}},
		"given Ray's session is elsewhere": {version: "2.60.0", parts: map[string]string{"all": "raylet: success\ngcs: success"}, elsewhere: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := newProbed(t, test.version)
			start := func(session string) {
				if !test.elsewhere {
					p.newSession(t, session)
				}
			}
			start("session_1")
			p.mustBe(t, "when nothing answers", false)
			for part, answer := range test.parts {
				p.mustBe(t, "when a part of Ray does not answer", false)
				p.says(t, part, answer)
			}
			p.mustBe(t, "when Serve has not been started", true)
			p.says(t, "serve", "Route table is not populated yet.")
			p.mustBe(t, "when Serve has been started", true)
			p.says(t, "serve", "success")
			p.mustBe(t, "when Serve answers", true)
			p.says(t, "serve", "")
			p.mustBe(t, "when Serve's proxy is dead", false)
			p.says(t, "serve", "This node is being drained.")
			p.mustBe(t, "when Serve's proxy is being drained", false)
			p.says(t, "serve", "success")
			p.mustBe(t, "when Serve answers again", true)
			for part := range test.parts {
				p.says(t, part, "")
			}
			p.mustBe(t, "when only Serve answers", false)
			for part, answer := range test.parts {
				p.says(t, part, answer)
			}
			p.says(t, "serve", "")
			start("session_2")
			// Without a session the file in /tmp goes with the container, which this test does not play.
			p.mustBe(t, "when Ray has been started anew, without Serve", !test.elsewhere)
		})
	}
}

func TestOneSlowAnswerDoesNotTakeTheHeadOutOfService(t *testing.T) {
	container := &corev1.Container{}
	Node{Role: Head, Cluster: Cluster{CreatedBy: "RayService"}}.SetProbes(container, nil)
	longest := container.ReadinessProbe.FailureThreshold * container.ReadinessProbe.PeriodSeconds
	if container.ReadinessProbe.FailureThreshold < 2 || longest > 15 {
		t.Errorf("a head is not ready after %d failures, %d s", container.ReadinessProbe.FailureThreshold, longest)
	}
}

func TestServeIsAskedForOnlyWhereAProxyIsExpected(t *testing.T) {
	tests := map[string]struct {
		location, createdBy string
		head, worker        bool
	}{
		"given a RayService, everywhere":                 {createdBy: "RayService", head: true, worker: true},
		"given a place that Serve does not know":         {createdBy: "RayService", location: "Somewhere", head: true, worker: true},
		"given proxies on the head only":                 {createdBy: "RayService", location: "HeadOnly", head: true},
		"given no proxies":                               {createdBy: "RayService", location: "Disabled"},
		"given a RayCluster":                             {},
		"given a RayJob with an annotation for services": {createdBy: "RayJob", location: "HeadOnly"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for role, want := range map[Role]bool{Head: test.head, Worker: test.worker} {
				container := &corev1.Container{}
				node := Node{Role: role, Cluster: Cluster{CreatedBy: test.createdBy, ServeProxyLocation: test.location}}
				node.SetProbes(container, nil)
				command := strings.Join(container.ReadinessProbe.Exec.Command, " ")
				if strings.Contains(command, "/-/healthz") != want || node.RunsServeProxy() != want {
					t.Errorf("%s: expects a proxy: %v, want %v; the probe runs %s", role, node.RunsServeProxy(), want, command)
				}
				if !want && container.ReadinessProbe.FailureThreshold != 10 {
					t.Errorf("%s: a plain probe with the threshold %d", role, container.ReadinessProbe.FailureThreshold)
				}
			}
		})
	}
}
