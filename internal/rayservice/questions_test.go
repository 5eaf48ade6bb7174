package rayservice

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/ray/poll"
)

// asked are the addresses that a plan wants asked, by the name of the owner.
func asked(targets []poll.Target, ask poll.Ask) map[string]string {
	var addresses map[string]string
	for _, target := range targets {
		if target.Ask == ask {
			if addresses == nil {
				addresses = map[string]string{}
			}
			addresses[target.Owner.Name] = target.BaseURL
		}
	}
	return addresses
}

func labelled(value string) func(*Pod) {
	return func(p *Pod) { p.Labels[rayv1.LabelServe] = value }
}

func TestTheHeadIsMarkedAsItsProxySays(t *testing.T) {
	exclude := spec(func(s *rayv1.RayServiceSpec) { s.ExcludeHeadPodFromServeSvc = true })
	failed := func(times int) func(*Pod) {
		return func(p *Pod) { unhealthy(p); p.Health.Failures = times }
	}
	for name, c := range map[string]struct {
		given Snapshot
		// want is the label; empty when it stays as it is.
		want string
	}{
		"it answers (RS-027)":                      {serving(of(old, pod(0, labelled("false")))), "true"},
		"it answers, and the label says so":        {serving(), ""},
		"it does not answer (RS-028)":              {serving(of(old, pod(0, unhealthy))), "false"},
		"it did not answer once":                   {serving(of(old, pod(0, failed(1)))), ""},
		"it was not asked yet":                     {serving(of(old, pod(0, unasked))), ""},
		"it was not asked yet, without a label":    {serving(of(old, pod(0, unasked, labelled("")))), "false"},
		"it takes no requests (RS-029)":            {serving(exclude), "false"},
		"it takes no requests, and is not healthy": {serving(exclude, of(old, pod(0, labelled("false"), unhealthy))), ""},
		"it is being deleted": {serving(of(old, pod(0, unhealthy, func(p *Pod) {
			p.DeletionTimestamp = ptr.To(metav1.NewTime(now))
		}))), ""},
		"a worker's label is its own affair": {serving(of(old, pod(1, unhealthy))), ""},
		"the spec is wrong (RS-087)":         {serving(annotated(rayv1.AnnotationUpgradeTimeout, "soon"), of(old, pod(0, unhealthy))), "false"},
	} {
		t.Run(name, func(t *testing.T) {
			decision := Plan(c.given, settings(), now)
			before := c.given.cluster(old).Pods[0].Labels[rayv1.LabelServe]
			var want []string
			if c.want != "" {
				want = []string{"update " + old + "-head"}
			}
			if diff := cmp.Diff(want, verbs(decision.Actions)); diff != "" {
				t.Errorf("actions (-want +got):\n%s", diff)
			}
			perform(&c.given, decision)
			if c.want == "" {
				c.want = before
			}
			if got := c.given.cluster(old).Pods[0].Labels[rayv1.LabelServe]; got != c.want {
				t.Errorf("the label is %q, want %q", got, c.want)
			}
		})
	}
}

func TestTheHeadsOfBothClustersAreMarked(t *testing.T) {
	s := upgrading(of(old, func(c *Cluster) { c.Pods = nil }), of(fresh, pod(0, labelled("false"))))
	if diff := cmp.Diff([]string{"update " + fresh + "-head"}, verbs(Plan(s, settings(), now).Actions)); diff != "" {
		t.Errorf("a head that is missing must not keep the other from being marked (RS-W9; -want +got):\n%s", diff)
	}
}

func TestOnlyPodsThatCanBeReachedAreAsked(t *testing.T) {
	const head, worker = old + "-head", old + "-worker"
	both := map[string]string{head: "http://10.0.0.1:8000", worker: "http://10.0.0.2:8000"}
	onlyWorker := map[string]string{worker: both[worker]}
	for name, c := range map[string]struct {
		given Snapshot
		want  map[string]string
	}{
		"all that run":                        {serving(), both},
		"not one without an address (RS-093)": {serving(of(old, pod(0, func(p *Pod) { p.Status.PodIP = "" }))), onlyWorker},
		"nor one with nonsense for it":        {serving(of(old, pod(0, func(p *Pod) { p.Status.PodIP = "localhost" }))), onlyWorker},
		"nor one that has not started":        {serving(of(old, pod(0, func(p *Pod) { p.Status.Phase = corev1.PodPending }))), onlyWorker},
		"nor one on its way out":              {serving(of(old, pod(0, func(p *Pod) { p.DeletionTimestamp = ptr.To(metav1.NewTime(now)) }))), onlyWorker},
		"nor the head where it is excluded (RS-029)": {
			serving(spec(func(s *rayv1.RayServiceSpec) { s.ExcludeHeadPodFromServeSvc = true })), onlyWorker},
		"nor a worker that has no proxy (L54)": {serving(of(old, pod(1, labelled("false")))), map[string]string{head: both[head]}},
		"at the port of the Pod (RS-031)": {serving(of(old, pod(0, func(p *Pod) {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "serve", ContainerPort: 9000}}
		}))), map[string]string{head: "http://10.0.0.1:9000", worker: both[worker]}},
		"at an address of either family": {serving(of(old, pod(0, func(p *Pod) { p.Status.PodIP = "fd00::1" }))), map[string]string{head: "http://[fd00::1]:8000", worker: both[worker]}},
		"not those of a retired cluster": {switched(0), map[string]string{fresh + "-head": "http://10.0.1.1:8000", fresh + "-worker": "http://10.0.1.2:8000"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, asked(Plan(c.given, settings(), now).Pods, poll.AskProxy)); diff != "" {
				t.Errorf("asked for their health (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPodsAreAskedByNameThroughTheAPIServer(t *testing.T) {
	byName := settings()
	byName.ProxiesByName = true
	want := map[string]string{old + "-head": "http://shop-aaaaa-head.ml.pod:8000", old + "-worker": "http://shop-aaaaa-worker.ml.pod:8000"}
	if diff := cmp.Diff(want, asked(Plan(serving(), byName, now).Pods, poll.AskProxy)); diff != "" {
		t.Errorf("asked for their health (-want +got):\n%s", diff)
	}
}

func TestServeIsAskedOnBothClusters(t *testing.T) {
	for name, c := range map[string]struct {
		given Snapshot
		want  []string
	}{
		"both in an upgrade (RS-076)": {upgrading(), []string{old, fresh}},
		"not one that is retired":     {switched(0), []string{fresh}},
		"none of a suspended service": {serving(conditionWas(rayv1.ConditionRayServiceSuspending, metav1.ConditionTrue, rayv1.ReasonSuspendInProgress, 0)), nil},
		"with the token that is asked for": {serving(func(s *Snapshot) {
			s.cluster(old).Object.Spec.AuthOptions = &rayv1.AuthOptions{Mode: rayv1.AuthModeToken}
		}), []string{old}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, target := range Plan(c.given, settings(), now).Reports {
				got = append(got, target.Owner.Name)
				wantSecret := c.given.cluster(target.Owner.Name).Object.Spec.AuthOptions != nil
				if (target.Secret != "") != wantSecret || target.OwnerUID == "" || target.Ask != poll.AskServe {
					t.Errorf("target %+v, want a Secret: %t (RS-058)", target, wantSecret)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("asked for Serve's report (-want +got):\n%s", diff)
			}
		})
	}
}
