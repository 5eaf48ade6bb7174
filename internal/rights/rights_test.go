package rights

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheRulesAreThoseOfTheChart(t *testing.T) {
	ofChart, err := os.ReadFile(filepath.Join("..", "..", "charts", "heliostat", "files", "rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(ofChart, rulesFile) {
		t.Error("rules.yaml differs from the chart's; run hack/generate.sh")
	}
}

func TestNeeded(t *testing.T) {
	finalizers := Right{Verb: "update", Group: "ray.io", Resource: "rayjobs/finalizers", Namespace: "a"}
	crons := Right{Verb: "list", Group: "ray.io", Resource: "raycronjobs", Namespace: "a"}
	gateways := Right{Verb: "create", Group: Gateways, Resource: "httproutes", Namespace: "a"}
	routes := Right{Verb: "create", Group: Routes, Resource: "routes", Namespace: "a"}
	proxies := Right{Verb: "get", Resource: "pods/proxy", Namespace: "a"}
	event := Right{Verb: "create", Group: eventGroup, Resource: "events", Namespace: "home"}
	lease := Right{Verb: "update", Group: leaseGroup, Resource: "leases", Name: "lease", Namespace: "home"}
	holder := Right{Verb: "update", Group: holderGroup, Resource: "holders/status", Name: "home"}
	optional := []Right{crons, gateways, routes, proxies, event, lease, holder}
	a := []string{"a"}
	for name, tc := range map[string]struct {
		use  Use
		want []Right
	}{
		"given nothing special, what every operator needs": {Use{Namespaces: a}, nil},
		"given a namespace of its own, events there":       {Use{Namespaces: a, Home: "home"}, []Right{event}},
		"given RayCronJobs":                                {Use{Namespaces: a, CronJobs: true}, []Right{crons}},
		"given Gateways":                                   {Use{Namespaces: a, Gateways: true}, []Right{gateways}},
		"given Routes":                                     {Use{Namespaces: a, Routes: true}, []Right{routes}},
		"given the API server as a proxy":                  {Use{Namespaces: a, Proxy: true}, []Right{proxies}},
		"given replicas":                                   {Use{Namespaces: a, Lease: Lease{"home", "lease"}}, []Right{lease}},
		"given a fence that is required":                   {Use{Namespaces: a, Lease: Lease{"home", "lease"}, Fence: true}, []Right{lease, holder}},
	} {
		t.Run(name, func(t *testing.T) {
			needed := Needed(tc.use)
			if !slices.Contains(needed, finalizers) {
				t.Errorf("owners may not be named: %v", needed)
			}
			got := slices.DeleteFunc(slices.Clone(optional), func(r Right) bool { return !slices.Contains(needed, r) })
			if diff := cmp.Diff(tc.want, got, cmp.Transformer("set", func(all []Right) map[Right]bool { return set(all) })); diff != "" {
				t.Errorf("optional rights (-want +got):\n%s", diff)
			}
			if len(set(needed)) != len(needed) {
				t.Error("a right is there twice")
			}
		})
	}
}

func set(all []Right) map[Right]bool {
	in := map[Right]bool{}
	for _, r := range all {
		in[r] = true
	}
	return in
}

func TestRightsOfNamespaces(t *testing.T) {
	namespaces := func(all []Right) []string {
		in := map[string]bool{}
		for _, r := range all {
			if r.Resource == "pods" && r.Verb == "create" {
				in[r.Namespace] = true
			}
		}
		return slices.Sorted(func(yield func(string) bool) {
			for n := range in {
				if !yield(n) {
					return
				}
			}
		})
	}
	for name, tc := range map[string]struct {
		watched  []string
		all, ofA []string
	}{
		"given all namespaces, rights of the whole cluster":   {nil, []string{""}, []string{"a"}},
		"given two namespaces, rights in each":                {[]string{"a", "b"}, []string{"a", "b"}, []string{"a"}},
		"given one namespace that is another, no rights here": {[]string{"b"}, []string{"b"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			needed := Needed(Use{Namespaces: tc.watched, Home: "a", Lease: Lease{"a", "lease"}})
			if got := namespaces(needed); !slices.Equal(got, tc.all) {
				t.Errorf("Pods are made in %q, want %q", got, tc.all)
			}
			if got := namespaces(For(needed, tc.watched, "a")); !slices.Equal(got, tc.ofA) {
				t.Errorf("for an object in namespace a Pods are made in %q, want %q", got, tc.ofA)
			}
		})
	}
	everywhere := Right{Verb: "watch", Resource: "pods"}
	if !slices.Contains(For(Needed(Use{}), nil, "a"), everywhere) {
		t.Error("an operator for all namespaces watches all of them, whatever namespace is looked at")
	}
}

func TestWords(t *testing.T) {
	for name, tc := range map[string]struct {
		right                Right
		text, question, role string
	}{
		"a right in a namespace": {Right{User: "u", Verb: "patch", Group: "ray.io", Resource: "rayclusters/status", Namespace: "a"},
			"patch rayclusters/status.ray.io in namespace a", "kubectl auth can-i patch rayclusters.ray.io --subresource=status -n a --as=u",
			"the operator's ClusterRole, or its Role in namespace a"},
		"a right in all namespaces": {Right{Verb: "list", Resource: "pods"}, "list pods in all namespaces", "kubectl auth can-i list pods -A", "the operator's ClusterRole"},
		"the Lease": {Right{Verb: "get", Group: leaseGroup, Resource: "leases", Name: "l", Namespace: "a"}, "get leases.coordination.k8s.io l in namespace a",
			"kubectl auth can-i get leases.coordination.k8s.io/l -n a", "the operator's Role for leader election in namespace a"},
		"the Holder": {Right{Verb: "update", Group: holderGroup, Resource: "holders", Name: "a"}, "update holders.heliostat.io a",
			"kubectl auth can-i update holders.heliostat.io/a", "the operator's ClusterRole for the fence"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff([]string{tc.text, tc.question, tc.role}, []string{tc.right.String(), tc.right.Question(), tc.right.Role()}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNames(t *testing.T) {
	all := []Right{{Verb: "create", Resource: "pods"}, {Verb: "create", Resource: "services"}, {Verb: "delete", Resource: "pods"}, {Verb: "get", Resource: "secrets"}}
	if got, want := Names(all, 2), "create, delete pods in all namespaces; create services in all namespaces; 1 more"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestDenied(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want Right
	}{
		"given a namespace": {`pods is forbidden: User "u" cannot create resource "pods" in API group "" in the namespace "a"`,
			Right{User: "u", Verb: "create", Resource: "pods", Namespace: "a"}},
		"given a subresource at cluster scope": {`x is forbidden: User "u" cannot patch resource "rayjobs/status" in API group "ray.io" at the cluster scope`,
			Right{User: "u", Verb: "patch", Group: "ray.io", Resource: "rayjobs/status"}},
		"given a quota": {`pods "p" is forbidden: exceeded quota: q`, Right{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := Denied(tc.text)
			if got != tc.want || ok != (tc.want != Right{}) {
				t.Errorf("got %+v, %t", got, ok)
			}
		})
	}
}

func TestAsk(t *testing.T) {
	pods, secrets := Right{Verb: "get", Resource: "pods"}, Right{Verb: "get", Resource: "secrets"}
	asked := []Right{secrets, pods}
	t.Run("given answers, what was refused is in the order of the questions", func(t *testing.T) {
		answers, err := Ask(t.Context(), asked, 2, func(context.Context, Right) (bool, error) { return false, nil })
		if got := Refused(asked, answers); err != nil || !slices.Equal(got, asked) {
			t.Errorf("got %v, %v", got, err)
		}
	})
	t.Run("given no answer, what was not answered is not refused", func(t *testing.T) {
		away := errors.New("away")
		answers, err := Ask(t.Context(), asked, 1, func(_ context.Context, r Right) (bool, error) {
			if r == pods {
				return false, away
			}
			return false, nil
		})
		if got := Refused(asked, answers); !errors.Is(err, away) || !slices.Equal(got, []Right{secrets}) {
			t.Errorf("got %v, %v", got, err)
		}
	})
	t.Run("given an end, it ends", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		answers, err := Ask(ctx, asked, 1, func(context.Context, Right) (bool, error) {
			cancel()
			return true, nil
		})
		if !errors.Is(err, context.Canceled) || len(answers) == 0 {
			t.Errorf("got %v, %v", answers, err)
		}
	})
}
