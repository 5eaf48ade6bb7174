package diagnose

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/rights"
)

const (
	forbiddenText = `pods is forbidden: User "system:serviceaccount:ray-system:heliostat" cannot create resource "pods" in API group "" in the namespace "ns"`
	quotaText     = `group small: pods "demo-small-worker-x" is forbidden: exceeded quota: team-a, requested: requests.cpu=4, used: requests.cpu=6, limited: requests.cpu=8`
)

func refusedWith(text string) func(*Snapshot) {
	return func(s *Snapshot) {
		set(&demo(s).Status.Conditions, rayv1.ConditionReplicaFailure, "True", rayv1.ReasonFailedCreateWorkerPod, text)
		set(&demo(s).Status.Conditions, rayv1.ConditionReady, "False", rayv1.ReasonPodsNotReady, "")
	}
}

func TestRefusals(t *testing.T) {
	refused := func(text, id string) wholeCase {
		return wholeCase{refusedWith(text), []string{id + " RayCluster demo"}}
	}
	testWhole(t, map[string]wholeCase{
		"a right":                   refused(forbiddenText, "operator-forbidden"),
		"an owner reference":        refused(`pods "p" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>`, "owner-reference-refused"),
		"a quota":                   refused(quotaText, "quota-exceeded"),
		"a quota that wants limits": refused(`pods "p" is forbidden: failed quota: team-a: must specify limits.cpu for: ray-head`, "quota-exceeded"),
		"a limit":                   refused(`pods "p" is forbidden: maximum cpu usage per Container is 2, but limit is 4`, "limit-range"),
		"a default limit": refused(`head: Pod "demo-head-x" is invalid: spec.containers[0].resources.requests: Invalid value: "20m": `+
			`must be less than or equal to cpu limit of 10m`, "limit-range"),
		"a limit of the template's own": {func(s *Snapshot) {
			demo(s).Spec.WorkerGroupSpecs[0].Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"cpu": resource.MustParse("20m")}, Limits: corev1.ResourceList{"cpu": resource.MustParse("10m")}}
			refusedWith(`group small: Pod "p" is invalid: spec.containers[0].resources.requests: Invalid value: "20m": must be less than or equal to cpu limit of 10m`)(s)
		}, []string{"pod-invalid RayCluster demo"}},
		"a field that is wrong":          refused(`group small: Pod "p" is invalid: spec.containers[0].volumeMounts[0].name: Not found: "x"`, "pod-invalid"),
		"a quota that was not counted":   refused(`pods "p" is forbidden: status unknown for quota: team-a, resources: pods`, "quota-exceeded"),
		"Pod Security":                   refused(`pods "p" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true`, "pod-security"),
		"a webhook":                      refused(`admission webhook "v.example.com" denied the request: no image of quay.io`, "admission-denied"),
		"a policy":                       refused(`pods "p" is forbidden: ValidatingAdmissionPolicy 'images' with binding 'b' denied request: no latest`, "admission-denied"),
		"a webhook that does not answer": refused(`Internal error occurred: failed calling webhook "v.example.com": connection refused`, "webhook-unreachable"),
		"a priority class":               refused(`pods "p" is forbidden: no PriorityClass with name high was found`, "priority-class-missing"),
		"the fence": refused(`pods "p" is forbidden: ValidatingAdmissionPolicy 'heliostat-fence' with binding 'b' denied request: heliostat fence: only Pod a may write`,
			"write-fenced"),
		"an event just now, and no condition for it": {func(s *Snapshot) {
			demo(s).Status.Conditions = nil
			s.Events = []corev1.Event{event("RayCluster", "demo", "FailedToCreateWorkerPod", quotaText, time.Minute)}
		}, []string{"quota-exceeded RayCluster demo"}},
		"an event of long ago": {func(s *Snapshot) {
			demo(s).Status.Conditions = nil
			s.Events = []corev1.Event{event("RayCluster", "demo", "FailedToCreateWorkerPod", quotaText, 20*time.Minute)}
		}, nil},
		"an event between two tries": {func(s *Snapshot) {
			demo(s).Status.Conditions = nil
			s.Events = []corev1.Event{event("RayCluster", "demo", "FailedToCreateWorkerPod", quotaText, 9*time.Minute)}
		}, []string{"quota-exceeded RayCluster demo"}},
		"an event, and conditions that know nothing of it any more": {func(s *Snapshot) {
			set(&demo(s).Status.Conditions, rayv1.ConditionReady, "False", rayv1.ReasonPodsNotReady, "")
			s.Events = []corev1.Event{event("RayCluster", "demo", "FailedToCreateWorkerPod", quotaText, time.Minute)}
		}, nil},
		"two groups, refused for two reasons": {func(s *Snapshot) {
			refusedWith(quotaText)(s)
			set(&demo(s).Status.Conditions, rayv1.ConditionPodsHealthy, "False", rayv1.ReasonFailedCreateWorkerPod,
				strings.Replace(quotaText, "small: ", "small: FailedCreateWorkerPod: ", 1)+"\n"+
					`group large: FailedCreateWorkerPod: pods "p" is forbidden: no PriorityClass with name high was found`)
		}, []string{"quota-exceeded RayCluster demo", "priority-class-missing RayCluster demo"}},
		"a container that speaks of a refusal of its own": {func(s *Snapshot) {
			set(&demo(s).Status.Conditions, rayv1.ConditionPodsHealthy, "False", "CrashLoopBackOff",
				"head: Pod demo-head: CrashLoopBackOff: container ray-head: exit code 1: "+forbiddenText)
			set(&demo(s).Status.Conditions, rayv1.ConditionReady, "False", rayv1.ReasonPodsNotReady, forbiddenText)
		}, nil},
		"what nobody knows": {func(s *Snapshot) {
			set(&demo(s).Status.Conditions, rayv1.ConditionStalled, "True", "FailedToCreateService", "Service demo-head-svc: the moon is full")
			set(&s.Service.Status.Conditions, rayv1.ConditionStalled, "True", "FailedToCreateService", "RayCluster demo: the moon is full")
		}, []string{"stalled RayCluster demo"}},
		"what nobody knows, of an owner": {func(s *Snapshot) {
			set(&s.Service.Status.Conditions, rayv1.ConditionStalled, "True", "FailedToCreateService", "the moon is full")
		}, []string{"stalled RayService chat"}},
		"a stall beside its reason": {func(s *Snapshot) {
			set(&demo(s).Status.Conditions, rayv1.ConditionStalled, "True", "ImagePullBackOff", "head: Pod demo-head: ImagePullBackOff")
			workerOf(s).Status.ContainerStatuses[0] = corev1.ContainerStatus{Name: "ray-worker", State: waiting("ImagePullBackOff", "")}
		}, nil},
		"an event, and a cluster that is ready since": {func(s *Snapshot) {
			s.Events = []corev1.Event{event("RayCluster", "demo", "FailedToCreateWorkerPod", quotaText, time.Minute)}
		}, nil},
		"the Pod of a submitter": {func(s *Snapshot) {
			s.SubmitterJobs[0].Status = batchv1.JobStatus{}
			s.Events = []corev1.Event{event("Job", "train", "FailedCreate", quotaText, time.Minute)}
		}, []string{"quota-exceeded Job train"}},
		"the Pod of a submitter that was made since": {func(s *Snapshot) {
			s.Events = []corev1.Event{event("Job", "train", "FailedCreate", quotaText, time.Minute)}
		}, nil},
		"a right that the API server denies when asked": {func(s *Snapshot) {
			s.Operator.Refused = []rights.Right{{Verb: "update", Group: "ray.io", Resource: "rayclusters/status"}}
		}, []string{"operator-forbidden Deployment ray-system/heliostat"}},
		"a right that both tell of": {func(s *Snapshot) {
			refusedWith(forbiddenText)(s)
			s.Operator.Refused = []rights.Right{{Verb: "create", Resource: "pods", Namespace: "ns"}}
		}, []string{"operator-forbidden RayCluster demo"}},
		"a right for one namespace that is missing everywhere": {func(s *Snapshot) {
			refusedWith(forbiddenText)(s)
			s.Operator.Refused = []rights.Right{{Verb: "create", Resource: "pods"}}
		}, []string{"operator-forbidden RayCluster demo"}},
		"a refused write, and other rights that are missing": {func(s *Snapshot) {
			refusedWith(forbiddenText)(s)
			s.Operator.Refused = []rights.Right{{Verb: "create", Resource: "pods", Namespace: "ns"}, {Verb: "delete", Resource: "pods", Namespace: "ns"}}
		}, []string{"operator-forbidden Deployment ray-system/heliostat", "operator-forbidden RayCluster demo"}},
		"a quota, which the owner repeats": {func(s *Snapshot) {
			refusedWith(quotaText)(s)
			set(&s.Jobs[0].Status.Conditions, rayv1.ConditionStalled, "True", "FailedCreateWorkerPod", "RayCluster demo: "+quotaText)
		}, []string{"quota-exceeded RayCluster demo"}},
		"other trouble": {func(s *Snapshot) {
			set(&demo(s).Status.Conditions, rayv1.ConditionPodsHealthy, "False", "OOMKilled", "group small: 1 of 1: container ray-worker: exit code 137")
		}, nil},
	})
}

func TestRefusalsNameWhatIsMissing(t *testing.T) {
	for text, want := range map[string]string{
		forbiddenText: "The account system:serviceaccount:ray-system:heliostat may not create pods in namespace ns.",
		quotaText:     "ResourceQuota team-a does not leave room for what RayCluster demo asks for: requested requests.cpu=4, used requests.cpu=6, limit requests.cpu=8.",
		`pods "p" is forbidden: failed quota: team-a: must specify limits.cpu for: ray-head`: "ResourceQuota team-a counts resources that the Pods of RayCluster demo do not specify: limits.cpu for: ray-head.",
		`pods "p" is forbidden: status unknown for quota: team-a, resources: pods`: "ResourceQuota team-a has no status yet, and until it has one nothing that it counts is let in, " +
			"RayCluster demo included.",
		`Pod "p" is invalid: spec.containers[0].resources.requests: Invalid value: "20m": must be less than or equal to cpu limit of 10m`: "A container of RayCluster demo has no cpu limit " +
			"of its own, so a LimitRange of the namespace gives it its default of 10m, which is less than the container asks for.",
	} {
		s := healthy()
		refusedWith(text)(s)
		if found := Findings(s); len(found) != 1 || found[0].Cause != want {
			t.Errorf("got %+v\nwant cause %q", found, want)
		}
	}
}

func TestMissingRightsOfTheOperatorAreNamed(t *testing.T) {
	const user = "system:serviceaccount:ray-system:heliostat"
	finalizers := rights.Right{User: user, Verb: "update", Group: "ray.io", Resource: "rayclusters/finalizers", Namespace: "ns"}
	pods := func(verb string) rights.Right { return rights.Right{User: user, Verb: verb, Resource: "pods"} }
	for name, tc := range map[string]struct {
		refused     []rights.Right
		cause, next string
	}{
		"what OwnerReferencesPermissionEnforcement asks for, in one namespace": {[]rights.Right{finalizers},
			"The account " + user + " may not update rayclusters/finalizers.ray.io in namespace ns.",
			"Install the RBAC objects of the operator's chart again (rbacEnable=true), or allow it by hand in the operator's ClusterRole, or its " +
				"Role in namespace ns; \"kubectl auth can-i update rayclusters.ray.io --subresource=finalizers -n ns --as=" + user +
				"\" must then answer yes."},
		"several verbs in all namespaces": {[]rights.Right{pods("create"), pods("delete"), finalizers},
			"The account " + user + " may not create, delete pods in all namespaces; update rayclusters/finalizers.ray.io in namespace ns.",
			"Install the RBAC objects of the operator's chart again (rbacEnable=true), or allow it by hand in the operator's ClusterRole; " +
				"\"kubectl auth can-i create pods -A --as=" + user + "\" must then answer yes."},
	} {
		t.Run(name, func(t *testing.T) {
			s := healthy()
			s.Operator.Refused = tc.refused
			found := Findings(s)
			if len(found) != 1 || found[0].ID != "operator-forbidden" || found[0].Cause != tc.cause || found[0].Next != tc.next {
				t.Errorf("got %+v\nwant cause %q\nand next step %q", found, tc.cause, tc.next)
			}
		})
	}
}

func TestRightsOfTheAutoscaler(t *testing.T) {
	testWhole(t, map[string]wholeCase{
		"no binding": {func(s *Snapshot) { s.Bindings = []*rbacv1.RoleBinding{} }, []string{"autoscaler-rights-missing ServiceAccount demo"}},
		"no role":    {func(s *Snapshot) { s.Roles = []*rbacv1.Role{} }, []string{"autoscaler-rights-missing RoleBinding demo"}},
		"a role that allows too little": {func(s *Snapshot) { s.Roles[0].Rules = s.Roles[0].Rules[:1] },
			[]string{"autoscaler-rights-missing Role demo"}},
		"an account that is gone": {func(s *Snapshot) { s.Accounts = s.Accounts[:1] }, []string{"autoscaler-rights-missing ServiceAccount demo"}},
		"no credentials in the Pod": {func(s *Snapshot) {
			demo(s).Spec.HeadGroupSpec.Template.Spec.AutomountServiceAccountToken = ptr.To(false)
		}, []string{"autoscaler-rights-missing RayCluster demo"}},
		"a ClusterRole, which is not known": {func(s *Snapshot) { s.Bindings[0].RoleRef.Kind = "ClusterRole" }, nil},
		"no binding, because the operator was refused before": {func(s *Snapshot) {
			s.Bindings = []*rbacv1.RoleBinding{}
			refusedWith(forbiddenText)(s)
		}, []string{"operator-forbidden RayCluster demo"}},
		"no binding, because the operator is down": {func(s *Snapshot) {
			s.Bindings, s.Operator.Deployments[0].Status.AvailableReplicas = []*rbacv1.RoleBinding{}, 0
		}, []string{"operator-unavailable Deployment ray-system/heliostat"}},
		"no binding, and an autoscaler that has ended for it": {func(s *Snapshot) {
			s.Bindings = []*rbacv1.RoleBinding{}
			set(&demo(s).Status.Conditions, rayv1.ConditionStalled, "True", "Error", "head: Pod demo-head: Error: container autoscaler: exit code 1")
			headOf(s).Spec.RestartPolicy = corev1.RestartPolicyNever
			headOf(s).Status.ContainerStatuses[1] = corev1.ContainerStatus{Name: "autoscaler", State: terminated(1, "Error", "")}
		}, []string{"autoscaler-rights-missing ServiceAccount demo"}},
		"no autoscaler": {func(s *Snapshot) {
			demo(s).Spec.EnableInTreeAutoscaling = nil
			s.Bindings = []*rbacv1.RoleBinding{}
		}, nil},
		"rights that could not be read": {func(s *Snapshot) { s.Accounts, s.Roles, s.Bindings = nil, nil, nil }, nil},
		"an account of the user's own, which is gone": {func(s *Snapshot) {
			demo(s).Spec.HeadGroupSpec.Template.Spec.ServiceAccountName = "robot"
			headOf(s).Spec.ServiceAccountName = "robot"
		}, []string{"service-account-missing ServiceAccount robot"}},
	})
}

func TestFenceIsNamed(t *testing.T) {
	s := healthy()
	refusedWith("denied request: heliostat fence: only Pod a may write")(s)
	if found := Findings(s); len(found) != 1 || !strings.Contains(found[0].Cause, "does not lead any more") || found[0].Severity != Passing {
		t.Errorf("got %+v", found)
	}
}
