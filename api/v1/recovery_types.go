package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// LostPart is what a RayCluster has lost. Heliostat adds it.
//
// +kubebuilder:validation:Enum=Head;HeadContainer;Worker;WorkerContainer
type LostPart string

const (
	// LostHead is the head with its Pod.
	LostHead LostPart = "Head"
	// LostHeadContainer is Ray on the head; it starts anew in the same Pod.
	LostHeadContainer LostPart = "HeadContainer"
	// LostWorker is a worker with its Pod.
	LostWorker LostPart = "Worker"
	// LostWorkerContainer is Ray on a worker; it starts anew in the same Pod.
	LostWorkerContainer LostPart = "WorkerContainer"
)

// RecoveryState is how far the operator has come in finding out what a loss took. Heliostat adds it.
//
// +kubebuilder:validation:Enum=Observing;Complete;Unknown
type RecoveryState string

const (
	// RecoveryObserving means that Ray is being asked.
	RecoveryObserving RecoveryState = "Observing"
	// RecoveryComplete means that the counts are final.
	RecoveryComplete RecoveryState = "Complete"
	// RecoveryUnknown means that it cannot be found out; the message says why. Counts are those that were seen last.
	RecoveryUnknown RecoveryState = "Unknown"
)

// RayClusterRecovery tells of one loss, and of what came back. Heliostat adds it.
type RayClusterRecovery struct {
	// time is when the operator noticed the loss.
	Time metav1.Time `json:"time"`
	// part is what was lost.
	Part LostPart `json:"part"`
	// group is the worker group, or "headgroup".
	Group string `json:"group"`
	// pod is the name of the Pod that was lost, or in which Ray was.
	Pod string `json:"pod"`
	// incarnation is the number of that Pod's life.
	// +optional
	Incarnation int64 `json:"incarnation,omitempty"`
	// cause is Kubernetes' word for what happened, for example OOMKilled, EvictionByEvictionAPI or Deleted.
	Cause string `json:"cause"`
	// state is how far the operator has come in finding out what the loss took.
	State RecoveryState `json:"state"`
	// actors counts the actors that were hit. It is absent while nothing is known.
	// +optional
	Actors *RecoveryCounts `json:"actors,omitempty"`
	// lostActors are the names, or classes, of actors that are dead for good, at most 10 of them.
	// +optional
	// +listType=atomic
	LostActors []string `json:"lostActors,omitempty"`
	// placementGroups counts the placement groups that were hit. It is absent where there are none.
	// +optional
	PlacementGroups *RecoveryCounts `json:"placementGroups,omitempty"`
	// jobs counts the submitted jobs whose drivers were hit. It is absent where there are none.
	// +optional
	Jobs *RecoveryCounts `json:"jobs,omitempty"`
	// lostJobs are the submission ids of jobs that are lost, at most 10 of them.
	// +optional
	// +listType=atomic
	LostJobs []string `json:"lostJobs,omitempty"`
	// durationSeconds is how long it took until nothing was on its way back any more.
	// +optional
	DurationSeconds *int64 `json:"durationSeconds,omitempty"`
	// message says what is not known, and why.
	// +optional
	Message string `json:"message,omitempty"`
}

// RecoveryCounts counts things of one kind by what became of them. Heliostat adds it.
type RecoveryCounts struct {
	// lost ones are dead and will not come back.
	Lost int32 `json:"lost"`
	// restarting ones are on their way back, without what they had in memory.
	Restarting int32 `json:"restarting"`
	// restored ones live again, without what they had in memory.
	Restored int32 `json:"restored"`
	// kept ones were not touched by the loss of the head.
	// +optional
	Kept int32 `json:"kept,omitempty"`
}
