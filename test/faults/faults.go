// Package faults is what the catalogues of faults have in common: a fault is injected for real, and the plugin is asked what is
// wrong. Those that need nodes are here and run in test/e2e; the others run against a real API server in test/integration.
package faults

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// Finding is what `diagnose -o json` says, as far as these tests look at it.
type Finding struct {
	ID, Severity, Object, Evidence, Cause, Next string
}

// Fault is one thing that goes wrong with a RayCluster on nodes, and what diagnose has to say about it.
type Fault struct {
	Name string
	// Want is the id of the finding.
	Want string
	// Edit breaks a RayCluster that would work. It may be nil.
	Edit func(*rayv1.RayCluster)
	// With are objects that have to be there before the cluster.
	With func(namespace string) []client.Object
	// Then breaks what is there already. It may be nil.
	Then func(t *testing.T, c client.Client, cluster *rayv1.RayCluster)
	// Refuses tells that With makes the API server refuse Pods, which takes a moment.
	Refuses bool
	// Also are the ids of findings that may stand beside the wanted one because they are true as well.
	Also []string
}

// Verdict is what diagnose said about one fault.
type Verdict struct {
	Name, Want string
	Also       []string
	Found      bool
	Evidence   string
	// Instead are the ids of what was found while the wanted one was not.
	Instead string
	// Others are the findings that nobody expected.
	Others []Finding
}

// Judge notes whether the wanted finding is there, and what else is. Where nothing is wanted, all is a false alarm.
func (v *Verdict) Judge(findings []Finding) {
	v.Found = v.Want == ""
	for _, f := range findings {
		switch {
		case f.ID == v.Want:
			v.Found, v.Evidence = true, f.Evidence
		case !slices.Contains(v.Also, f.ID) && !slices.ContainsFunc(v.Others, func(o Finding) bool { return o.ID == f.ID }):
			v.Others = append(v.Others, f)
		}
	}
	if !v.Found && v.Evidence == "" {
		v.Instead = ids(v.Others)
		// Until the fault shows, what shows before it is no alarm.
		v.Others = nil
	}
}

// Report prints what became of each fault, and fails the test for those that were missed and for false alarms.
func Report(t *testing.T, verdicts []Verdict) {
	t.Helper()
	t.Log(table(verdicts))
	for _, v := range verdicts {
		if !v.Found {
			t.Errorf("missed: %s (%s): there was %q", v.Name, v.Want, v.Instead)
		}
		for _, other := range v.Others {
			t.Errorf("false alarm beside %s (%s): %s %s: %s", v.Name, v.Want, other.ID, other.Object, other.Evidence)
		}
	}
}

// table is the catalogue with what became of each fault.
func table(verdicts []Verdict) string {
	var text strings.Builder
	found, faults, alarms := 0, 0, 0
	for _, v := range verdicts {
		outcome := "missed"
		switch {
		case v.Want == "":
			outcome = "healthy"
		case v.Found:
			outcome = "found"
			found++
		}
		if v.Want != "" {
			faults++
		}
		alarms += len(v.Others)
		fmt.Fprintf(&text, "%-7s %-26s %-60s %.90s\n", outcome, v.Want, v.Name, v.Evidence)
	}
	return fmt.Sprintf("\n%sfound %d of %d, missed %d, false alarms %d\n", text.String(), found, faults, faults-found, alarms)
}

func ids(findings []Finding) string {
	all := make([]string, 0, len(findings))
	for _, f := range findings {
		all = append(all, f.ID)
	}
	return strings.Join(all, ", ")
}

const (
	// RayImage is what hack/cluster.sh puts onto every node.
	RayImage = "rayproject/ray:2.60.0"
	// patience is how long a Pod may take to be there.
	patience = 3 * time.Minute
)

// PlainCluster is a RayCluster with a head that takes little.
func PlainCluster(namespace, name string) *rayv1.RayCluster {
	return &rayv1.RayCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: rayv1.RayClusterSpec{
			RayVersion: "2.60.0",
			HeadGroupSpec: rayv1.HeadGroupSpec{
				RayStartParams: map[string]string{"num-cpus": "0"},
				Template:       small("ray-head"),
			},
		},
	}
}

// SmallGroup is a worker group whose Pods take little.
func SmallGroup(name string, replicas int32) rayv1.WorkerGroupSpec {
	least, most := int32(0), int32(2)
	return rayv1.WorkerGroupSpec{
		GroupName: name, Replicas: &replicas, MinReplicas: &least, MaxReplicas: &most,
		RayStartParams: map[string]string{"num-cpus": "1"}, Template: small("ray-worker"),
	}
}

func small(container string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: container, Image: RayImage,
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("20m"), "memory": resource.MustParse("64Mi")}},
	}}}}
}
