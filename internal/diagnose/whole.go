package diagnose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

const (
	// settling is how long the operator and Kubernetes may take to make what follows from a change, before a part that is
	// missing counts.
	settling = time.Minute
	// joining is how long a worker may wait for a head that is ready.
	joining = 2 * time.Minute
	// eventsCount is how long an event counts that tells of a refusal: a little longer than the ten minutes for which controllers wait at
	// most before they try again. Events stay for an hour, so an older one may speak of what is over; the conditions of Heliostat
	// need no events.
	eventsCount = 11 * time.Minute
)

// object is what the objects of ray.io/v1 have in common.
type object struct {
	kind       string
	meta       *metav1.ObjectMeta
	conditions []metav1.Condition
	observed   int64
	managedBy  *string
	suspended  bool
	// ended objects are not acted upon any more.
	ended bool
	// untouched objects have an empty status: no operator has looked at them.
	untouched bool
	// invalid is what KubeRay, which has no condition for it, says against the spec in the status.
	invalid string
}

// String is how findings name an object.
func (o object) String() string { return o.kind + " " + o.meta.Name }

// condition returns a condition of that type if it has that status, or nil.
func (o object) condition(kind string, status metav1.ConditionStatus) *metav1.Condition {
	if c := meta.FindStatusCondition(o.conditions, kind); c != nil && c.Status == status {
		return c
	}
	return nil
}

// ours tells whether the operator is to act upon the object.
func (o object) ours() bool { return o.managedBy == nil || *o.managedBy == rayv1.ManagedByOperator }

func clusterObject(c *rayv1.RayCluster) object {
	return object{kind: rayv1.KindRayCluster, meta: &c.ObjectMeta, conditions: plain(c.Status.Conditions), observed: c.Status.ObservedGeneration,
		managedBy: c.Spec.ManagedBy, suspended: isTrue(c.Spec.Suspend),
		untouched: c.Status.ObservedGeneration == 0 && c.Status.State == "" && len(c.Status.Conditions) == 0}
}

func jobObject(j *rayv1.RayJob) object {
	o := object{kind: rayv1.KindRayJob, meta: &j.ObjectMeta, conditions: plain(j.Status.Conditions), observed: j.Status.ObservedGeneration,
		managedBy: j.Spec.ManagedBy, suspended: j.Spec.Suspend, ended: rayv1.IsJobDeploymentTerminal(j.Status.JobDeploymentStatus),
		untouched: j.Status.ObservedGeneration == 0 && j.Status.JobDeploymentStatus == ""}
	if j.Status.JobDeploymentStatus == rayv1.JobDeploymentStatusValidationFailed {
		o.invalid = j.Status.Message
	}
	return o
}

func serviceObject(s *rayv1.RayService) object {
	o := object{kind: rayv1.KindRayService, meta: &s.ObjectMeta, conditions: plain(s.Status.Conditions), observed: s.Status.ObservedGeneration,
		managedBy: s.Spec.ManagedBy, suspended: s.Spec.Suspend,
		untouched: s.Status.ObservedGeneration == 0 && len(s.Status.Conditions) == 0}
	if c := o.condition(rayv1.ConditionRayServiceReady, metav1.ConditionFalse); c != nil && c.Reason == rayv1.ReasonValidationFailed {
		o.invalid = c.Message
	}
	return o
}

func cronObject(c *rayv1.RayCronJob) object {
	return object{kind: rayv1.KindRayCronJob, meta: &c.ObjectMeta, conditions: plain(c.Status.Conditions),
		observed: c.Status.ObservedGeneration, suspended: isTrue(c.Spec.Suspend)}
}

// objects are all objects of ray.io/v1 in the snapshot, the outermost first.
func (s *Snapshot) objects() []object {
	var all []object
	if s.CronJob != nil {
		all = append(all, cronObject(s.CronJob))
	}
	for _, job := range s.Jobs {
		all = append(all, jobObject(job))
	}
	if s.Service != nil {
		all = append(all, serviceObject(s.Service))
	}
	for _, cluster := range s.Clusters {
		all = append(all, clusterObject(cluster))
	}
	return all
}

// living are the clusters that are meant to have Pods now.
func (s *Snapshot) living() []*rayv1.RayCluster {
	return slices.DeleteFunc(slices.Clone(s.Clusters), func(c *rayv1.RayCluster) bool {
		o := clusterObject(c)
		return c.DeletionTimestamp != nil || o.suspended || !o.ours()
	})
}

// settled are the living clusters that are not young.
func (s *Snapshot) settled() []*rayv1.RayCluster {
	return slices.DeleteFunc(s.living(), func(c *rayv1.RayCluster) bool { return s.youngerThan(c.CreationTimestamp, settling) })
}

func (s *Snapshot) youngerThan(since metav1.Time, age time.Duration) bool {
	left := age - s.Now.Sub(since.Time)
	if left <= 0 {
		return false
	}
	s.lookAgain(left)
	return true
}

// nodes are the Pods of one part of a cluster that have not ended and are not on their way out.
func (s *Snapshot) nodes(cluster *rayv1.RayCluster, nodeType string) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, pod := range s.Pods {
		if pod.Labels[rayv1.LabelCluster] == cluster.Name && pod.Labels[rayv1.LabelNodeType] == nodeType && stageOf(pod) == living {
			pods = append(pods, pod)
		}
	}
	return pods
}

// head is the head Pod of a cluster, the newest if there are several, or nil.
func (s *Snapshot) head(cluster *rayv1.RayCluster) *corev1.Pod {
	if s.index == nil {
		return s.newestHead(cluster)
	}
	head, known := s.index.heads[cluster]
	if !known {
		head = s.newestHead(cluster)
		s.index.heads[cluster] = head
	}
	return head
}

func (s *Snapshot) newestHead(cluster *rayv1.RayCluster) *corev1.Pod {
	heads := s.nodes(cluster, rayv1.NodeTypeHead)
	if len(heads) == 0 {
		return nil
	}
	return slices.MaxFunc(heads, func(a, b *corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
}

// readyFor is how long a Pod has been ready, or a negative time when it is not.
func (s *Snapshot) readyFor(pod *corev1.Pod) time.Duration {
	c := condition(pod, corev1.PodReady)
	if c == nil || c.Status != corev1.ConditionTrue {
		return -1
	}
	age := s.Now.Sub(c.LastTransitionTime.Time)
	s.lookAgain(joining - age)
	return age
}

// rayContainer is the status of the container that runs Ray, or nil while there is none.
func rayContainer(pod *corev1.Pod) *corev1.ContainerStatus {
	if len(pod.Spec.Containers) == 0 {
		return nil
	}
	all := pod.Status.ContainerStatuses
	i := slices.IndexFunc(all, func(c corev1.ContainerStatus) bool { return c.Name == pod.Spec.Containers[0].Name })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// runs tells whether Ray's container has run for a while. Before that its image may be on its way.
func (s *Snapshot) runs(pod *corev1.Pod, age time.Duration) bool {
	c := rayContainer(pod)
	return c != nil && c.State.Running != nil && !s.youngerThan(c.State.Running.StartedAt, age)
}

// troubled tells whether the rules about single Pods have something to say about the Pod.
func (s *Snapshot) troubled(pod *corev1.Pod) bool { return s.trouble(pod).Found() }

// heldBack tells whether the operator says that it cannot make all that a cluster needs.
func (s *Snapshot) heldBack(cluster *rayv1.RayCluster) bool {
	o := clusterObject(cluster)
	stalled := o.condition(rayv1.ConditionStalled, metav1.ConditionTrue)
	return stalled != nil && slices.ContainsFunc(failedWrites(), func(p string) bool { return strings.HasPrefix(stalled.Reason, p) }) ||
		o.condition(rayv1.ConditionValid, metav1.ConditionFalse) != nil || collides(cluster) ||
		o.condition(rayv1.ConditionStorageReady, metav1.ConditionFalse) != nil ||
		slices.ContainsFunc(s.refusals(), func(r refusal) bool { return r.object == o.String() })
}

// clusterTroubled tells whether the operator reports trouble of a cluster, or one of its Pods is in trouble.
func (s *Snapshot) clusterTroubled(cluster *rayv1.RayCluster) bool {
	return s.heldBack(cluster) || clusterObject(cluster).condition(rayv1.ConditionStalled, metav1.ConditionTrue) != nil ||
		slices.ContainsFunc(s.Pods, func(pod *corev1.Pod) bool {
			return pod.Labels[rayv1.LabelCluster] == cluster.Name && s.troubled(pod)
		})
}

func (s *Snapshot) eventsAbout(kind, name string) []corev1.Event {
	if s.index != nil {
		return slices.Clone(s.index.events[involved{kind, name}])
	}
	var events []corev1.Event
	for i := range s.Events {
		if about := s.Events[i].InvolvedObject; about.Kind == kind && about.Name == name {
			events = append(events, s.Events[i])
		}
	}
	return events
}

// recent tells whether an event was seen lately enough to speak of the present.
func (s *Snapshot) recent(event *corev1.Event) bool { return s.Now.Sub(lastSeen(event)) < eventsCount }

// cluster is the RayCluster of a name, or nil.
func (s *Snapshot) cluster(name string) *rayv1.RayCluster {
	if i := slices.IndexFunc(s.Clusters, func(c *rayv1.RayCluster) bool { return c.Name == name }); i >= 0 {
		return s.Clusters[i]
	}
	return nil
}

func isTrue(flag *bool) bool { return flag != nil && *flag }

// named returns the object of a name, or nil.
func named[T interface {
	comparable
	GetName() string
}](all []T, name string) T {
	var none T
	if i := slices.IndexFunc(all, func(o T) bool { return o.GetName() == name }); i >= 0 {
		return all[i]
	}
	return none
}

// shortened bounds a text of others, which may be pages long.
func shortened(text string) string {
	text = oneLine(text)
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "..."
	}
	return text
}

func list(names []string) string { return strings.Join(names, ", ") }

func quoted(name string) string { return fmt.Sprintf("%q", name) }

// entry makes an Entry. Symptom, cause and next step stand in this order.
func entry(family Family, id, symptom, cause, next string) Entry {
	return Entry{ID: id, Family: family, Symptom: symptom, Cause: cause, Next: next}
}
