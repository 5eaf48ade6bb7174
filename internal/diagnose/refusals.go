package diagnose

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// refusalKind is why the API server did not take a write.
type refusalKind int

const (
	notRefused refusalKind = iota
	refusedByFence
	refusedOwnerReference
	refusedByQuota
	refusedByLimits
	refusedByPodSecurity
	refusedByWebhookFailure
	refusedByAdmission
	refusedByDefaults
	refusedAsInvalid
	refusedPriorityClass
	refusedByRBAC
)

// refusal is a text in which the API server says no.
type refusal struct {
	kind refusalKind
	// object is the one for which the write was meant.
	object, text string
}

// refusalMarks are parts of the API server's texts, the more exact ones first: a refusal by a policy is "forbidden", too.
func refusalMarks() []struct {
	kind  refusalKind
	marks []string
} {
	return []struct {
		kind  refusalKind
		marks []string
	}{
		{refusedByFence, []string{"heliostat fence:"}},
		{refusedOwnerReference, []string{"cannot set blockOwnerDeletion", "cannot set an ownerRef on a resource you " +
			"can't delete"}},
		{refusedByQuota, []string{"exceeded quota:", "failed quota:", "status unknown for quota:"}},
		{refusedByPodSecurity, []string{"violates PodSecurity"}},
		{refusedByWebhookFailure, []string{"failed calling webhook", "failed to call webhook"}},
		{refusedByAdmission, []string{"denied the request", "denied request", "ValidatingAdmissionPolicy"}},
		{refusedByLimits, []string{" usage per Container is ", " usage per Pod is ", " limit to request ratio per "}},
		{refusedByDefaults, []string{"must be less than or equal to cpu limit", "must be less than or equal to memory limit",
			"must be less than or equal to ephemeral-storage limit"}},
		{refusedAsInvalid, []string{`Pod "`}},
		{refusedPriorityClass, []string{"no PriorityClass with name"}},
		{refusedByRBAC, []string{"is forbidden: User "}},
	}
}

func refusalOf(text string) refusalKind {
	for _, candidate := range refusalMarks() {
		says := slices.ContainsFunc(candidate.marks, func(mark string) bool { return strings.Contains(text, mark) })
		if says && (candidate.kind != refusedAsInvalid || strings.Contains(text, `" is invalid:`)) {
			return candidate.kind
		}
	}
	return notRefused
}

// refusals are those that hold now, one for each object and kind: conditions say what holds, events only what was said. What
// a RayCluster is refused stands in the conditions of its owner, too, and counts once.
func (s *Snapshot) refusals() []refusal {
	if s.told != nil {
		return slices.Clone(s.told)
	}
	var all []refusal
	add := func(object, text string) {
		kind := refusalOf(text)
		same := func(r refusal) bool { return r.kind == kind && r.object == object }
		if kind != notRefused && !slices.ContainsFunc(all, same) {
			all = append(all, refusal{kind, object, oneLine(text)})
		}
	}
	for _, o := range s.objects() {
		for _, c := range o.conditions {
			for _, text := range refusedTexts(c) {
				add(o.String(), text)
			}
		}
		if o.ended || o.saysAll() {
			continue
		}
		for _, event := range s.warnings(o.kind, o.meta.Name) {
			add(o.String(), event.Message)
		}
	}
	for _, job := range s.SubmitterJobs {
		if job.Status.Active > 0 || job.Status.Succeeded > 0 {
			continue
		}
		for _, event := range s.warnings("Job", job.Name) {
			add("Job "+job.Name, event.Message)
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(r refusal) bool {
		return !r.ofCluster() && slices.ContainsFunc(all, func(other refusal) bool { return other.ofCluster() && other.kind == r.kind })
	})
}

func (r refusal) ofCluster() bool { return strings.HasPrefix(r.object, rayv1.KindRayCluster+" ") }

// saysAll tells whether the operator writes what holds into conditions, so that events tell nothing more. Heliostat's condition Valid
// is the sign of that.
func (o object) saysAll() bool {
	return slices.ContainsFunc(o.conditions, func(c metav1.Condition) bool { return c.Type == rayv1.ConditionValid })
}

// failedWrites are how the reasons begin that the operator has for writes which were not taken.
func failedWrites() []string { return []string{"FailedTo", "FailedCreate", "FailedDelete"} }

// refusedLine is a line of the condition PodsHealthy about a write for one group that was not taken. The other lines hold words of
// containers, which say much.
var refusedLine = regexp.MustCompile(`^(?:head|group \S+): Failed(?:Create|Delete)\w+: `)

// refusedTexts are the texts of a condition in which the API server may say no, one for each group.
func refusedTexts(c metav1.Condition) []string {
	switch {
	case c.Type == rayv1.ConditionReplicaFailure && c.Status == metav1.ConditionTrue:
		return []string{c.Message}
	case c.Type == rayv1.ConditionStalled && c.Status == metav1.ConditionTrue:
		if slices.ContainsFunc(failedWrites(), func(p string) bool { return strings.HasPrefix(c.Reason, p) }) {
			return []string{c.Message}
		}
		return nil
	case c.Type == rayv1.ConditionPodsHealthy && c.Status == metav1.ConditionFalse:
		return slices.DeleteFunc(strings.Split(c.Message, "\n"), func(line string) bool { return !refusedLine.MatchString(line) })
	default:
		return nil
	}
}

// warnings are the events about an object that tell of trouble and were seen lately, by their text, so that the same one
// of many is always the first.
func (s *Snapshot) warnings(kind, name string) []corev1.Event {
	events := slices.DeleteFunc(s.eventsAbout(kind, name), func(e corev1.Event) bool {
		return e.Type == corev1.EventTypeNormal || !s.recent(&e)
	})
	slices.SortFunc(events, func(a, b corev1.Event) int { return cmp.Compare(a.Message, b.Message) })
	return events
}
