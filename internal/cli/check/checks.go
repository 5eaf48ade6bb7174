package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/heliostat-io/heliostat/api/heliostat/v1alpha1"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
	"github.com/heliostat-io/heliostat/internal/diagnose"
	"github.com/heliostat-io/heliostat/internal/diagnose/gather"
	"github.com/heliostat-io/heliostat/internal/rights"
)

// checks are the outcomes of all checks, in the order in which one thing needs the other.
func checks(ctx context.Context, env *kube.Env, s *diagnose.Snapshot) []line {
	lines := []line{kinds(s)}
	lines = append(lines, deployments(s)...)
	lines = append(lines, leader(s), fence(ctx, env))
	lines = append(lines, operatorRights(s)...)
	return append(lines, yourRights(ctx, env)...)
}

// kinds tells which kinds of ray.io/v1 the API server serves.
func kinds(s *diagnose.Snapshot) line {
	if s.Operator.CRDFields == nil {
		return line{checkAPI, unknown, because(s, "CustomResourceDefinitions")}
	}
	var served, missing []string
	for _, kind := range kube.Kinds() {
		if _, there := s.Operator.CRDFields[string(kind)]; there {
			served = append(served, string(kind))
		} else {
			missing = append(missing, string(kind))
		}
	}
	if len(missing) > 0 {
		return line{checkAPI, bad, "not installed: " + strings.Join(missing, ", ")}
	}
	return line{checkAPI, ok, "ray.io/v1: " + strings.Join(served, ", ")}
}

// because says why a part is not known.
func because(s *diagnose.Snapshot, what string) string {
	i := slices.IndexFunc(s.Gaps, func(g diagnose.Gap) bool { return g.What == what })
	if i < 0 {
		return ""
	}
	return s.Gaps[i].Why
}

func deployments(s *diagnose.Snapshot) []line {
	switch {
	case s.Operator.Deployments == nil:
		return []line{{checkOperator, unknown, because(s, "Deployments")}}
	case len(s.Operator.Deployments) == 0:
		return []line{{checkOperator, bad, "no Deployment of Heliostat or KubeRay in any namespace"}}
	}
	var lines []line
	for _, d := range s.Operator.Deployments {
		lines = append(lines, deployment(d))
	}
	return lines
}

func deployment(d *appsv1.Deployment) line {
	want := ptr.Deref(d.Spec.Replicas, 1)
	detail := fmt.Sprintf("%s/%s: %d of %d replicas available", d.Namespace, d.Name, d.Status.AvailableReplicas, want)
	if containers := d.Spec.Template.Spec.Containers; len(containers) > 0 {
		detail += ", image " + containers[0].Image
	}
	if d.Status.AvailableReplicas == 0 {
		return line{checkOperator, bad, detail}
	}
	return line{checkOperator, ok, detail}
}

// leader tells whether a replica holds the Lease.
func leader(s *diagnose.Snapshot) line {
	lease := s.Operator.LatestLease()
	if lease == nil {
		// With leader election switched off there is none.
		return line{checkLeader, unknown, "there is no Lease"}
	}
	name := lease.Namespace + "/" + lease.Name
	switch s.StandingOf(lease) {
	case diagnose.LeaseExpired:
		return line{checkLeader, bad, "nobody renews Lease " + name}
	case diagnose.LeaseReleased:
		return line{checkLeader, unknown, "nobody holds Lease " + name + " at this moment, which was released just now"}
	case diagnose.LeaseContested:
		return line{checkLeader, bad, fmt.Sprintf("%s changes hands again and again, and is held by %s now", name, *lease.Spec.HolderIdentity)}
	default:
		return line{checkLeader, ok, fmt.Sprintf("%s is held by %s", name, *lease.Spec.HolderIdentity)}
	}
}

// fence tells whether writes of replicas that are not the leader are refused, as the leader itself has found out.
func fence(ctx context.Context, env *kube.Env) line {
	c, err := env.Client()
	if err != nil {
		return line{checkFence, unknown, err.Error()}
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("HolderList"))
	err = c.List(ctx, list)
	switch {
	case meta.IsNoMatchError(err):
		return line{checkFence, unknown, "this is no Heliostat, or it was installed without its fence"}
	case err != nil:
		return line{checkFence, unknown, err.Error()}
	case len(list.Items) == 0:
		return line{checkFence, unknown, "no leader has taken over yet"}
	}
	holder := list.Items[0]
	term, _, _ := unstructured.NestedInt64(holder.Object, "spec", "term")
	conditions, _, _ := unstructured.NestedSlice(holder.Object, "status", "conditions")
	for _, c := range conditions {
		condition, isMap := c.(map[string]any)
		if !isMap || condition["type"] != v1alpha1.ConditionFenced {
			continue
		}
		if condition["status"] == string(metav1.ConditionTrue) {
			return line{checkFence, ok, fmt.Sprintf("term %d, writes of others are refused", term)}
		}
		return line{checkFence, bad, fmt.Sprintf("term %d: %v", term, condition["message"])}
	}
	return line{checkFence, unknown, fmt.Sprintf("term %d, the leader has not said yet whether it is fenced", term)}
}

// operatorRights tells what the operator may not do of what it needs. It is silent where nobody could be asked for.
func operatorRights(s *diagnose.Snapshot) []line {
	switch why := because(s, gather.OperatorRights); {
	case len(s.Operator.Refused) > 0:
		return []line{{checkOperatorRights, bad, "it may not " + rights.Names(s.Operator.Refused, mostNamed)}}
	case why != "":
		return []line{{checkOperatorRights, unknown, why}}
	case s.Operator.Refused != nil:
		return []line{{checkOperatorRights, ok, "it may do all that it needs"}}
	default:
		return nil
	}
}

// mostNamed is how many missing rights a line names before it counts.
const mostNamed = 3

// yourRights tell what the user may do.
func yourRights(ctx context.Context, env *kube.Env) []line {
	namespace, err := env.Namespace()
	if err != nil {
		return []line{{checkRights, unknown, err.Error()}}
	}
	c, err := env.Client()
	if err != nil {
		return []line{{checkRights, unknown, err.Error()}}
	}
	var may, mayNot []string
	for _, ask := range []authorizationv1.ResourceAttributes{
		{Group: "ray.io", Resource: "rayclusters", Verb: "get"}, {Group: "ray.io", Resource: "rayclusters", Verb: "create"},
		{Group: "ray.io", Resource: "rayclusters", Verb: "patch"}, {Resource: "pods", Verb: "list"},
		{Resource: "pods", Subresource: "log", Verb: "get"}, {Resource: "pods", Subresource: "portforward", Verb: "create"},
		{Resource: "pods", Subresource: "exec", Verb: "create"}, {Resource: "services", Subresource: "proxy", Verb: "get"},
		{Resource: "secrets", Verb: "get"}, {Resource: "events", Verb: "list"},
	} {
		ask.Namespace = namespace
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &ask}}
		if err := c.Create(ctx, review); err != nil {
			return []line{{checkRights, unknown, err.Error()}}
		}
		what := ask.Verb + " " + strings.TrimSuffix(ask.Resource+"/"+ask.Subresource, "/")
		if review.Status.Allowed {
			may = append(may, what)
		} else {
			mayNot = append(mayNot, what)
		}
	}
	lines := []line{{checkRights, ok, fmt.Sprintf("in namespace %s you may %s", namespace, strings.Join(may, ", "))}}
	if len(mayNot) > 0 {
		// It is no fault of the installation, so it is not bad.
		lines = append(lines, line{checkRights, unknown, fmt.Sprintf("in namespace %s you may not %s", namespace, strings.Join(mayNot, ", "))})
	}
	return lines
}
