package integration

import (
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/heliostat-io/heliostat/internal/cli/kube"
	"github.com/heliostat-io/heliostat/internal/diagnose"
	"github.com/heliostat-io/heliostat/test/apiserver"
	"github.com/heliostat-io/heliostat/test/faults"
	"github.com/heliostat-io/heliostat/test/harness"
)

// fault is one thing that goes wrong around a real API server, and what diagnose has to say about it. Without a wanted id the object is
// healthy, and diagnose has to say nothing.
type fault struct {
	name, want string
	// also are the ids of findings that may stand beside the wanted one because they are true as well.
	also []string
	// later are how much later than now the user asks: many rules wait before they speak. Unset means now.
	later []time.Duration
	// of is the object that the user asks about; unset means RayCluster demo.
	of string
	// inject makes the object and breaks it.
	inject func(s *scene)
}

// noScheduler is the finding that is true of every Pod that no test has placed.
const noScheduler = "no-scheduler"

// faultSlots is how many faults are there at once.
const faultSlots = 16

// TestFaultCatalogue injects each fault in a namespace of its own and asks the plugin what is wrong, as a user would. The faults that
// need nodes, or Ray, are injected in test/e2e; here the words of the kubelet and of Ray are written where they would write them.
func TestFaultCatalogue(t *testing.T) {
	c := harness.ConnectTo(t, apiserver.New(t, "--enable-admission-plugins=OwnerReferencesPermissionEnforcement"))
	var verdicts []faults.Verdict
	for _, act := range acts() {
		t.Run(act.name, func(t *testing.T) {
			if act.operator != nil {
				defer c.Run(t, "", act.operator...).Stop()
			}
			verdicts = append(verdicts, play(t, c, act)...)
		})
	}
	faults.Report(t, verdicts)
}

// act is a number of faults that do not disturb each other, and the operator that they all have, if any.
type act struct {
	name     string
	operator []harness.Option
	faults   []fault
	// alone tells that the faults are seen in all namespaces, so they are injected one after the other.
	alone bool
}

func acts() []act {
	return []act{
		{name: "with an operator", operator: []harness.Option{harness.Alone(), harness.Args("--feature-gates=GCSFaultToleranceEmbeddedStorage=true")},
			faults: slices.Concat(healthyObjects(), clusterFaults(), connectionFaults(), scalingFaults(), refusedFaults(), jobFaults(), serviceFaults(), nodeWords())},
		{name: "with an operator of its own", faults: slices.Concat(haltedFaults(), cronFaults(), rightsFaults())},
		{name: "with the operator itself at fault", faults: operatorFaults(), alone: true},
	}
}

// play injects the faults of an act.
func play(t *testing.T, c harness.Cluster, a act) []faults.Verdict {
	verdicts := make([]faults.Verdict, len(a.faults))
	one := func(i int) {
		f := a.faults[i]
		verdicts[i] = faults.Verdict{Name: f.name, Want: f.want, Also: f.also}
		if f.want != noScheduler {
			// No scheduler runs here, which a Pod that was made just now tells before it is placed.
			verdicts[i].Also = append(slices.Clone(f.also), noScheduler)
		}
		t.Run(f.want+"/"+f.name, func(t *testing.T) { perform(t, c, f, &verdicts[i]) })
	}
	slots := make(chan struct{}, faultSlots)
	var all sync.WaitGroup
	for i := range a.faults {
		if a.alone {
			one(i)
			continue
		}
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			one(i)
		})
	}
	all.Wait()
	return verdicts
}

// missed is how long a finding may take to show.
const missed = 30 * time.Second

// perform makes one fault, looks until the finding is there, and looks once more at each of the later times.
func perform(t *testing.T, c harness.Cluster, f fault, v *faults.Verdict) {
	s := newScene(t, c, c.NewNamespace(t))
	f.inject(s)
	of, later := f.of, f.later
	if of == "" {
		of = "demo"
	}
	if len(later) == 0 {
		later = []time.Duration{0}
	}
	// A miss does not end the test here: the catalogue tells of it with what was found instead.
	NewGomega(func(string, ...int) {}).Eventually(func() bool {
		s.turn()
		v.Judge(s.diagnose(of, later[0]))
		return v.Found
	}, missed).Should(BeTrue())
	for _, by := range later {
		// With the clock ahead, what is just on its way looks as if it had been so for long. An alarm is what stays.
		var last faults.Verdict
		NewGomega(func(string, ...int) {}).Eventually(func() bool {
			last = *v
			last.Others = slices.Clone(v.Others)
			s.turn()
			last.Judge(s.diagnose(of, by))
			return len(last.Others) == len(v.Others)
		}, missed).Should(BeTrue())
		*v = last
	}
}

// diagnose returns what the plugin finds when the user asks so much later.
func (s *scene) diagnose(of string, later time.Duration) []faults.Finding {
	s.t.Helper()
	s.placed()
	answer := struct{ Findings []faults.Finding }{}
	said := s.ask(later, "diagnose", of, "-o", "json")
	if said.Code == kube.ExitCannotLook {
		s.t.Fatalf("diagnose %s: %s%s", of, said.Out, said.Err)
	}
	if err := json.Unmarshal([]byte(said.Out), &answer); err != nil {
		s.t.Fatalf("diagnose %s wrote %q: %v", of, said.Out, err)
	}
	return answer.Findings
}

// TestEachFindingHasItsFault: who adds a rule injects what it is about, here or on nodes, or says why nobody can.
func TestEachFindingHasItsFault(t *testing.T) {
	injected := map[string]bool{}
	for _, f := range faults.OnNodes() {
		injected[f.Want] = true
	}
	for _, a := range acts() {
		for _, f := range a.faults {
			injected[f.want] = true
		}
	}
	excused := faults.NotInjected()
	for _, entry := range diagnose.Catalogue() {
		reason, excuse := excused[entry.ID]
		switch {
		case !injected[entry.ID] && !excuse:
			t.Errorf("no fault for %s: add one to the lists in test/faults or test/integration, or to faults.NotInjected with the reason", entry.ID)
		case injected[entry.ID] && excuse:
			t.Errorf("%s is injected, so faults.NotInjected need not say %q", entry.ID, reason)
		}
		delete(injected, entry.ID)
		delete(excused, entry.ID)
	}
	delete(injected, "")
	for id := range injected {
		t.Errorf("a fault wants %s, which is no finding", id)
	}
	for id := range excused {
		t.Errorf("faults.NotInjected names %s, which is no finding", id)
	}
}
