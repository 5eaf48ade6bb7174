package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// RayClusterCensus is what an operator leaves to the next one, so that a loss is told of although nobody watched when it
// happened. Heliostat adds it.
type RayClusterCensus struct {
	// head is the Pod in which the head was seen to run.
	// +optional
	Head *CensusHead `json:"head,omitempty"`
	// workers are the Pods in which workers were seen to run, by group: the ending of the name where the rest follows from
	// the names of cluster and group, else all of it, and ":" with the number of restarts of its Ray container where there
	// were some. At most 1000 are kept.
	// +optional
	Workers map[string][]string `json:"workers,omitempty"`
	// time is when Ray was asked for the numbers below. It is absent while Ray has not answered.
	// +optional
	Time *metav1.Time `json:"time,omitempty"`
	// session is the life of the head that answered, in Ray's own words.
	// +optional
	Session string `json:"session,omitempty"`
	// actors is how many actors of users lived.
	// +optional
	Actors int32 `json:"actors,omitempty"`
	// placementGroups is how many placement groups had their room.
	// +optional
	PlacementGroups int32 `json:"placementGroups,omitempty"`
	// jobs is how many submitted jobs had a driver.
	// +optional
	Jobs int32 `json:"jobs,omitempty"`
}

// CensusHead is one life of Ray on a head. Heliostat adds it.
type CensusHead struct {
	// pod is the name of the Pod.
	Pod string `json:"pod"`
	// uid is that of the Pod.
	UID types.UID `json:"uid"`
	// incarnation is the number of the Pod's life.
	// +optional
	Incarnation int64 `json:"incarnation,omitempty"`
	// restarts is how often its Ray container was started anew.
	// +optional
	Restarts int32 `json:"restarts,omitempty"`
}
