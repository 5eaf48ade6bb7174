package rayjob

import (
	"slices"
	"sync"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// history are all versions of a RayJob that the API server has had.
type history struct {
	mu       sync.Mutex
	statuses []rayv1.RayJobStatus
}

// all are the statuses so far, each one once.
func (h *history) all() []rayv1.RayJobStatus {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.statuses)
}

// phases are the phases so far, in their order.
func (h *history) phases() []rayv1.JobDeploymentStatus {
	var phases []rayv1.JobDeploymentStatus
	for _, status := range h.all() {
		phases = append(phases, status.JobDeploymentStatus)
	}
	return slices.Compact(phases)
}

// distinct are the different values that something had, without the empty one.
func (h *history) distinct(value func(rayv1.RayJobStatus) string) []string {
	var values []string
	for _, status := range h.all() {
		if v := value(status); v != "" && !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	return values
}

// record keeps what becomes of the RayJobs of the namespace from now on. No version is missed: this is a watch.
func (e *env) record() *history {
	e.t.Helper()
	watcher, err := client.NewWithWatch(e.REST, client.Options{Scheme: e.Scheme()})
	e.Expect(err).ToNot(HaveOccurred())
	watch, err := watcher.Watch(e.t.Context(), &rayv1.RayJobList{}, client.InNamespace(e.ns))
	e.Expect(err).ToNot(HaveOccurred())
	e.t.Cleanup(watch.Stop)
	h := &history{}
	go func() {
		for event := range watch.ResultChan() {
			if job, ok := event.Object.(*rayv1.RayJob); ok {
				h.mu.Lock()
				h.statuses = append(h.statuses, job.Status)
				h.mu.Unlock()
			}
		}
	}()
	return h
}
