package diagnose

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/rights"
)

// rightsRules are about what the API server refuses, and about the rights of operator and autoscaler.
func rightsRules() []objectRule {
	return []objectRule{
		{"operator-forbidden", Blocking, operatorForbidden},
		{"owner-reference-refused", Blocking, ownerReferenceRefused},
		{"quota-exceeded", Blocking, quotaExceeded},
		{"limit-range", Blocking, limitRange},
		{"pod-security", Blocking, refusalRule(refusedByPodSecurity, "PodSecurity", "The Pod Security level of the "+
			"namespace does not allow the Pods of %s.",
			"Set what the message asks for in securityContext of the Pod and of every container in the templates of %s, or "+
				"lower the label "+
				"pod-security.kubernetes.io/enforce of the namespace.")},
		{"webhook-unreachable", Blocking, refusalRule(refusedByWebhookFailure, "WebhookUnreachable", "An admission webhook "+
			"that must be asked for writes of %s does not answer.",
			"Find the webhook that the message names with \"kubectl get "+
				"validatingwebhookconfigurations,mutatingwebhookconfigurations\" and make the "+
				"Service behind it answer; %s goes on by itself then.")},
		{"admission-denied", Blocking, refusalRule(refusedByAdmission, "AdmissionDenied", "A webhook or policy of this "+
			"Kubernetes cluster denies what the operator wants to write for %s.",
			"Change the field in %s that the message complains of, or ask the owner of the webhook or policy that it names "+
				"for an exception.")},
		{"pod-invalid", Blocking, podInvalid},
		{"priority-class-missing", Blocking, refusalRule(refusedPriorityClass, "PriorityClassNotFound", "The Pod templates "+
			"of %s name a PriorityClass that does not exist.",
			"Create the PriorityClass that the message names, or correct priorityClassName in the Pod templates of %s.")},
		{"autoscaler-rights-missing", Blocking, autoscalerRightsMissing},
	}
}

// refusalRule returns a rule about one kind of refusal. The object's name is put into cause and next.
func refusalRule(kind refusalKind, reason, cause, next string) func(*Snapshot) []Finding {
	return func(s *Snapshot) []Finding {
		var findings []Finding
		for _, r := range s.refused(kind) {
			findings = append(findings, Finding{Reason: reason, Object: r.object, Message: r.text,
				Cause: fmt.Sprintf(cause, r.object), Next: fmt.Sprintf(next, r.object)})
		}
		return findings
	}
}

func (s *Snapshot) refused(kind refusalKind) []refusal {
	return slices.DeleteFunc(s.refusals(), func(r refusal) bool { return r.kind != kind })
}

// mostNamed is how many missing rights a finding names before it counts.
const mostNamed = 6

// operatorForbidden tells of writes that were refused, and in one finding of all other rights that the operator lacks.
func operatorForbidden(s *Snapshot) []Finding {
	var findings []Finding
	var told []rights.Right
	for _, r := range s.refused(refusedByRBAC) {
		missing, ok := rights.Denied(r.text)
		if !ok {
			findings = append(findings, Finding{Reason: "Forbidden", Object: r.object, Message: r.text})
			continue
		}
		if !slices.ContainsFunc(told, missing.Same) {
			findings = append(findings, forbidden(r.object, r.text, []rights.Right{missing}))
		}
		told = append(told, missing)
	}
	others := slices.DeleteFunc(slices.Clone(s.Operator.Refused), func(r rights.Right) bool {
		return slices.ContainsFunc(told, func(t rights.Right) bool {
			if r.Namespace == "" {
				t.Namespace = "" // what is missing everywhere is missing there
			}
			return r.Same(t)
		})
	})
	if len(others) > 0 {
		message := "the API server says that it may not " + rights.Names(others, mostNamed)
		findings = append(findings, forbidden(s.operatorName(), message, others))
	}
	return findings
}

func forbidden(object, message string, missing []rights.Right) Finding {
	first := missing[0]
	return Finding{Reason: "Forbidden", Object: object, Message: message,
		Cause: fmt.Sprintf("The account %s may not %s.", cmp.Or(first.User, "of the operator"), rights.Names(missing, mostNamed)),
		Next: fmt.Sprintf("Install the RBAC objects of the operator's chart again (rbacEnable=true), or allow it by hand in %s; \"%s\" must "+
			"then answer yes.", first.Role(), first.Question())}
}

func ownerReferenceRefused(s *Snapshot) []Finding {
	var findings []Finding
	for _, r := range s.refused(refusedOwnerReference) {
		findings = append(findings, Finding{Reason: "OwnerReferenceRefused", Object: r.object, Message: r.text,
			Cause: fmt.Sprintf("The admission plug-in OwnerReferencesPermissionEnforcement is on, and the operator has no "+
				"right to set finalizers on the owner of what it makes for %s.", r.object),
			Next: "Allow the operator's account the verb update on the subresource finalizers of the owner, for example " +
				"rayclusters/finalizers in API group " +
				"ray.io; the ClusterRole of the operator's chart has it."})
	}
	return findings
}

var (
	quotaName = regexp.MustCompile(`(?:exceeded|failed|status unknown for) quota: ([^,:\s]+)`)
	// quotaNumbers are a requested, a used and a limiting amount, each with the resource.
	quotaNumbers = regexp.MustCompile(`requested: (.+?), used: (.+?), limited: (.+)$`)
	quotaMust    = regexp.MustCompile(`must specify (.+)$`)
)

func quotaExceeded(s *Snapshot) []Finding {
	var findings []Finding
	for _, r := range s.refused(refusedByQuota) {
		name := "?"
		if m := quotaName.FindStringSubmatch(r.text); m != nil {
			name = m[1]
		}
		finding := Finding{Reason: "QuotaExceeded", Object: r.object, Message: r.text,
			Cause: fmt.Sprintf("ResourceQuota %s does not leave room for what %s asks for.", name, r.object),
			Next: fmt.Sprintf("Run \"kubectl describe quota %s\"; raise its spec.hard, delete what nobody needs, or lower "+
				"the requests and replicas of %s.", name, r.object)}
		if m := quotaNumbers.FindStringSubmatch(r.text); m != nil {
			finding.Cause = fmt.Sprintf("ResourceQuota %s does not leave room for what %s asks for: requested %s, used %s, "+
				"limit %s.", name, r.object, m[1], m[2], m[3])
		}
		if strings.Contains(r.text, "status unknown for quota") {
			finding.Cause = fmt.Sprintf("ResourceQuota %s has no status yet, and until it has one nothing that it counts is "+
				"let in, %s included.", name, r.object)
			finding.Next = fmt.Sprintf("Wait a moment; if it stays, see \"kubectl get quota %s -o yaml\" and whether "+
				"kube-controller-manager, which counts, runs.", name)
		}
		if m := quotaMust.FindStringSubmatch(r.text); m != nil {
			finding.Cause = fmt.Sprintf("ResourceQuota %s counts resources that the Pods of %s do not "+
				"specify: %s.", name, r.object, m[1])
			finding.Next = fmt.Sprintf("Set %s in resources of every container in the Pod templates of %s, init containers "+
				"and the autoscaler included, or add a LimitRange with defaults.", m[1], r.object)
		}
		findings = append(findings, finding)
	}
	return findings
}

// autoscalers are the settled clusters that are to have an autoscaler.
func (s *Snapshot) autoscalers() []*rayv1.RayCluster {
	return slices.DeleteFunc(s.settled(), func(c *rayv1.RayCluster) bool { return !isTrue(c.Spec.EnableInTreeAutoscaling) })
}
