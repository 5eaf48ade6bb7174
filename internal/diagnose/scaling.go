package diagnose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/ray"
)

// autoscalerSpeaks is how long an autoscaler may run without a line in its log.
const autoscalerSpeaks = 5 * time.Minute

// labelQueue names, on an object, the queue of Kueue that decides when it may run.
const labelQueue = "kueue.x-k8s.io/queue-name"

// scalingRules are about the number of workers, and about who sets it.
func scalingRules() []objectRule {
	return []objectRule{
		{"autoscaler-missing", Blocking, autoscalerMissing},
		{"autoscaler-cannot-fulfil", Blocking, autoscalerCannotFulfil},
		{"replicas-outside-limits", Blocking, replicasOutsideLimits},
		{"autoscaler-not-ready", Passing, autoscalerNotReady},
		{"autoscaler-silent", Passing, autoscalerSilent},
		{"workers-missing", Passing, workersMissing},
		{"replicas-overwritten", Note, replicasOverwritten},
		{"suspended", Note, suspended},
	}
}

func autoscalerMissing(s *Snapshot) []Finding {
	var findings []Finding
	for _, cluster := range s.autoscalers() {
		head := s.head(cluster)
		if head == nil || hasContainer(head, ray.AutoscalerContainer) {
			continue
		}
		findings = append(findings, Finding{Reason: "AutoscalerMissing", Object: "Pod " + head.Name,
			Message: "it has no container " + ray.AutoscalerContainer,
			Cause: fmt.Sprintf("RayCluster %s has spec.enableInTreeAutoscaling true, and its head Pod %s was made "+
				"without an autoscaler.", cluster.Name, head.Name),
			Next: fmt.Sprintf("Delete Pod %s when its work may be interrupted: the operator makes it anew with the "+
				"autoscaler.", head.Name)})
	}
	return findings
}

// autoscalerStatus is that of the autoscaler's container in a living head that has one, or nil.
func (s *Snapshot) autoscalerStatus(cluster *rayv1.RayCluster) (*corev1.Pod, *corev1.ContainerStatus) {
	head := s.head(cluster)
	if head == nil {
		return nil, nil
	}
	statuses := head.Status.ContainerStatuses
	i := slices.IndexFunc(statuses, func(c corev1.ContainerStatus) bool { return c.Name == ray.AutoscalerContainer })
	if i < 0 {
		return head, nil
	}
	return head, &statuses[i]
}

// autoscalerNotReady is silent where the rules about Pods say why.
func autoscalerNotReady(s *Snapshot) []Finding {
	var findings []Finding
	for _, cluster := range s.autoscalers() {
		head, status := s.autoscalerStatus(cluster)
		if status == nil || status.Ready || !s.runs(head, starting) || s.troubled(head) {
			continue
		}
		findings = append(findings, Finding{Reason: "AutoscalerNotReady", Object: "Pod " + head.Name,
			Message: "its container " + ray.AutoscalerContainer + " is not ready",
			Cause: fmt.Sprintf("The autoscaler of RayCluster %s does not run, so the number of workers stays "+
				"as it is.", cluster.Name),
			Next: fmt.Sprintf("Read \"kubectl logs %s -c %s\" and \"kubectl describe "+
				"pod %s\".", head.Name, ray.AutoscalerContainer, head.Name)})
	}
	return findings
}

// autoscalerSilent needs a log that was read and is empty; one that was not read says nothing.
func autoscalerSilent(s *Snapshot) []Finding {
	var findings []Finding
	for _, cluster := range s.autoscalers() {
		head, status := s.autoscalerStatus(cluster)
		if status == nil || status.State.Running == nil || s.youngerThan(status.State.Running.StartedAt, autoscalerSpeaks) {
			continue
		}
		text, read := s.Logs[LogKey(head.Name, ray.AutoscalerContainer)]
		if !read || strings.TrimSpace(text) != "" {
			continue
		}
		findings = append(findings, Finding{Reason: "AutoscalerSilent", Object: "Pod " + head.Name,
			Message: "its container " + ray.AutoscalerContainer + " runs and has written nothing",
			Cause:   fmt.Sprintf("The autoscaler of RayCluster %s hangs before its first look at the cluster.", cluster.Name),
			Next: fmt.Sprintf("Read /tmp/ray/session_latest/logs/monitor.log in Pod %s, and check that its image has "+
				"the same version of Ray as spec.rayVersion.", head.Name)})
	}
	return findings
}

func autoscalerCannotFulfil(s *Snapshot) []Finding {
	var findings []Finding
	for _, cluster := range s.autoscalers() {
		head, _ := s.autoscalerStatus(cluster)
		if head == nil {
			continue
		}
		line := lastLine(s.Logs[LogKey(head.Name, ray.AutoscalerContainer)], []string{"no available node types can fulfill"})
		if line == "" {
			continue
		}
		findings = append(findings, Finding{Reason: "DemandTooLarge", Object: "Pod " + head.Name,
			Message: "the autoscaler finds no worker group for what is asked for",
			Cause: fmt.Sprintf("A task, actor or placement group asks for more than a worker of any group of RayCluster "+
				"%s has, or all its groups are at maxReplicas.", cluster.Name),
			Next: fmt.Sprintf("Read the demand in \"kubectl logs %s -c %s\"; then add a group with that many resources to "+
				"spec.workerGroupSpecs of RayCluster %s, raise "+
				"maxReplicas, or ask for less.", head.Name, ray.AutoscalerContainer, cluster.Name)})
	}
	return findings
}

// replicasOutsideLimits takes no replicas, and 0, for unset: the API server writes 0 where the user wrote nothing.
func replicasOutsideLimits(s *Snapshot) []Finding {
	var findings []Finding
	for _, cluster := range s.living() {
		for i := range cluster.Spec.WorkerGroupSpecs {
			group := &cluster.Spec.WorkerGroupSpecs[i]
			if group.Replicas == nil || *group.Replicas == 0 || wantedReplicas(group) == *group.Replicas || isTrue(group.Suspend) {
				continue
			}
			limit := "maxReplicas"
			if wantedReplicas(group) > *group.Replicas {
				limit = "minReplicas"
			}
			findings = append(findings, Finding{Reason: "ReplicasOutsideLimits", Object: "RayCluster " + cluster.Name,
				Message: fmt.Sprintf("group %s: replicas is %d and %s is %d", group.GroupName, *group.Replicas, limit, wantedReplicas(group)),
				Cause: fmt.Sprintf("Group %s of RayCluster %s asks for %d replicas and gets %d, because "+
					"%s is %d.", group.GroupName, cluster.Name, *group.Replicas,
					wantedReplicas(group), limit, wantedReplicas(group)),
				Next: fmt.Sprintf("Change spec.workerGroupSpecs[%d].replicas or .%s of "+
					"RayCluster %s.", i, limit, cluster.Name)})
		}
	}
	return findings
}

// wantedReplicas is how many replicas a group gets: what it asks for, within its limits.
func wantedReplicas(group *rayv1.WorkerGroupSpec) int32 {
	wanted := int32(0)
	if group.Replicas != nil {
		wanted = *group.Replicas
	}
	if group.MinReplicas != nil {
		wanted = max(wanted, *group.MinReplicas)
	}
	if group.MaxReplicas != nil {
		wanted = min(wanted, *group.MaxReplicas)
	}
	return wanted
}

// workersMissing is about workers that nobody has made and nobody has refused.
func workersMissing(s *Snapshot) []Finding {
	var findings []Finding
	for _, cluster := range s.settled() {
		head := s.head(cluster)
		if head == nil || s.youngerThan(head.CreationTimestamp, joining) || s.specChangedWithin(clusterObject(cluster), joining) ||
			s.clusterTroubled(cluster) || s.operatorDown() {
			continue
		}
		for i := range cluster.Spec.WorkerGroupSpecs {
			group := &cluster.Spec.WorkerGroupSpecs[i]
			if isTrue(group.Suspend) || s.podsOf(cluster, group.GroupName) >= int(wantedReplicas(group)*max(group.NumOfHosts, 1)) {
				continue
			}
			cause := fmt.Sprintf("Group %s of RayCluster %s is to have %d replicas, and has fewer Pods "+
				"than that", group.GroupName, cluster.Name, wantedReplicas(group))
			if writer, _ := LastWriter(cluster); writer != "" {
				cause += "; spec.workerGroupSpecs was last written by " + writer
			}
			findings = append(findings, Finding{Reason: "WorkersMissing", Object: "RayCluster " + cluster.Name,
				Message: fmt.Sprintf("group %s has fewer Pods than its "+
					"replicas ask for", group.GroupName), Cause: cause + ".",
				Next: fmt.Sprintf("Read the events with \"kubectl describe raycluster %s\" and the log of the operator for "+
					"group %s.", cluster.Name, group.GroupName)})
		}
	}
	return findings
}

// podsOf counts Pods that end, too: they are about to be replaced.
func (s *Snapshot) podsOf(cluster *rayv1.RayCluster, group string) int {
	count := 0
	for _, pod := range s.Pods {
		if pod.Labels[rayv1.LabelCluster] == cluster.Name && pod.Labels[rayv1.LabelGroup] == group {
			count++
		}
	}
	return count
}

// LastWriter says who has last changed the worker groups of a cluster, and when, by the API server's record, or nothing. The
// list is atomic in the schema, so it has one owner as a whole.
func LastWriter(cluster *rayv1.RayCluster) (who string, when time.Time) {
	entry := lastEntry(cluster)
	if entry == nil {
		return "", time.Time{}
	}
	return writerName(entry.Manager), timeOf(*entry)
}

func lastEntry(cluster *rayv1.RayCluster) *metav1.ManagedFieldsEntry {
	var entries []metav1.ManagedFieldsEntry
	for _, entry := range cluster.ManagedFields {
		if entry.Subresource == "" && entry.FieldsV1 != nil && strings.Contains(entry.FieldsV1.GetRawString(), `"f:workerGroupSpecs"`) {
			entries = append(entries, entry)
		}
	}
	if len(entries) == 0 {
		return nil
	}
	newest := slices.MaxFunc(entries, func(a, b metav1.ManagedFieldsEntry) int {
		return cmp.Or(timeOf(a).Compare(timeOf(b)), strings.Compare(a.Manager, b.Manager))
	})
	return &newest
}

func timeOf(entry metav1.ManagedFieldsEntry) time.Time {
	if entry.Time == nil {
		return time.Time{}
	}
	return entry.Time.Time
}

// pythonManager is the field manager of Ray's autoscaler, which writes with the Python library requests and names none.
const pythonManager = "python-requests"

// writerName says who stands behind a field manager, with the manager's own name.
func writerName(manager string) string {
	switch lower := strings.ToLower(manager); {
	case manager == pythonManager:
		return "Ray's autoscaler (" + manager + ")"
	case strings.HasPrefix(lower, "kubectl"), strings.HasPrefix(lower, "ray-kubectl"):
		return "a person (" + manager + ")"
	case reapplies(manager):
		return "a tool that applies manifests again and again (" + manager + ")"
	case lower == "helm":
		return "Helm (" + manager + ")"
	case manager == rayv1.FieldManager, strings.HasPrefix(lower, "kuberay"):
		return "the operator (" + manager + ")"
	default:
		return manager
	}
}

// reapplies tells whether a field manager keeps objects as a repository or a metric says.
func reapplies(manager string) bool {
	lower := strings.ToLower(manager)
	return slices.ContainsFunc([]string{"argocd", "kustomize-controller", "helm-controller", "flux", "fleet", "horizontal-pod-autoscaler", "keda"},
		func(part string) bool { return strings.Contains(lower, part) })
}

// replicasOverwritten is a note: whether the value was lowered cannot be told from the record of who wrote it.
func replicasOverwritten(s *Snapshot) []Finding {
	var findings []Finding
	for _, cluster := range s.autoscalers() {
		entry := lastEntry(cluster)
		if entry == nil || !reapplies(entry.Manager) || timeOf(*entry).Sub(cluster.CreationTimestamp.Time) < joining {
			continue
		}
		findings = append(findings, Finding{Reason: "ReplicasOverwritten", Object: "RayCluster " + cluster.Name,
			Message: fmt.Sprintf("%s wrote spec.workerGroupSpecs after the autoscaler had started", entry.Manager),
			Cause: fmt.Sprintf("%s sets the replicas of RayCluster %s back whenever it applies the manifest, against its "+
				"autoscaler.", entry.Manager, cluster.Name),
			Next: fmt.Sprintf("Leave replicas out of the manifest of RayCluster %s, or make %s ignore the path "+
				"/spec/workerGroupSpecs (Argo CD: ignoreDifferences with "+
				"RespectIgnoreDifferences=true).", cluster.Name, entry.Manager)})
	}
	return findings
}

// suspended is a note about objects that have no Pods because that was asked for.
func suspended(s *Snapshot) []Finding {
	var findings []Finding
	for _, o := range s.objects() {
		if !o.suspended || o.ended || o.kind == rayv1.KindRayCronJob || o.meta.Labels[labelQueue] != "" {
			continue
		}
		findings = append(findings, Finding{Reason: rayv1.ReasonSuspended, Object: o.String(), Message: "spec.suspend is true",
			Cause: fmt.Sprintf("%s has no Pods because its spec.suspend is true.", o),
			Next:  fmt.Sprintf("Set spec.suspend of %s to false to let it run.", o)})
	}
	return findings
}
