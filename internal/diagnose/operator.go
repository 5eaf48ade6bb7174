package diagnose

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// operatorRules are about the operator itself.
func operatorRules() []objectRule {
	return []objectRule{
		{"kind-not-installed", Blocking, kindNotInstalled},
		{"operator-missing", Blocking, operatorMissing},
		{"operator-unavailable", Blocking, operatorUnavailable},
		{"operator-no-leader", Blocking, operatorNoLeader},
		{"crd-older", Blocking, crdOlder},
		{"managed-by-other", Blocking, managedByOther},
		{"status-not-observed", Blocking, statusNotObserved},
		{"write-fenced", Passing, refusalRule(refusedByFence, "Fenced", "A replica of the operator that does not lead any "+
			"more wanted to write %s, and was kept from it.",
			"Nothing is lost: the present leader does the work of %s. If it stays, see which Pod \"kubectl get lease -A | "+
				"grep ray-operator-leader\" names, and restart the others.")},
		{"lease-contested", Passing, leaseContested},
	}
}

// operatorName is how findings name the operator.
func (s *Snapshot) operatorName() string {
	if len(s.Operator.Deployments) == 0 {
		return "Deployment of the operator"
	}
	d := s.Operator.Deployments[0]
	return "Deployment " + d.Namespace + "/" + d.Name
}

// operatorDown tells whether it is known that no operator works. Much else follows from that.
func (s *Snapshot) operatorDown() bool {
	return len(operatorMissing(s))+len(operatorUnavailable(s))+len(operatorNoLeader(s)) > 0
}

// operatorMissing is silent while somebody acts upon all objects: an operator may run under labels that nobody knows, or outside of
// this Kubernetes cluster.
func operatorMissing(s *Snapshot) []Finding {
	if s.Operator.Deployments == nil || len(s.Operator.Deployments) > 0 {
		return nil
	}
	objects := s.objects()
	waits := func(o object) bool {
		changing := o.observed > 0 && s.specChangedWithin(o, settling)
		return o.ours() && !o.ended && o.meta.DeletionTimestamp == nil && s.unseen(o) && !changing
	}
	if len(objects) > 0 && !slices.ContainsFunc(objects, waits) {
		return nil
	}
	return []Finding{{Reason: "OperatorNotFound", Object: "Deployment of the operator", Message: "no namespace has a " +
		"Deployment that runs an operator for ray.io",
		Cause: "Nothing acts upon objects of ray.io/v1, because no operator is installed.",
		Next:  "Install the operator: \"helm install heliostat <chart> -n ray-system --create-namespace\"."}}
}

func operatorUnavailable(s *Snapshot) []Finding {
	deployments := s.Operator.Deployments
	works := func(d *appsv1.Deployment) bool {
		return d.Status.AvailableReplicas > 0 || s.youngerThan(d.CreationTimestamp, settling)
	}
	if len(deployments) == 0 || slices.ContainsFunc(deployments, works) {
		return nil
	}
	d := deployments[0]
	finding := Finding{Reason: "OperatorUnavailable", Object: s.operatorName(), Message: "none of its replicas is available",
		Cause: fmt.Sprintf("Nothing acts upon objects of ray.io/v1, because no replica of Deployment %s in namespace %s is "+
			"available.", d.Name, d.Namespace),
		Next: fmt.Sprintf("Run \"kubectl -n %s describe pods\" and \"kubectl -n %s logs deployment/%s\" to see why its "+
			"Pods are not ready.", d.Namespace, d.Namespace, d.Name)}
	if d.Spec.Replicas != nil && *d.Spec.Replicas == 0 {
		finding.Message = "its spec.replicas is 0"
		finding.Next = fmt.Sprintf("Run \"kubectl -n %s scale deployment %s --replicas=1\".", d.Namespace, d.Name)
	}
	return []Finding{finding}
}

// operatorNoLeader is silent where there is no Lease: a single replica needs none.
func operatorNoLeader(s *Snapshot) []Finding {
	leases := s.Operator.Leases
	led := func(l *coordinationv1.Lease) bool { return s.StandingOf(l) != LeaseExpired }
	if len(leases) == 0 || len(s.Operator.Deployments) == 0 || len(operatorUnavailable(s)) > 0 || slices.ContainsFunc(leases, led) {
		return nil
	}
	lease := leases[0]
	return []Finding{{Reason: "NoLeader", Object: fmt.Sprintf("Lease %s/%s", lease.Namespace, lease.Name),
		Message: "no replica of the operator renews it",
		Cause: fmt.Sprintf("All replicas of %s wait to lead, or cannot write Lease %s, so nothing acts upon objects of "+
			"ray.io/v1.", s.operatorName(), lease.Name),
		Next: fmt.Sprintf("Read the log of the operator's Pods in namespace %s; they need the verbs get, create and update "+
			"on leases in API group coordination.k8s.io there.",
			lease.Namespace)}}
}

func leaseContested(s *Snapshot) []Finding {
	var findings []Finding
	for _, l := range s.Operator.Leases {
		if s.StandingOf(l) != LeaseContested {
			continue
		}
		findings = append(findings, Finding{Reason: "LeaseContested", Object: fmt.Sprintf("Lease %s/%s", l.Namespace, l.Name),
			Message: "it has changed hands often, and again just now",
			Cause: fmt.Sprintf("Replicas of the operator take Lease %s from each other, or the leader ends again "+
				"and again.", l.Name),
			Next: fmt.Sprintf("See whether Pods of the operator in namespace %s restart, whether its API requests time "+
				"out, and whether two operators (for example "+
				"KubeRay and Heliostat) compete for the Lease.", l.Namespace)})
	}
	return findings
}

// kindNotInstalled asks for the kinds that the object in question needs.
func kindNotInstalled(s *Snapshot) []Finding {
	if s.Operator.CRDFields == nil {
		return nil
	}
	needed := []string{rayv1.KindRayCluster}
	if len(s.Jobs) > 0 || s.CronJob != nil {
		needed = append(needed, rayv1.KindRayJob)
	}
	if s.CronJob != nil {
		needed = append(needed, rayv1.KindRayCronJob)
	}
	if s.Service != nil {
		needed = append(needed, rayv1.KindRayService)
	}
	var findings []Finding
	for _, kind := range needed {
		if _, installed := s.Operator.CRDFields[kind]; installed {
			continue
		}
		crd := strings.ToLower(kind) + "s.ray.io"
		findings = append(findings, Finding{Reason: "KindNotInstalled", Object: "CustomResourceDefinition " + crd,
			Message: "the API server does not know the kind " + kind,
			Cause: fmt.Sprintf("CustomResourceDefinition %s, which the operator needs, is not installed or does not serve "+
				"version v1.", crd),
			Next: "Apply the directory crds of the operator's chart: \"kubectl apply --server-side -f crds/\"."})
	}
	return findings
}

// crdOlder knows only what Heliostat's own schema has to hold, so it is silent where another operator runs.
func crdOlder(s *Snapshot) []Finding {
	if !slices.ContainsFunc(s.Operator.Deployments, IsHeliostat) {
		return nil
	}
	var findings []Finding
	for _, kind := range []string{rayv1.KindRayCluster, rayv1.KindRayCronJob, rayv1.KindRayJob, rayv1.KindRayService} {
		fields, installed := s.Operator.CRDFields[kind]
		if !installed {
			continue
		}
		missing := slices.DeleteFunc(specFields(kind), func(field string) bool { return slices.Contains(fields, field) })
		if len(missing) == 0 {
			continue
		}
		crd := strings.ToLower(kind) + "s.ray.io"
		findings = append(findings, Finding{Reason: "SchemaTooOld", Object: "CustomResourceDefinition " + crd,
			Message: "its spec lacks " + list(missing),
			Cause: fmt.Sprintf("CustomResourceDefinition %s is older than the operator, so the API server drops fields of "+
				"manifests: %s.", crd, list(missing)),
			Next: "Apply the directory crds of the chart in the operator's version, which Helm does not do on an upgrade: " +
				"\"kubectl apply --server-side --force-conflicts -f crds/\"."})
	}
	return findings
}

// IsHeliostat tells whether a Deployment runs Heliostat, and not KubeRay.
func IsHeliostat(d *appsv1.Deployment) bool {
	if strings.Contains(d.Name, "heliostat") {
		return true
	}
	containers := d.Spec.Template.Spec.Containers
	return len(containers) > 0 && strings.Contains(containers[0].Image, "heliostat")
}

// specFields are the top-level fields of the spec of a kind, as this version knows them.
func specFields(kind string) []string {
	spec := map[string]reflect.Type{
		rayv1.KindRayCluster: reflect.TypeFor[rayv1.RayClusterSpec](), rayv1.KindRayJob: reflect.TypeFor[rayv1.RayJobSpec](),
		rayv1.KindRayService: reflect.TypeFor[rayv1.RayServiceSpec](), rayv1.KindRayCronJob: reflect.TypeFor[rayv1.RayCronJobSpec](),
	}[kind]
	var fields []string
	for field := range spec.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		fields = append(fields, name)
	}
	return fields
}

// managedByOther is silent once somebody has acted upon the object: then it is as it was asked for.
func managedByOther(s *Snapshot) []Finding {
	var findings []Finding
	for _, o := range s.objects() {
		if o.ours() || !o.untouched || o.suspended || s.youngerThan(o.meta.CreationTimestamp, settling) {
			continue
		}
		findings = append(findings, Finding{Reason: "ManagedByOther", Object: o.String(),
			Message: "spec.managedBy is " + *o.managedBy,
			Cause: fmt.Sprintf("spec.managedBy of %s hands it over to %s, so the operator leaves it alone, and that "+
				"controller has done nothing yet.", o, *o.managedBy),
			Next: fmt.Sprintf("See whether %s runs and takes %s; to have the operator act upon it, create it anew without "+
				"spec.managedBy.", *o.managedBy, o)})
	}
	return findings
}

// statusNotObserved is silent where the operator is known to be down.
func statusNotObserved(s *Snapshot) []Finding {
	var findings []Finding
	if s.operatorDown() {
		return nil
	}
	for _, o := range s.objects() {
		if !o.ours() || o.ended || o.meta.DeletionTimestamp != nil || !s.unseen(o) || s.specChangedWithin(o, settling) || s.verdict(o) != "" {
			continue
		}
		findings = append(findings, Finding{Reason: "StatusNotObserved", Object: o.String(), Message: "the status does not " +
			"speak of the present spec",
			Cause: fmt.Sprintf("The operator has not looked at %s since its spec was last changed.", o),
			Next: fmt.Sprintf("Check that the operator watches the namespace of %s (watchNamespace in its chart) and read "+
				"its log (%s) for errors about %s.",
				o, s.operatorName(), o.meta.Name)})
	}
	return findings
}

// unseen tells whether the operator has not looked at the present spec of an object. Heliostat always says what it has looked
// at. KubeRay does so only when something else in a status changes, and never for RayJobs; of its objects only an empty
// status tells, and that not for a RayCronJob, which has none before its first run.
func (s *Snapshot) unseen(o object) bool {
	says := slices.ContainsFunc(o.conditions, func(c metav1.Condition) bool { return c.Type == rayv1.ConditionValid }) ||
		slices.ContainsFunc(s.Operator.Deployments, IsHeliostat)
	if says {
		return o.observed < o.meta.Generation
	}
	return o.untouched && o.kind != rayv1.KindRayCronJob
}

// specChangedWithin tells whether the spec of an object was written lately. Where the API server's record is not there, the
// time of the change is unknown and counts as lately, unless the spec was never changed.
func (s *Snapshot) specChangedWithin(o object, age time.Duration) bool {
	changed := o.meta.CreationTimestamp.Time
	known := o.meta.Generation <= 1
	for _, entry := range o.meta.ManagedFields {
		if entry.Subresource != "" || entry.FieldsV1 == nil || !strings.Contains(entry.FieldsV1.GetRawString(), `"f:spec"`) {
			continue
		}
		known = true
		if at := timeOf(entry); at.After(changed) {
			changed = at
		}
	}
	return !known || s.Now.Sub(changed) < age
}
