package status

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/look"
	"github.com/heliostat-io/heliostat/internal/cli/state"
	"github.com/heliostat-io/heliostat/internal/diagnose"
)

// report is what the command says, in every format.
type report struct {
	Kind               string      `json:"kind"`
	Namespace          string      `json:"namespace"`
	Name               string      `json:"name"`
	Created            metav1.Time `json:"created"`
	Generation         int64       `json:"generation"`
	ObservedGeneration int64       `json:"observedGeneration,omitempty"`
	state.State
	Job        *job        `json:"job,omitempty"`
	Service    *service    `json:"service,omitempty"`
	Schedule   *schedule   `json:"schedule,omitempty"`
	Clusters   []cluster   `json:"clusters,omitempty"`
	Problems   []problem   `json:"problems,omitempty"`
	Losses     []loss      `json:"losses,omitempty"`
	Conditions []condition `json:"conditions,omitempty"`
	Events     []event     `json:"events,omitempty"`
}

// problem is a finding in short.
type problem struct {
	ID     string `json:"id"`
	Object string `json:"object"`
	// More is how many more objects have it.
	More  int    `json:"more,omitempty"`
	Cause string `json:"cause"`
	Next  string `json:"next"`
}

// loss is what a cluster lost lately.
type loss struct {
	Cluster string `json:"cluster"`
	rayv1.RayClusterRecovery
}

type condition struct {
	Type    string      `json:"type"`
	Status  string      `json:"status"`
	Since   metav1.Time `json:"since"`
	Reason  string      `json:"reason"`
	Message string      `json:"message,omitempty"`
}

type event struct {
	Time    metav1.Time `json:"time"`
	Type    string      `json:"type"`
	Reason  string      `json:"reason"`
	Object  string      `json:"object"`
	Message string      `json:"message"`
}

func reportOf(sight *look.Sight) report {
	r := report{
		Kind: string(sight.Target.Kind), Namespace: sight.Target.Namespace, Name: sight.Target.Name,
		Created:    sight.Object.GetCreationTimestamp(),
		Generation: sight.Object.GetGeneration(), ObservedGeneration: state.ObservedGeneration(sight.Object),
		State: state.Of(sight.Object),
	}
	switch o := sight.Object.(type) {
	case *rayv1.RayJob:
		r.Job = jobOf(o)
	case *rayv1.RayService:
		r.Service = serviceOf(o)
	case *rayv1.RayCronJob:
		r.Schedule = scheduleOf(o, sight.Snapshot.Jobs)
	}
	for _, c := range sight.Snapshot.Clusters {
		r.Clusters = append(r.Clusters, clusterOf(c, sight.Snapshot))
		for _, recovery := range c.Status.Recoveries {
			r.Losses = append(r.Losses, loss{c.Name, recovery})
		}
	}
	for _, f := range diagnose.Fold(sight.Findings) {
		if f.Severity == diagnose.Note {
			continue
		}
		entry := f.Explained()
		r.Problems = append(r.Problems, problem{ID: f.ID, Object: f.Object, More: len(f.Others), Cause: entry.Cause, Next: entry.Next})
	}
	return r
}

// addDetails adds conditions and events, which only some ask for.
func (r *report) addDetails(sight *look.Sight) {
	for _, c := range state.Conditions(sight.Object) {
		r.Conditions = append(r.Conditions, condition{c.Type, string(c.Status), c.LastTransitionTime, c.Reason, c.Message})
	}
	for _, e := range sight.Snapshot.Events {
		at := e.LastTimestamp
		if at.IsZero() {
			at = metav1.Time{Time: e.EventTime.Time}
		}
		r.Events = append(r.Events, event{at, e.Type, e.Reason, e.InvolvedObject.Kind + " " + e.InvolvedObject.Name, e.Message})
	}
	sortEvents(r.Events)
}

// maxEvents bounds how many events are shown, the newest ones.
const maxEvents = 15

// newestAge is how long a loss stays on the screen.
const newestAge = 24 * time.Hour
