package status

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/state"
	"github.com/heliostat-io/heliostat/internal/diagnose"
	"github.com/heliostat-io/heliostat/internal/raycluster"
)

// cluster is one RayCluster.
type cluster struct {
	Name       string `json:"name"`
	RayVersion string `json:"rayVersion,omitempty"`
	state.State
	Head   *head   `json:"head,omitempty"`
	Groups []group `json:"groups,omitempty"`
	// WrittenBy is who last wrote the worker groups, WrittenAt is when.
	WrittenBy string      `json:"groupsWrittenBy,omitempty"`
	WrittenAt metav1.Time `json:"groupsWrittenAt,omitzero"`
}

type head struct {
	Pod       string `json:"pod"`
	Phase     string `json:"phase"`
	Ready     bool   `json:"ready"`
	Node      string `json:"node,omitempty"`
	Restarts  int32  `json:"restarts"`
	Dashboard string `json:"dashboard,omitempty"`
}

// group is one worker group, counted in Pods.
type group struct {
	Name      string `json:"name"`
	Want      int32  `json:"want"`
	Ready     int32  `json:"ready"`
	Pending   int32  `json:"pending"`
	Failing   int32  `json:"failing"`
	Min       int32  `json:"min"`
	Max       *int32 `json:"max,omitempty"`
	Suspended bool   `json:"suspended,omitempty"`
}

func clusterOf(o *rayv1.RayCluster, s *diagnose.Snapshot) cluster {
	c := cluster{Name: o.Name, RayVersion: o.Spec.RayVersion, State: state.Of(o)}
	who, when := diagnose.LastWriter(o)
	c.WrittenBy, c.WrittenAt = who, metav1.NewTime(when)
	if answer, asked := s.Dashboards[o.Name]; asked && answer.RayVersion != "" {
		c.RayVersion = answer.RayVersion
	}
	var workers []*corev1.Pod
	for _, pod := range s.Pods {
		if !metav1.IsControlledBy(pod, o) {
			continue
		}
		if pod.Labels[rayv1.LabelNodeType] == rayv1.NodeTypeHead {
			c.Head = headOf(pod, s.Dashboards, o.Name)
			continue
		}
		workers = append(workers, pod)
	}
	for i := range o.Spec.WorkerGroupSpecs {
		c.Groups = append(c.Groups, groupOf(&o.Spec.WorkerGroupSpecs[i], o, workers, s.Now))
	}
	return c
}

func headOf(pod *corev1.Pod, dashboards map[string]diagnose.Dashboard, cluster string) *head {
	h := &head{Pod: pod.Name, Phase: string(pod.Status.Phase), Ready: ready(pod), Node: pod.Spec.NodeName}
	if pod.DeletionTimestamp != nil {
		h.Phase = "Terminating"
	}
	for _, c := range pod.Status.ContainerStatuses {
		h.Restarts = max(h.Restarts, c.RestartCount)
	}
	answer, asked := dashboards[cluster]
	switch {
	case !asked || answer.Took == 0:
	case answer.Error != "":
		h.Dashboard = "silent"
	default:
		h.Dashboard = fmt.Sprintf("ok (%d ms)", answer.Took.Milliseconds())
	}
	return h
}

func ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil
		}
	}
	return false
}

func groupOf(spec *rayv1.WorkerGroupSpec, o *rayv1.RayCluster, workers []*corev1.Pod, now time.Time) group {
	hosts := max(spec.NumOfHosts, 1)
	g := group{
		Name: spec.GroupName, Want: raycluster.GroupReplicas(spec) * hosts, Min: ptr.Deref(spec.MinReplicas, 0) * hosts,
		Suspended: ptr.Deref(spec.Suspend, false),
	}
	if ptr.Deref(o.Spec.Suspend, false) {
		g.Want, g.Suspended = 0, true
	}
	// Without a maximum of its own a group has that of the API, which is no number for people.
	if most := ptr.Deref(spec.MaxReplicas, 1<<31-1); most < 1<<31-1 {
		g.Max = ptr.To(most * hosts)
	}
	for _, pod := range workers {
		if pod.Labels[rayv1.LabelGroup] != spec.GroupName || pod.DeletionTimestamp != nil {
			continue
		}
		finding, _ := diagnose.Pod(diagnose.PodFacts{Pod: pod, Now: now})
		switch {
		case ready(pod):
			g.Ready++
		case finding.Severity == diagnose.Blocking:
			g.Failing++
		default:
			g.Pending++
		}
	}
	return g
}
