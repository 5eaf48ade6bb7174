package integration

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/harness"
)

// says returns a fault of which only the words of a node are here: the head's container waits, for a reason and with a message.
func says(reason, message string) func(*scene) {
	return func(s *scene) {
		s.cluster()
		s.SetPod(s.t, s.head(), harness.Waiting("ray-head", reason, message))
	}
}

// unplaced returns a fault of which only the words of the scheduler are here.
func unplaced(message string) func(*scene) {
	return func(s *scene) {
		s.cluster()
		s.SetPod(s.t, s.head(), harness.Unschedulable(message))
	}
}

// writes returns a fault of which only the last words of the head's container are here.
func writes(log string, edits ...func(*rayv1.RayCluster)) func(*scene) {
	return func(s *scene) {
		s.logs["ray-head"] = log
		s.cluster(edits...)
		s.SetPod(s.t, s.head(), harness.Ready, crashes("ray-head", 1))
	}
}

// unmounted returns a fault of which only an event about the volumes of the head is here.
func unmounted(reason, message string) func(*scene) {
	return func(s *scene) {
		s.cluster()
		head := s.head()
		s.bind(head, "one")
		s.SetPod(s.t, head, harness.Waiting("ray-head", "ContainerCreating", ""))
		s.event(head, "Pod", reason, message)
	}
}

// over returns a fault of a head that has ended and that no operator has replaced yet.
func over(reason, message string) func(*scene) {
	return func(s *scene) {
		s.halted()
		head := s.head()
		s.SetPod(s.t, head, harness.Ended(corev1.PodFailed, reason), func(pod *corev1.Pod) { pod.Status.Message = message })
	}
}

// nodeWords are faults that only a node, a scheduler or Ray can have. What is here are their own words, as they write them into the status
// of Pods, into events and into logs.
func nodeWords() []fault {
	return []fault{
		{name: "words: an image that is not there", want: "image-not-found", inject: says("ImagePullBackOff", `failed to resolve reference "rayproject/ray:9": not found`)},
		{name: "words: an image that one may not have", want: "image-denied", inject: says("ErrImagePull", `failed to authorize: failed to fetch anonymous token: unexpected status: 401 Unauthorized`)},
		{name: "words: an image of another processor", want: "image-no-build", inject: says("ErrImagePull", `no match for platform in manifest: not found`)},
		{name: "words: an image that is broken", want: "image-pull", inject: says("ErrImagePull", `failed to unpack image: unexpected media type`)},
		{name: "words: a reference that is empty", want: "container-config", inject: says("CreateContainerConfigError", `failed to prepare subPath for volumeMount "x"`)},
		{name: "words: a reason that nobody knows", want: "pod-trouble", inject: says("SomethingElse", "in words of its own")},
		{name: "words: taints", want: "untolerated-taint", inject: unplaced(`0/3 nodes are available: 3 node(s) had untolerated taint {dedicated: other}.`)},
		{name: "words: nodes that are cordoned", want: "nodes-cordoned", inject: unplaced(`0/1 nodes are available: 1 node(s) were unschedulable.`)},
		{name: "words: a port of the node", want: "host-port-taken", inject: unplaced(`0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports.`)},
		{name: "words: a volume elsewhere", want: "volume-node-conflict", inject: unplaced(`0/2 nodes are available: 2 node(s) had volume node affinity conflict.`)},
		{name: "words: a scheduler's plug-in", want: "unschedulable", inject: unplaced(`0/2 nodes are available: 2 node(s) are not liked by a plug-in.`)},
		{name: "words: a volume that is attached elsewhere", want: "volume-multi-attach", inject: unmounted("FailedAttachVolume",
			`Multi-Attach error for volume "pvc-1" Volume is already exclusively attached to one node and can't be attached to another`)},
		{name: "words: a volume that cannot be mounted", want: "volume-not-mounted", inject: unmounted("FailedMount",
			`MountVolume.SetUp failed for volume "nfs" : mount failed: exit status 32`)},
		{name: "words: a node that takes long", want: "slow-start", later: after(6 * time.Minute), inject: func(s *scene) {
			s.cluster()
			head := s.head()
			s.bind(head, "one")
			s.SetPod(s.t, head, harness.Waiting("ray-head", "ContainerCreating", ""), func(pod *corev1.Pod) {
				pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue})
			})
		}},
		{name: "words: a worker that does not reach the GCS", want: "gcs-unreachable", inject: func(s *scene) {
			s.logs["ray-worker"] = "Failed to connect to GCS at address demo-head-svc:6379"
			s.ready()
			s.SetPod(s.t, s.workers()[0], crashes("ray-worker", 1))
		}},
		{name: "words: a worker of another version", want: "version-skew", inject: func(s *scene) {
			s.logs["ray-worker"] = "RuntimeError: Version mismatch: The cluster was started with: Ray: 2.60.0"
			s.ready()
			s.SetPod(s.t, s.workers()[0], crashes("ray-worker", 1))
		}},
		{name: "words: a Redis that does not let in", want: "redis-trouble", inject: writes("Failed to connect to Redis: WRONGPASS", func(c *rayv1.RayCluster) {
			c.Spec.GcsFaultToleranceOptions = &rayv1.GcsFaultToleranceOptions{RedisAddress: "redis:6379"}
		})},
		{name: "words: a container beside Ray that ends for good", want: "sidecar-ended", inject: func(s *scene) {
			s.cluster(beside("metrics"), func(c *rayv1.RayCluster) {
				c.Spec.HeadGroupSpec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
			})
			s.SetPod(s.t, s.head(), harness.Exited("metrics", "Error", 2))
		}},
		{name: "words: a node that is silent", want: "node-lost", inject: func(s *scene) {
			s.ready()
			s.SetPod(s.t, s.workers()[0], gated, func(pod *corev1.Pod) {
				pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.ContainersReady, Status: corev1.ConditionTrue})
			})
		}},
	}
}

// endedWords are about Pods that have ended, before an operator replaces them.
func endedWords() []fault {
	return []fault{
		{name: "words: a node under pressure", want: "evicted", inject: over("Evicted", "The node was low on resource: memory.")},
		{name: "words: a Pod of a higher priority", want: "preempted", inject: over("Preempting", "Preempted in order to admit critical pod")},
		{name: "words: a node that does not take the Pod", want: "refused-by-node", inject: over("UnexpectedAdmissionError", "Allocate failed due to no healthy devices present")},
	}
}
