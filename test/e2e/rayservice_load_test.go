//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/heliostat-io/heliostat/test/loadgen"
)

// longest is how long a long request lasts.
const longest = 20 * time.Second

// load is a Pod that sends requests while the test goes on, and what the test expects of them.
type load struct {
	serving
	// strict names the phases in which no request may fail.
	strict []string
}

// load starts a Pod that sends requests to a URL.
func (s serving) load(url string) *load {
	s.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: objectMeta(s.namespace, "load"),
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To[int64](0),
			Containers: []corev1.Container{{
				Name:  "load",
				Image: "docker.io/heliostat/loadgen:dev",
				Args:  []string{"--url=" + url, fmt.Sprintf("--long-seconds=%d", int(longest.Seconds()))},
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("64Mi"),
				}},
			}},
		},
	}
	s.g.Expect(s.Create(s.t.Context(), pod)).To(Succeed())
	l := &load{serving: s}
	s.g.Eventually(func(g Gomega) {
		phases := l.summary(g).Phases
		g.Expect(phases).ToNot(BeEmpty())
		g.Expect(phases[0].Kinds).To(HaveLen(4), "kinds of requests")
		for _, tally := range phases[0].Kinds {
			g.Expect(tally.Answers).ToNot(BeEmpty())
		}
	}, servePatience, time.Second).Should(Succeed(), "all kinds of requests are answered")
	return l
}

// phase begins a phase: requests that start from now on count there.
func (l *load) phase(name string) {
	l.t.Helper()
	l.t.Logf("phase %q", name)
	err := l.typed.CoreV1().RESTClient().Post().Namespace(l.namespace).Resource("pods").Name("load:8080").SubResource("proxy").
		Suffix("phases").Param("name", name).Do(l.t.Context()).Error()
	l.g.Expect(err).ToNot(HaveOccurred())
}

// strictPhase begins a phase in which no request may fail.
func (l *load) strictPhase(name string) {
	l.t.Helper()
	l.strict = append(l.strict, name)
	l.phase(name)
}

func (l *load) summary(g Gomega) loadgen.Summary {
	text, err := l.typed.CoreV1().Pods(l.namespace).ProxyGet("http", "load", "8080", "/summary", nil).DoRaw(l.t.Context())
	g.Expect(err).ToNot(HaveOccurred())
	var summary loadgen.Summary
	g.Expect(json.Unmarshal(text, &summary)).To(Succeed())
	return summary
}

// settled begins a phase of rest and waits until every request of the phases before has ended. It returns them.
func (l *load) settled() []loadgen.Phase {
	l.t.Helper()
	l.phase("rest")
	var before []loadgen.Phase
	l.g.Eventually(func(g Gomega) {
		phases := l.summary(g).Phases
		before = phases[:len(phases)-1]
		for _, phase := range before {
			for kind, tally := range phase.Kinds {
				g.Expect(tally.UnderWay).To(BeZero(), "requests under way: %s in phase %q", kind, phase.Name)
			}
		}
	}, servePatience, time.Second).Should(Succeed())
	return before
}

// report prints what became of all requests, and fails the test for those that failed and must not have.
func (l *load) report() {
	l.t.Helper()
	for _, phase := range l.settled() {
		l.t.Log(describePhase(phase))
		if !slices.Contains(l.strict, phase.Name) {
			continue
		}
		for kind, tally := range phase.Kinds {
			if tally.Failed > 0 {
				l.t.Errorf("phase %q: %d of %d requests failed: %s", phase.Name, tally.Failed, tally.Sent, kind)
			}
		}
	}
}

func describePhase(phase loadgen.Phase) string {
	var text strings.Builder
	fmt.Fprintf(&text, "phase %q since %s:", phase.Name, phase.Since.Format(time.TimeOnly))
	for _, kind := range slices.Sorted(maps.Keys(phase.Kinds)) {
		t := phase.Kinds[kind]
		fmt.Fprintf(&text, "\n  %-11s %5d sent %3d failed  slowest %v, half within %v, 99%% within %v  %v, %d connections, %d ended by the server",
			kind, t.Sent, t.Failed, t.Slowest.Round(time.Millisecond), t.Half.Round(time.Millisecond), t.Most.Round(time.Millisecond),
			t.Answers, t.Connections, t.EndedByServer)
		for _, failure := range t.Failures {
			fmt.Fprintf(&text, "\n    %s after %v: %s", failure.Started.Format("15:04:05.000"), failure.After.Round(time.Millisecond), failure.Text)
		}
	}
	return text.String()
}

// answers adds up who answered in a phase.
func answers(phase loadgen.Phase) map[string]int {
	sum := map[string]int{}
	for _, tally := range phase.Kinds {
		for text, count := range tally.Answers {
			sum[text] += count
		}
	}
	return sum
}

// onlyFrom fails the test when a phase was answered by anything else than what may answer then.
func (l *load) onlyFrom(phase loadgen.Phase, allowed ...string) {
	l.t.Helper()
	for text, count := range answers(phase) {
		if !slices.Contains(allowed, text) {
			l.t.Errorf("phase %q: %d requests were answered with %q, want one of %q", phase.Name, count, text, allowed)
		}
	}
}
