package diagnose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/ray"
)

const (
	// startPatience is how long a container may take to become ready, or a node to start one, without being a finding. Ray's
	// own start takes tens of seconds, a large image minutes.
	startPatience = 2 * time.Minute
	pullPatience  = 5 * time.Minute
	// schedulerPatience is how long a scheduler may say nothing at all about a Pod.
	schedulerPatience = time.Minute
)

// podTrouble is what was found about a Pod.
type podTrouble struct {
	Finding
	pod *corev1.Pod
}

// podFindings are the findings about the Pods of a Snapshot, at most one for each.
func podFindings(s *Snapshot) []podTrouble {
	var findings []podTrouble
	for _, pod := range s.Pods {
		if !isRayNode(pod) && stageOf(pod) == ended {
			// How a submitter ended is told by its RayJob.
			continue
		}
		if finding := podFinding(s, pod); finding.Found() {
			findings = append(findings, podTrouble{finding, pod})
		}
	}
	return findings
}

func isRayNode(pod *corev1.Pod) bool {
	node := pod.Labels[rayv1.LabelNodeType]
	return node == rayv1.NodeTypeHead || node == rayv1.NodeTypeWorker
}

func podFinding(s *Snapshot, pod *corev1.Pod) Finding {
	finding := s.trouble(pod)
	if !finding.Found() {
		return slowPod(s, pod, s.eventsAbout("Pod", pod.Name))
	}
	log := s.Logs[LogKey(pod.Name, containerIn(finding.Message))]
	finding.ID = identify(finding.Reason, s.decisive(pod, finding.Message), cmp.Or(log, s.logOfAnother(pod, finding)), s.impossible(pod))
	finding.Cause, finding.Next = podCause(s, pod, finding)
	finding.Message = withLastWords(finding.Message, log)
	return finding
}

// logOfAnother is the log of a Pod of the same group that fails in the same way, or empty. Not all logs of a large group are read.
func (s *Snapshot) logOfAnother(pod *corev1.Pod, finding Finding) string {
	name := containerIn(finding.Message)
	if len(s.Logs) == 0 || name == "" || !isRayNode(pod) {
		return ""
	}
	for _, other := range s.Pods {
		log := s.Logs[LogKey(other.Name, name)]
		if log == "" || other.Labels[rayv1.LabelCluster] != pod.Labels[rayv1.LabelCluster] || other.Labels[rayv1.LabelGroup] != pod.Labels[rayv1.LabelGroup] {
			continue
		}
		if trouble := s.trouble(other); trouble.Reason == finding.Reason && trouble.Message == finding.Message {
			return log
		}
	}
	return ""
}

// containerIn is the container that the message of a Pod's finding is about, or empty. What another container writes says nothing about
// it.
func containerIn(message string) string {
	rest, is := strings.CutPrefix(strings.TrimPrefix(message, "init "), "container ")
	if !is {
		return ""
	}
	name, _, _ := strings.Cut(rest, ":")
	return name
}

// decisive is what the scheduler says without what does not decide. A Pod that must run on few nodes has no use for the others, so
// that those do not fit its selector says nothing as long as there are nodes that do.
func (s *Snapshot) decisive(pod *corev1.Pod, message string) string {
	wanted := nodeaffinity.GetRequiredNodeAffinity(pod)
	fits := slices.ContainsFunc(s.Nodes, func(node *corev1.Node) bool {
		match, err := wanted.Match(node)
		return err == nil && match
	})
	if !fits {
		return message
	}
	return strings.ReplaceAll(message, selectorWords, "")
}

// slowPod recognizes what a Pod's status calls no trouble, and what takes too long all the same.
func slowPod(s *Snapshot, pod *corev1.Pod, events []corev1.Event) Finding {
	if stageOf(pod) != living {
		return Finding{}
	}
	// Times are kept in whole seconds, so a Pod is older than an age from the second after it on.
	older := func(age time.Duration) bool { return !s.youngerThan(pod.CreationTimestamp, age+time.Second) }
	scheduled := condition(pod, corev1.PodScheduled)
	about := func(id, reason, message string) Finding {
		return Finding{Severity: Passing, ID: id, Reason: reason, Object: "Pod " + pod.Name, Message: message, rank: len(podRules())}
	}
	switch {
	case scheduled != nil && scheduled.Reason == corev1.PodReasonSchedulingGated && older(schedulerPatience):
		return about(idSchedulingGated, scheduled.Reason, "its scheduling gates are "+gates(pod))
	case scheduled == nil && pod.Spec.NodeName == "" && pod.Status.Phase != corev1.PodRunning && older(schedulerPatience):
		finding := about(idNoScheduler, "NoScheduler", fmt.Sprintf("scheduler %q has said nothing about it", pod.Spec.SchedulerName))
		finding.Cause = fmt.Sprintf("No scheduler %q runs, or it does not get to the Pod.", pod.Spec.SchedulerName)
		return finding
	}
	if waits := initContainerSince(pod); waits != nil && !s.youngerThan(waits.State.Running.StartedAt, startPatience) {
		finding := about(idInitWaits, "Initializing", fmt.Sprintf("init container %s runs and does not end", waits.Name))
		if waits.Name != ray.WaitForGCSContainer {
			finding.Message = withLastWords(finding.Message, s.Logs[LogKey(pod.Name, waits.Name)])
			return finding
		}
		// It writes for how long it has waited, which is no evidence. While the head is not ready, waiting is what it is there for.
		if !s.headReadyFor(pod, joining) {
			return Finding{}
		}
		return finding
	}
	if unready := s.unready(pod, events); unready != nil {
		finding := about(idProbeFailing, "NotReady", fmt.Sprintf("container %s runs and is not ready", unready.Name))
		if probe := newest(events, "Unhealthy"); probe != nil {
			finding.Message += ": " + oneLine(probe.Message)
		}
		finding.Cause, finding.Next = unreadyHead(pod, unready.Name)
		return finding
	}
	if pod.Spec.NodeName != "" && pod.Status.Phase == corev1.PodPending && initContainerSince(pod) == nil && older(pullPatience) {
		return about(idSlowStart, reasonCreating, "node "+pod.Spec.NodeName+" has not started its containers yet")
	}
	return Finding{}
}

func gates(pod *corev1.Pod) string {
	names := make([]string, 0, len(pod.Spec.SchedulingGates))
	for _, gate := range pod.Spec.SchedulingGates {
		names = append(names, gate.Name)
	}
	return strings.Join(names, ", ")
}

func initContainerSince(pod *corev1.Pod) *corev1.ContainerStatus {
	i := slices.IndexFunc(pod.Status.InitContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.State.Running != nil && !sidecar(pod, c.Name)
	})
	if i < 0 {
		return nil
	}
	return &pod.Status.InitContainerStatuses[i]
}

// sidecar tells whether an init container is meant to run on, as restartPolicy Always says.
func sidecar(pod *corev1.Pod, name string) bool {
	return slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == name && c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
	})
}

// newest is the last event of a reason, or nil.
func newest(events []corev1.Event, reason string) *corev1.Event {
	var last *corev1.Event
	for i := range events {
		if events[i].Reason == reason && (last == nil || lastSeen(&events[i]).After(lastSeen(last))) {
			last = &events[i]
		}
	}
	return last
}

// podCause returns the cause and the next step of a Pod's finding where they can be more exact than the catalogue's.
func podCause(s *Snapshot, pod *corev1.Pod, finding Finding) (cause, next string) {
	where := groupPath(s, pod)
	switch finding.ID {
	case idInsufficientResources:
		return shortfall(s, pod, finding.Message), fmt.Sprintf(
			"Lower `resources.requests` in %s.template, or its replicas; or add nodes that have as much.", where)
	case idSelectorMismatch:
		return selectorCause(pod), fmt.Sprintf("Correct `nodeSelector` or `affinity` in %s.template.spec, or label a node.", where)
	case idImageNotFound, idImageDenied, idImageNoBuild, idRegistryUnreachable, idImageNameInvalid, idImageNeverPulled, idImagePull:
		return imageCause(pod, finding), imageNext(where, finding.ID)
	case idVersionSkew:
		return skewCause(s), ""
	case idOOMKilled:
		return memoryCause(pod, finding.Message), ""
	default:
		return "", ""
	}
}

// groupPath is the field of the RayCluster that a Pod was made from.
func groupPath(s *Snapshot, pod *corev1.Pod) string {
	if pod.Labels[rayv1.LabelNodeType] == rayv1.NodeTypeHead {
		return "spec.headGroupSpec"
	}
	group := pod.Labels[rayv1.LabelGroup]
	for _, cluster := range s.Clusters {
		if cluster.Name != pod.Labels[rayv1.LabelCluster] {
			continue
		}
		i := slices.IndexFunc(cluster.Spec.WorkerGroupSpecs, func(g rayv1.WorkerGroupSpec) bool { return g.GroupName == group })
		if i >= 0 {
			return fmt.Sprintf("spec.workerGroupSpecs[%d]", i)
		}
	}
	return cmp.Or(group, "the Pod") + "'s group"
}
