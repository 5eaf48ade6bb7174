package rayservice

import (
	"slices"
	"sync"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// history are all versions of a RayService that the API server has had.
type history struct {
	mu       sync.Mutex
	versions []*rayv1.RayService
}

// all are the versions so far, each one once.
func (h *history) all() []*rayv1.RayService {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.versions)
}

// distinct are the values that something had, in their order, without repetition of the same one after itself.
func (h *history) distinct(value func(*rayv1.RayService) string) []string {
	var values []string
	for _, version := range h.all() {
		values = append(values, value(version))
	}
	return slices.Compact(values)
}

// conditions are the states that a condition went through.
func (h *history) conditions(kind string) []string {
	return h.distinct(func(s *rayv1.RayService) string {
		c := condition(s, kind)
		return is(c.Status, c.Reason)
	})
}

// record keeps what becomes of the RayServices of the namespace from now on. No version is missed: this is a watch.
func (e *env) record() *history {
	e.t.Helper()
	watcher, err := client.NewWithWatch(e.REST, client.Options{Scheme: e.Scheme()})
	e.Expect(err).ToNot(HaveOccurred())
	watch, err := watcher.Watch(e.t.Context(), &rayv1.RayServiceList{}, client.InNamespace(e.ns))
	e.Expect(err).ToNot(HaveOccurred())
	e.t.Cleanup(watch.Stop)
	h := &history{}
	go func() {
		for event := range watch.ResultChan() {
			if service, ok := event.Object.(*rayv1.RayService); ok {
				h.mu.Lock()
				h.versions = append(h.versions, service)
				h.mu.Unlock()
			}
		}
	}()
	return h
}
