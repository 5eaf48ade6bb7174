package tree

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/look"
	"github.com/heliostat-io/heliostat/internal/cli/state"
	"github.com/heliostat-io/heliostat/internal/diagnose"
)

// node is one object and those that it controls.
type node struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Group is the group of Ray nodes that a Pod belongs to.
	Group    string  `json:"group,omitempty"`
	State    string  `json:"state,omitempty"`
	Bad      bool    `json:"bad,omitempty"`
	Children []*node `json:"children,omitempty"`
	// Count is how many like objects the node stands for, 0 for one.
	Count int `json:"count,omitempty"`
}

// treeOf puts all objects that the look found below their controllers.
func treeOf(sight *look.Sight) *node {
	objects := objectsOf(sight.Snapshot)
	return below(sight.Object, objects, sight.Snapshot)
}

func below(object client.Object, all []client.Object, s *diagnose.Snapshot) *node {
	n := nodeOf(object, s)
	for _, other := range all {
		if metav1.IsControlledBy(other, object) {
			n.Children = append(n.Children, below(other, all, s))
		}
	}
	slices.SortStableFunc(n.Children, func(a, b *node) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Group, b.Group),
			cmp.Compare(a.State, b.State), cmp.Compare(a.Name, b.Name))
	})
	return n
}

// place puts what runs before what only helps.
func place(n *node) int {
	switch {
	case n.Kind == "RayJob" || n.Kind == "RayCluster":
		return 0
	case n.Kind == "Pod" && n.Group == rayv1.HeadGroupName:
		return 1
	case n.Kind == "Pod":
		return 2
	default:
		return 3
	}
}

// objectsOf are all objects of a Snapshot that can have a controller.
func objectsOf(s *diagnose.Snapshot) []client.Object {
	return slices.Concat(
		objects(s.Jobs), objects(s.Clusters), objects(s.Pods), objects(s.SubmitterJobs), objects(s.Services), objects(s.Ingresses),
		objects(s.Claims), objects(s.Accounts), objects(s.Roles), objects(s.Bindings),
	)
}

func objects[T client.Object](of []T) []client.Object {
	all := make([]client.Object, 0, len(of))
	for _, object := range of {
		all = append(all, object)
	}
	return all
}

func nodeOf(object client.Object, s *diagnose.Snapshot) *node {
	n := &node{Kind: reflect.TypeOf(object).Elem().Name(), Name: object.GetName()}
	switch o := object.(type) {
	case *corev1.Pod:
		n.Group = o.Labels[rayv1.LabelGroup]
		n.State, n.Bad = podState(o, s.Now)
	case *rayv1.RayCluster, *rayv1.RayJob, *rayv1.RayService, *rayv1.RayCronJob:
		is := state.Of(object)
		n.State, n.Bad = is.Word, !is.Good()
	case *corev1.PersistentVolumeClaim:
		n.State, n.Bad = string(o.Status.Phase), o.Status.Phase == corev1.ClaimLost
	}
	return n
}

// podState is one word about a Pod: the reason of its trouble, or its phase.
func podState(pod *corev1.Pod, now time.Time) (word string, bad bool) {
	if finding, _ := diagnose.Pod(diagnose.PodFacts{Pod: pod, Now: now}); finding.Found() {
		return finding.Reason, true
	}
	if pod.DeletionTimestamp != nil {
		return "Terminating", false
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return state.Ready, false
		}
	}
	return string(pod.Status.Phase), false
}

// fold puts siblings together that are in the same state, so that only what differs catches the eye.
func (n *node) fold() {
	var folded []*node
	for _, child := range n.Children {
		child.fold()
		last := len(folded) - 1
		if last >= 0 && alike(folded[last], child) {
			folded[last] = &node{
				Kind: child.Kind, Group: child.Group, State: child.State, Bad: child.Bad, Name: folded[last].Name,
				Count: max(folded[last].Count, 1) + 1,
			}
			continue
		}
		folded = append(folded, child)
	}
	n.Children = folded
}

func alike(a, b *node) bool {
	return a.Kind == "Pod" && a.Kind == b.Kind && a.Group == b.Group && a.State == b.State && len(a.Children)+len(b.Children) == 0
}

// title is the line of a node without its state.
func (n *node) title() string {
	switch {
	case n.Count > 0:
		return fmt.Sprintf("%d Pods of group %s", n.Count, n.Group)
	case n.Kind == "Pod" && n.Group != "" && n.Group != rayv1.HeadGroupName:
		return fmt.Sprintf("%s %s (group %s)", n.Kind, n.Name, n.Group)
	default:
		return n.Kind + " " + n.Name
	}
}
