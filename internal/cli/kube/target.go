package kube

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// Kind is one of the kinds of ray.io/v1.
type Kind string

// The kinds of ray.io/v1.
const (
	RayCluster Kind = "RayCluster"
	RayJob     Kind = "RayJob"
	RayService Kind = "RayService"
	RayCronJob Kind = "RayCronJob"
)

// Kinds are all kinds, the one first that is meant when none is said.
func Kinds() []Kind { return []Kind{RayCluster, RayJob, RayService, RayCronJob} }

// words are what users may write for a kind.
func (k Kind) words() []string {
	long := strings.ToLower(string(k))
	short := strings.TrimPrefix(long, "ray")
	return []string{long, long + "s", short, short + "s"}
}

// New returns an empty object of the kind.
func (k Kind) New() client.Object {
	switch k {
	case RayJob:
		return &rayv1.RayJob{}
	case RayService:
		return &rayv1.RayService{}
	case RayCronJob:
		return &rayv1.RayCronJob{}
	default:
		return &rayv1.RayCluster{}
	}
}

// NewList returns an empty list of objects of the kind.
func (k Kind) NewList() client.ObjectList {
	switch k {
	case RayJob:
		return &rayv1.RayJobList{}
	case RayService:
		return &rayv1.RayServiceList{}
	case RayCronJob:
		return &rayv1.RayCronJobList{}
	default:
		return &rayv1.RayClusterList{}
	}
}

// Target is one object that a user named.
type Target struct {
	Kind Kind
	types.NamespacedName
}

func (t Target) String() string { return fmt.Sprintf("%s %s/%s", t.Kind, t.Namespace, t.Name) }

// ParseTarget reads NAME, which is a RayCluster, or TYPE/NAME. TYPE may be raycluster, rayclusters, cluster or clusters,
// and the like for the other kinds, in any case, also with a group such as rayclusters.ray.io.
func ParseTarget(namespace, argument string) (Target, error) {
	word, name, typed := strings.Cut(argument, "/")
	if !typed {
		word, name = string(RayCluster), argument
	}
	if name == "" || strings.Contains(name, "/") {
		return Target{}, fmt.Errorf("%q is neither NAME nor TYPE/NAME", argument)
	}
	kind, err := ParseKind(word)
	if err != nil {
		return Target{}, err
	}
	return Target{Kind: kind, NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}, nil
}

// ParseKind reads the name of a kind.
func ParseKind(word string) (Kind, error) {
	plain, _, _ := strings.Cut(strings.ToLower(word), ".")
	for _, kind := range Kinds() {
		if slices.Contains(kind.words(), plain) {
			return kind, nil
		}
	}
	return "", fmt.Errorf("type %q is unknown: it must be raycluster, rayjob, rayservice or raycronjob", word)
}
