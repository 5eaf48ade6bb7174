package rayjob

import (
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// fact is something about a RayJob of which it matters how long this process has seen it. Such times are never compared
// with clocks of others, and never written down: a new leader begins to count anew.
type fact string

const (
	// seenJobEnd is that Ray has said that the job has ended.
	seenJobEnd fact = "job end"
	// seenSubmitterEnd is that the submitter has ended.
	seenSubmitterEnd fact = "submitter end"
	// seenSubmitFails is that the last submission over HTTP failed.
	seenSubmitFails fact = "submit fails"
	// seenStopping is that the Ray job is to stop.
	seenStopping fact = "stopping"
	// seenQuiet is that nothing of ours is left that could still submit the job.
	seenQuiet fact = "quiet"
	// seenTakeDown is that the objects of an attempt are to go.
	seenTakeDown fact = "take-down"
)

// lifeOf is that there is this life of a head Pod.
func lifeOf(head *corev1.Pod) fact {
	return fact(fmt.Sprintf("head %s, restarted %d times", head.UID, restarts(head)))
}

// facts are those of the snapshot.
func facts(s Snapshot) []fact {
	st := &s.Job.Status
	var facts []fact
	add := func(f fact, is bool) {
		if is {
			facts = append(facts, f)
		}
	}
	add(seenJobEnd, rayv1.IsJobTerminal(st.JobStatus))
	add(seenSubmitterEnd, submitterEnd(s).ended)
	sent := about(s.Sent, st)
	add(seenQuiet, !s.Sending && (!s.hasSubmitter() || submitterEnd(s).ended) && len(unfinished(s.SubmitterPods)) == 0)
	add(seenSubmitFails, sent != nil && sent.Err != nil)
	add(seenStopping, st.Stopping != nil || s.Job.DeletionTimestamp != nil)
	if s.Head != nil {
		add(lifeOf(s.Head), true)
	}
	add(seenTakeDown, st.JobDeploymentStatus == rayv1.JobDeploymentStatusSuspending && st.Submission == nil || st.JobDeploymentStatus == rayv1.JobDeploymentStatusRetrying)
	return facts
}

// Memory is what a process remembers of RayJobs: since when it has seen facts, and the last valid specs.
type Memory struct {
	mu     sync.Mutex
	byName map[types.NamespacedName]*remembered
}

type remembered struct {
	uid   types.UID
	first map[fact]time.Time
	valid *rayv1.RayJobSpec
}

// NewMemory returns an empty memory.
func NewMemory() *Memory { return &Memory{byName: map[types.NamespacedName]*remembered{}} }

// of is what is remembered of a job. The lock is held.
func (m *Memory) of(job *rayv1.RayJob) *remembered {
	name := types.NamespacedName{Namespace: job.Namespace, Name: job.Name}
	if known := m.byName[name]; known != nil && known.uid == job.UID {
		return known
	}
	m.byName[name] = &remembered{uid: job.UID}
	return m.byName[name]
}

// note takes in a snapshot and returns since when each of its facts has been seen without a break.
func (m *Memory) note(s Snapshot, now time.Time) map[fact]time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.of(s.Job)
	after := map[fact]time.Time{}
	for _, f := range facts(s) {
		after[f] = now
		if since, ok := known.first[f]; ok {
			after[f] = since
		}
	}
	known.first = after
	return maps.Clone(after)
}

// lastValid takes in a RayJob as it was observed and returns the last spec of it that was valid, or nil when none is known.
func (m *Memory) lastValid(job *rayv1.RayJob, settings Settings) *rayv1.RayJobSpec {
	valid := Validate(job, settings) == nil
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.of(job)
	if valid {
		known.valid = &job.Spec
	}
	return known.valid
}

// forget drops what is remembered of a job that is gone.
func (m *Memory) forget(job types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byName, job)
}

// forgetTimes drops since when facts were seen: this process did not look between two terms.
func (m *Memory) forgetTimes() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, known := range m.byName {
		known.first = nil
	}
}
