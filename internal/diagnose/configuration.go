package diagnose

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// configurationRules are about what the manifests say, and about the objects that they name.
func configurationRules() []objectRule {
	return []objectRule{
		{"spec-invalid", Blocking, specInvalid},
		{"name-collision", Blocking, nameCollision},
		{"secret-missing", Blocking, missing(kindSecret)},
		{"configmap-missing", Blocking, missing(kindConfigMap)},
		{"service-account-missing", Blocking, missing(kindAccount)},
		{"claim-missing", Blocking, missing(kindClaim)},
		{"key-missing", Blocking, keyMissing},
		{"claim-lost", Blocking, claimLost},
		{"claim-no-class", Blocking, claimNoClass},
		{"claim-pending", Blocking, claimPending},
		{"claim-on-several-nodes", Blocking, claimOnSeveralNodes},
		{"gcs-storage-not-ready", Blocking, storageNotReady},
		{"dashboard-localhost", Blocking, dashboardLocalhost},
		{"ingress-no-class", Blocking, ingressNoClass},
		{"ingress-no-address", Passing, ingressNoAddress},
		{"spec-partly-served", Note, specPartlyServed},
	}
}

func specInvalid(s *Snapshot) []Finding {
	var findings []Finding
	for _, o := range s.objects() {
		message := s.verdict(o)
		if message == "" {
			continue
		}
		findings = append(findings, Finding{Reason: rayv1.ReasonSpecInvalid, Object: o.String(), Message: oneLine(message),
			Cause: fmt.Sprintf("The spec of %s breaks a rule, so the operator does not act "+
				"upon it: %s.", o, strings.TrimSuffix(shortened(message), ".")),
			Next: fmt.Sprintf("Correct the field that the message names and apply the manifest of %s again.", o)})
	}
	return findings
}

// verdict is what the operator says against a spec, or empty. KubeRay has no condition for that: it says so in the status of
// RayJobs and RayServices; of the others it leaves the status as it was and sends an event.
func (s *Snapshot) verdict(o object) string {
	if o.ended || o.meta.DeletionTimestamp != nil {
		return ""
	}
	for _, c := range o.conditions {
		if c.Type == rayv1.ConditionValid {
			if c.Status == metav1.ConditionFalse {
				return c.Message
			}
			return ""
		}
	}
	if o.invalid != "" || o.observed >= o.meta.Generation {
		return o.invalid
	}
	for _, event := range s.eventsAbout(o.kind, o.meta.Name) {
		about := strings.HasPrefix(event.Reason, "Invalid"+o.kind)
		if about && s.recent(&event) {
			return event.Message
		}
	}
	return ""
}

func specPartlyServed(s *Snapshot) []Finding {
	var findings []Finding
	for _, o := range s.objects() {
		c := o.condition(rayv1.ConditionValid, metav1.ConditionTrue)
		if c == nil || c.Reason != rayv1.ReasonPartlyServed {
			continue
		}
		findings = append(findings, Finding{Reason: c.Reason, Object: o.String(), Message: oneLine(c.Message),
			Cause: fmt.Sprintf("The operator acts upon %s, but not upon all that its spec asks for.", o)})
	}
	return findings
}

// nameCollision goes by the condition Stalled where there is none of its own, unless that repeats what a RayCluster says.
func nameCollision(s *Snapshot) []Finding {
	var findings []Finding

	repeated := slices.ContainsFunc(s.Clusters, collides)
	for _, o := range s.objects() {
		c := o.condition(rayv1.ConditionNameCollision, metav1.ConditionTrue)
		if c == nil && !repeated {
			c = o.condition(rayv1.ConditionStalled, metav1.ConditionTrue)
		}
		if c == nil || c.Reason != rayv1.ReasonNameCollision {
			continue
		}
		findings = append(findings, Finding{Reason: c.Reason, Object: o.String(), Message: oneLine(c.Message),
			Cause: fmt.Sprintf("Objects that do not belong to %s stand under names or labels which it needs: %s.", o, strings.TrimSuffix(oneLine(c.Message), ".")),
			Next:  collisionNext(o, c.Message)})
	}
	return findings
}

// missing returns the rule about references to objects of one kind that are not there.
func missing(kind string) func(*Snapshot) []Finding {
	return func(s *Snapshot) []Finding {
		if !s.knows(kind) {
			return nil
		}
		denied := s.imageDenied()
		var absent []reference
		for _, r := range s.references() {
			if r.pulls && !denied {
				continue // the kubelet goes on without it, and for public images that is well
			}
			if r.kind == kind && !s.has(kind, r.name) {
				r.key = "" // what is not there is one thing, whatever keys are asked for
				absent = append(absent, r)
			}
		}
		all := func(reference) bool { return true }
		return gather(absent, all, func(r reference, where []string) Finding {
			return Finding{Reason: kind + "NotFound", Object: kind + " " + r.name,
				Message: "named by " + list(where) + ", and not there",
				Cause: fmt.Sprintf("%s names %s %s in %s, and there is no such object in the "+
					"namespace.", r.in, kind, r.name, r.path),
				Next: fmt.Sprintf("Create %s %s in the namespace of %s, or correct the "+
					"name in %s.", kind, r.name, r.in, r.path)}
		})
	}
}

func keyMissing(s *Snapshot) []Finding {
	lacks := func(r reference) bool {
		return r.key != "" && s.knows(r.kind) && s.has(r.kind, r.name) && !slices.Contains(s.keys(r.kind)[r.name], r.key)
	}
	return gather(s.references(), lacks, func(r reference, where []string) Finding {
		return Finding{Reason: r.kind + "KeyNotFound", Object: r.kind + " " + r.name,
			Message: fmt.Sprintf("key %q, named by %s, is not in it", r.key, list(where)),
			Cause: fmt.Sprintf("%s asks in %s for the key %q of %s %s, which has no "+
				"such key.", r.in, r.path, r.key, r.kind, r.name),
			Next: fmt.Sprintf("Add the key %q to %s %s, or correct the key in %s.", r.key, r.kind, r.name, r.path)}
	})
}

// gather makes one finding of all faulty references to the same thing.
func gather(all []reference, faulty func(reference) bool, find func(first reference, where []string) Finding) []Finding {
	type thing struct{ kind, name, key string }
	var order []reference
	where := map[thing][]string{}
	for _, r := range all {
		if !faulty(r) {
			continue
		}
		of := thing{r.kind, r.name, r.key}
		if len(where[of]) == 0 {
			order = append(order, r)
		}
		where[of] = append(where[of], r.in+" "+r.path)
	}
	findings := make([]Finding, 0, len(order))
	for _, r := range order {
		findings = append(findings, find(r, where[thing{r.kind, r.name, r.key}]))
	}
	return findings
}

func (s *Snapshot) knows(kind string) bool {
	switch kind {
	case kindSecret:
		return s.Secrets != nil
	case kindConfigMap:
		return s.ConfigMaps != nil
	case kindAccount:
		return s.Accounts != nil
	default:
		return s.Claims != nil
	}
}

func (s *Snapshot) has(kind, name string) bool {
	switch kind {
	case kindAccount:
		return named(s.Accounts, name) != nil
	case kindClaim:
		return named(s.Claims, name) != nil
	default:
		_, there := s.keys(kind)[name]
		return there
	}
}

// keys are those of the Secrets or ConfigMaps.
func (s *Snapshot) keys(kind string) Keys {
	if kind == kindSecret {
		return s.Secrets
	}
	return s.ConfigMaps
}

func dashboardLocalhost(s *Snapshot) []Finding {
	var findings []Finding
	for _, cluster := range s.living() {
		if !onLoopback(cluster) {
			continue
		}
		o := clusterObject(cluster)
		findings = append(findings, Finding{Reason: "DashboardOnLoopback", Object: o.String(),
			Message: "spec.headGroupSpec.rayStartParams.dashboard-host is " + dashboardHost(cluster),
			Cause: fmt.Sprintf("%s binds its dashboard to the loopback interface, so neither the operator nor submitters "+
				"nor users can reach it.",
				o),
			Next: fmt.Sprintf("Set spec.headGroupSpec.rayStartParams.dashboard-host of %s to \"0.0.0.0\" and delete its "+
				"head Pod, so that it is made anew.",
				o)})
	}
	return findings
}

func dashboardHost(cluster *rayv1.RayCluster) string {
	return cluster.Spec.HeadGroupSpec.RayStartParams["dashboard-host"]
}

func onLoopback(cluster *rayv1.RayCluster) bool {
	host := dashboardHost(cluster)
	return host == "localhost" || host == "::1" || strings.HasPrefix(host, "127.")
}
