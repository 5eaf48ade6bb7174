package sim

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// spaceIn is the part of Redis that a container is told to use, or empty.
func spaceIn(pod *corev1.Pod) string {
	return valueOf(pod.Spec.Containers[0], "RAY_external_storage_namespace")
}

func emptiesRedis(pod *corev1.Pod) bool {
	return pod.Labels[rayv1.LabelNodeType] == rayv1.NodeTypeRedisCleanup
}

// writesToRedis lets a head that starts write its state down.
func (w *world) writesToRedis(pod *corev1.Pod) {
	if space := spaceIn(pod); space != "" && pod.Labels[rayv1.LabelNodeType] == rayv1.NodeTypeHead {
		w.redis[space] = true
	}
}

// cleaner is what a Pod that empties Redis does next.
func (w *world) cleaner(pod *corev1.Pod) *deed {
	if !emptiesRedis(pod) || pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil {
		return nil
	}
	return &deed{pod.Name + " empties Redis", func() {
		space := spaceIn(pod)
		for _, stored := range w.server.List("Pod") {
			if other := stored.(*corev1.Pod); !emptiesRedis(other) && spaceIn(other) == space && other.Status.Phase == corev1.PodRunning {
				w.fail("Redis is emptied while head %s writes to it", other.Name)
			}
		}
		delete(w.redis, space)
		w.must(w.server.Change("kubelet", pod, "status", func(o object) { o.(*corev1.Pod).Status.Phase = corev1.PodSucceeded }))
	}}
}

// judgeRedisAtEnd checks that nothing is left in Redis of a cluster that is gone, unless an event says so.
func (w *world) judgeRedisAtEnd() {
	for space := range w.redis {
		lives := slices.ContainsFunc(w.server.List("RayCluster"), func(o object) bool { return string(o.GetUID()) == space })
		told := slices.ContainsFunc(w.gaveUp, func(event string) bool { return strings.Contains(event, space) })
		if !lives && !told && !w.vanishing {
			w.fail("what cluster %s has left in Redis stays there, and nobody says so", space)
		}
	}
}

// inRedis keeps the state of a cluster in Redis.
func inRedis(c *rayv1.RayCluster) {
	c.Spec.GcsFaultToleranceOptions = &rayv1.GcsFaultToleranceOptions{RedisAddress: "redis:6379"}
}

func withoutRedis() change {
	return edit("no fault tolerance any more", func(c *rayv1.RayCluster) { c.Spec.GcsFaultToleranceOptions = nil })
}

// redisScenarios are those in which a cluster leaves something behind that is not in Kubernetes.
func redisScenarios(plain func(...func(*rayv1.RayCluster)) func() []object) []scenario {
	held := func(c *rayv1.RayCluster) { c.Spec.HeadGroupSpec.Template.Finalizers = []string{"mine/held"} }
	return []scenario{
		{name: "a cluster with Redis loses its head, and is deleted", timed: true, objects: plain(inRedis),
			changes: []change{lose(rayv1.HeadGroupName), deleteAll("RayCluster")}},
		{name: "a cluster with Redis is deleted at once", timed: true, objects: plain(inRedis),
			changes: []change{deleteAll("RayCluster")}},
		{name: "a cluster has Redis no more, and is deleted", timed: true, objects: plain(inRedis),
			changes: []change{withoutRedis(), deleteAll("RayCluster")}},
		{name: "a cluster with Redis is deleted, and its head is held", timed: true, stuck: true, objects: plain(inRedis, held),
			changes: []change{deleteAll("RayCluster")}},
		{name: "a cluster with Redis is deleted with its namespace", timed: true, stuck: true, objects: plain(inRedis),
			changes: []change{{what: "the namespace is deleted", make: deleteNamespace}}},
	}
}
