package raycluster

import (
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

func clusterNames() *rapid.Generator[string] {
	return rapid.StringMatching(`[a-z]([a-z0-9-]{0,51}[a-z0-9])?`)
}

// groupNames draws what the API allows: more than a Pod's name may hold.
func groupNames() *rapid.Generator[string] {
	return rapid.StringMatching(`[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?`)
}

func namedCluster(name string, uid types.UID) *rayv1.RayCluster {
	return &rayv1.RayCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ml", UID: uid}}
}

func TestPodNamesAreValidAndKeepTheirShape(t *testing.T) {
	ending := regexp.MustCompile(`-(head|worker)-[bcdfghjklmnpqrstvwxz2456789]{5}$`)
	rapid.Check(t, func(t *rapid.T) {
		cluster := namedCluster(clusterNames().Draw(t, "cluster"), types.UID(rapid.String().Draw(t, "uid")))
		slot := PodSlot{
			Group:       groupNames().Draw(t, "group"),
			Replica:     rapid.IntRange(0, 1000).Draw(t, "replica"),
			Host:        rapid.IntRange(0, 16).Draw(t, "host"),
			Incarnation: rapid.Int64Min(1).Draw(t, "incarnation"),
		}
		head, worker := HeadPodName(cluster, Settings{}, slot.Incarnation), WorkerPodName(cluster, slot)
		for _, name := range []string{head, worker} {
			if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 || len(name) > 63 || !ending.MatchString(name) {
				t.Errorf("%q is no good name of a Pod: %v", name, problems)
			}
		}
		if !strings.HasPrefix(head, first50(cluster.Name)+"-head-") {
			t.Errorf("head is called %q", head)
		}
		plain := validation.IsDNS1123Label(slot.Group) == nil
		if plain && !strings.HasPrefix(worker, first50(cluster.Name+"-"+slot.Group)+"-worker-") {
			t.Errorf("worker is called %q", worker)
		}
		if again := WorkerPodName(cluster, slot); again != worker {
			t.Errorf("one slot gives %q and %q", worker, again)
		}
	})
}

func first50(s string) string {
	return s[:min(len(s), 50)]
}

func TestPodNamesDifferBetweenLives(t *testing.T) {
	const lives = 500
	names := map[string]bool{}
	for incarnation := range int64(lives) {
		names[HeadPodName(namedCluster("demo", "u-1"), Settings{}, incarnation)] = true
		names[WorkerPodName(namedCluster("demo", "u-1"), PodSlot{Group: "a", Incarnation: incarnation})] = true
		names[WorkerPodName(namedCluster("demo", "u-2"), PodSlot{Group: "a", Incarnation: incarnation})] = true
		names[WorkerPodName(namedCluster("demo", "u-1"), PodSlot{Group: "a", Replica: int(incarnation) + 1, Incarnation: 1})] = true
	}
	if len(names) != 4*lives {
		t.Errorf("%d lives have %d names", 4*lives, len(names))
	}
}

func TestPartsOfASuffixAreKeptApart(t *testing.T) {
	if NameSuffix("ab", "c") == NameSuffix("a", "bc") {
		t.Error("the border between two parts does not count")
	}
}

func TestPodNamesOfOddGroups(t *testing.T) {
	tests := map[string]struct{ cluster, group, want string }{
		"given capital letters, they become small":             {"demo", "GPU", "demo-gpu-worker-"},
		"given an underscore, it becomes a dash":               {"demo", "a_b", "demo-a-b-worker-"},
		"given a dot, it stays":                                {"demo", "a.b", "demo-a.b-worker-"},
		"given a cut at 50 characters":                         {strings.Repeat("c", 45), "group", strings.Repeat("c", 45) + "-grou-worker-"},
		"given a cut behind a dot, it becomes a dash":          {strings.Repeat("c", 45), "gro.x", strings.Repeat("c", 45) + "-gro--worker-"},
		"given a dot beside a dash, it becomes a dash":         {"demo", "a.-b", "demo-a--b-worker-"},
		"given a cut within the name of the cluster, no group": {strings.Repeat("c", 53), "a", strings.Repeat("c", 50) + "-worker-"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := WorkerPodName(namedCluster(test.cluster, "u-1"), PodSlot{Group: test.group, Incarnation: 1})
			if !strings.HasPrefix(got, test.want) || len(got) != len(test.want)+5 {
				t.Errorf("name is %q, want %q and five characters", got, test.want)
			}
		})
	}
}

func TestOtherNamesAreValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := clusterNames().Draw(t, "cluster")
		for _, service := range []string{HeadServiceName(namedCluster(name, "")), ServeServiceName(name), HeadlessServiceName(name)} {
			if problems := validation.IsDNS1035Label(service); len(problems) > 0 {
				t.Errorf("%q is no name of a Service: %v", service, problems)
			}
		}
		for _, value := range []string{HeadIdentifier(name), WorkerIdentifier(name), ReplicaName("u-1", groupNames().Draw(t, "group"), 3)} {
			if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
				t.Errorf("%q is no value of a label: %v", value, problems)
			}
		}
		long := name + rapid.SampledFrom([]string{"", "-head-ingress", "-head-route"}).Draw(t, "ending")
		short := ShortName(long)
		if problems := validation.IsDNS1035Label(short); len(problems) > 0 || len(short) > 50 {
			t.Errorf("%q is no short name: %v", short, problems)
		}
		if len(long) <= 50 && short != long {
			t.Errorf("%q was changed to %q", long, short)
		}
	})
}

func TestShortNames(t *testing.T) {
	common := strings.Repeat("x", 50)
	if a, b := ShortName("aaa"+common), ShortName("bbb"+common); a == b {
		t.Errorf("two names with the same last 50 characters share %q", a)
	}
	tests := map[string]struct{ name, want string }{
		"given a short name, it stays":                {"demo", "demo"},
		"given a digit in front, it becomes r":        {"1demo", "rdemo"},
		"given a dash in front, it becomes r":         {"-demo", "rdemo"},
		"given 50 characters, it stays":               {common, common},
		"given nothing, nothing":                      {"", ""},
		"given 51 characters, the last ones are kept": {"abcdefgh" + strings.Repeat("y", 43), "h" + strings.Repeat("y", 43) + "-" + NameSuffix("abcdefgh"+strings.Repeat("y", 43))},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := ShortName(test.name); got != test.want {
				t.Errorf("short name is %q, want %q", got, test.want)
			}
		})
	}
}
