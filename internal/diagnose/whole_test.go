package diagnose

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// wholeCase is a snapshot that differs from the healthy one, and what the rules about whole objects find in it: the id and
// the object of each finding.
type wholeCase struct {
	given func(*Snapshot)
	want  []string
}

// testWhole judges each case, and that each finding explains itself and stays the same while only time passes.
func testWhole(t *testing.T, cases map[string]wholeCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := healthy()
			tc.given(s)
			found := wholeFindings(s)
			if diff := cmp.Diff(tc.want, told(found)); diff != "" {
				t.Errorf("findings (-want +got):\n%s\n%+v", diff, found)
			}
			for _, f := range found {
				explains(t, f)
			}
			before := messages(found)
			s.Now = s.Now.Add(time.Second)
			if diff := cmp.Diff(before, messages(wholeFindings(s))); diff != "" {
				t.Errorf("messages change with the time:\n%s", diff)
			}
		})
	}
}

// wholeFindings leaves out what the rules about single Pods find.
func wholeFindings(s *Snapshot) []Finding {
	ids := []string{Unexplained}
	for _, rule := range objectRules() {
		ids = append(ids, rule.id)
	}
	return slices.DeleteFunc(Findings(s), func(f Finding) bool { return !slices.Contains(ids, f.ID) })
}

func told(findings []Finding) []string {
	var all []string
	for _, f := range findings {
		all = append(all, f.ID+" "+f.Object)
	}
	return all
}

func messages(findings []Finding) []string {
	var all []string
	for _, f := range findings {
		all = append(all, f.ID+": "+f.Message)
	}
	return all
}

func explains(t *testing.T, f Finding) {
	t.Helper()
	entry := f.Explained()
	for what, text := range map[string]string{"message": f.Message, "cause": entry.Cause, "next": entry.Next} {
		if text == "" || strings.Contains(text, "%!") || strings.Contains(text, "\n") {
			t.Errorf("%s %s: bad %s %q", f.ID, f.Object, what, text)
		}
	}
	if !camelCase.MatchString(f.Reason) {
		t.Errorf("%s has the reason %q", f.ID, f.Reason)
	}
}

// camelCase are the words that may stand as reasons of conditions and events.
var camelCase = regexp.MustCompile(`^[A-Z][A-Za-z]*$`)

func TestCatalogueHasEachRuleOnce(t *testing.T) {
	count := map[string]int{}
	for _, entry := range Catalogue() {
		count[entry.ID]++
		if entry.Symptom == "" || entry.Cause == "" || entry.Next == "" || entry.Family == "" {
			t.Errorf("entry %s is not complete", entry.ID)
		}
	}
	rules := map[string]bool{Unexplained: true}
	for _, rule := range objectRules() {
		if rules[rule.id] {
			t.Errorf("rule %s is there twice", rule.id)
		}
		rules[rule.id] = true
	}
	for id := range rules {
		if count[id] != 1 {
			t.Errorf("rule %s has %d entries", id, count[id])
		}
	}
	mine := slices.Concat(connectionEntries(), configurationEntries(), rightsEntries(), scalingEntries(), operatorEntries(), securityEntries(), workEntries())
	for _, entry := range mine {
		if !rules[entry.ID] {
			t.Errorf("entry %s has no rule", entry.ID)
		}
	}
}

func TestNothingIsFoundWhereNothingIsWrong(t *testing.T) {
	testWhole(t, map[string]wholeCase{
		"all is there and works":  {given: func(*Snapshot) {}},
		"nothing is known at all": {given: func(s *Snapshot) { *s = Snapshot{Now: now} }},
		"only the objects of Ray are known": {given: func(s *Snapshot) {
			*s = Snapshot{Now: now, Jobs: s.Jobs, Service: s.Service, Clusters: s.Clusters}
		}},
		"images are on their way for minutes": {given: pulling},
		"the job is done and its cluster gone": {given: func(s *Snapshot) {
			s.Jobs[0].Status.JobDeploymentStatus, s.Jobs[0].Status.JobStatus = rayv1.JobDeploymentStatusComplete, rayv1.JobStatusSucceeded
			s.Clusters, s.Pods, s.Service, s.SubmitterJobs = nil, []*corev1.Pod{}, nil, nil
		}},
		"all was created just now": {given: young},
		"all was created by KubeRay, which knows fewer conditions": {given: func(s *Snapshot) {
			kubeRay(s)
			s.Jobs[0].Status.ObservedGeneration = 0
		}},
	})
}

// young takes the snapshot back to the first seconds, in which the operator has made some parts and Kubernetes none.
func young(s *Snapshot) {
	created := ago(20 * time.Second)
	cluster := demo(s)
	cluster.CreationTimestamp, cluster.ManagedFields = created, nil
	cluster.Status = rayv1.RayClusterStatus{}
	s.Jobs[0].CreationTimestamp = created
	s.Jobs[0].Status = rayv1.RayJobStatus{JobDeploymentStatus: rayv1.JobDeploymentStatusInitializing}
	s.Service.CreationTimestamp, s.Service.Status = created, rayv1.RayServiceStatuses{}
	for _, pod := range s.Pods {
		pod.CreationTimestamp, pod.Spec.NodeName = created, ""
		pod.Status = corev1.PodStatus{Phase: corev1.PodPending}
	}
	for _, claim := range s.Claims {
		claim.CreationTimestamp, claim.Status.Phase = created, corev1.ClaimPending
	}
	s.Pods = s.Pods[:1]
	s.Services, s.Accounts, s.Roles, s.Bindings = []*corev1.Service{}, []*corev1.ServiceAccount{}, []*rbacv1.Role{}, []*rbacv1.RoleBinding{}
	s.Slices, s.Ingresses, s.SubmitterJobs = []*discoveryv1.EndpointSlice{}, nil, nil
	s.Dashboards = map[string]Dashboard{"demo": {Error: "connection refused"}}
}

// pulling has Pods whose images take long. The operator has done its part.
func pulling(s *Snapshot) {
	created := ago(4 * time.Minute)
	cluster := demo(s)
	cluster.CreationTimestamp, cluster.ManagedFields[0].Time = created, &created
	cluster.Status.State, cluster.Status.Conditions = "", nil
	set(&cluster.Status.Conditions, rayv1.ConditionValid, "True", rayv1.ReasonSpecValid, "")
	set(&cluster.Status.Conditions, rayv1.ConditionReady, "False", rayv1.ReasonPodsNotReady, "head is not ready")
	set(&cluster.Status.Conditions, rayv1.ConditionReconciling, "True", rayv1.ReasonPodsNotReady, "head is not ready")
	set(&s.Service.Status.Conditions, rayv1.ConditionRayServiceReady, "False", rayv1.ReasonInitializing, "the cluster is not ready")
	s.Service.Status.ActiveServiceStatus = rayv1.RayServiceStatus{}
	s.Service.Status.PendingServiceStatus.RayClusterName = "demo"
	s.Jobs[0].CreationTimestamp = created
	s.Jobs[0].Status.JobDeploymentStatus, s.Jobs[0].Status.JobStatus = rayv1.JobDeploymentStatusInitializing, ""
	s.SubmitterJobs = nil
	for _, pod := range s.Pods {
		pod.CreationTimestamp, pod.Status.Phase = created, corev1.PodPending
		pod.Status.Conditions[0].Status, pod.Status.Conditions[1].Status = corev1.ConditionFalse, corev1.ConditionFalse
		for i := range pod.Status.ContainerStatuses {
			pod.Status.ContainerStatuses[i] = corev1.ContainerStatus{Name: pod.Spec.Containers[i].Name, State: waiting("ContainerCreating", "")}
		}
	}
	s.Slices[0].Endpoints[0].Conditions.Ready, s.Slices[1].Endpoints = ptr.To(false), nil
	s.Dashboards = map[string]Dashboard{"demo": {Error: "no endpoints"}}
}

func demo(s *Snapshot) *rayv1.RayCluster { return s.Clusters[0] }
func headOf(s *Snapshot) *corev1.Pod     { return s.Pods[0] }
func workerOf(s *Snapshot) *corev1.Pod   { return s.Pods[1] }

// set replaces the condition of that type.
func set(conditions *[]metav1.Condition, kind string, status metav1.ConditionStatus, reason, message string) {
	*conditions = slices.DeleteFunc(*conditions, func(c metav1.Condition) bool { return c.Type == kind })
	*conditions = append(*conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: ago(30 * time.Minute)})
}

func event(kind, name, reason, message string, seen time.Duration) corev1.Event {
	return corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: kind, Name: name}, Type: corev1.EventTypeWarning, Reason: reason, Message: message,
		LastTimestamp: ago(seen)}
}

// healthy is a RayCluster with all that a user can ask for, and a RayJob and a RayService that use it.
func healthy() *Snapshot {
	cluster := healthyCluster()
	s := &Snapshot{Now: now, Clusters: []*rayv1.RayCluster{cluster}, Jobs: []*rayv1.RayJob{healthyJob()}, Service: healthyService()}
	s.Pods = healthyPods(cluster)
	s.SubmitterJobs = []*batchv1.Job{{ObjectMeta: ownedBy("train", rayv1.KindRayJob, "train"), Status: batchv1.JobStatus{Active: 1}}}
	healthyNetwork(s)
	s.Secrets = Keys{"token": {"auth_token"}, "creds": {"password"}, "pull": {".dockerconfigjson"}}
	s.ConfigMaps = Keys{"settings": {"level"}}
	s.Claims = []*corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data", CreationTimestamp: ago(time.Hour)},
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: ptr.To("standard"),
			VolumeName: "pv-1"},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}}}
	s.StorageClasses = []*storagev1.StorageClass{{ObjectMeta: metav1.ObjectMeta{Name: "standard", Annotations: map[string]string{annotationDefaultClass: "true"}},
		Provisioner: "csi.example.com"}}
	s.Accounts = []*corev1.ServiceAccount{{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, {ObjectMeta: ownedBy("demo", rayv1.KindRayCluster, "demo")}}
	s.Roles = []*rbacv1.Role{{ObjectMeta: ownedBy("demo", rayv1.KindRayCluster, "demo"), Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch", "patch"}},
		{APIGroups: []string{"ray.io"}, Resources: []string{"rayclusters"}, Verbs: []string{"get", "patch"}}}}}
	s.Bindings = []*rbacv1.RoleBinding{{ObjectMeta: ownedBy("demo", rayv1.KindRayCluster, "demo"), RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "demo"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "demo"}}}}
	s.Operator = healthyOperator()
	s.Dashboards = map[string]Dashboard{"demo": {RayVersion: "2.52.0"}}
	return s
}

func ownedBy(name, kind, owner string) metav1.ObjectMeta {
	controller := true
	return metav1.ObjectMeta{Name: name, Namespace: "ns", CreationTimestamp: ago(time.Hour), Labels: map[string]string{rayv1.LabelCluster: "demo"},
		OwnerReferences: []metav1.OwnerReference{{Kind: kind, Name: owner, UID: "uid-demo", Controller: &controller}}}
}

func healthyCluster() *rayv1.RayCluster {
	created := ago(time.Hour)
	head := corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: "pull"}},
		Containers: []corev1.Container{{Name: "ray-head",
			Env: []corev1.EnvVar{{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: "creds"}, Key: "password"}}},
				{Name: "MAYBE", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
					LocalObjectReference: corev1.LocalObjectReference{Name: "absent"}, Key: "k", Optional: ptr.To(true)}}}},
			EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}}}},
		Volumes: []corev1.Volume{
			{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}},
			{Name: "all", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}, Items: []corev1.KeyToPath{{Key: "level"}}}}}}}},
		}}}
	cluster := &rayv1.RayCluster{ObjectMeta: metav1.ObjectMeta{Name: "demo", Namespace: "ns", UID: "uid-demo", Generation: 1, CreationTimestamp: created,
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl-client-side-apply", Operation: metav1.ManagedFieldsOperationUpdate, Time: &created,
			FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:workerGroupSpecs":{}}}`)}}}}
	cluster.Spec = rayv1.RayClusterSpec{EnableInTreeAutoscaling: ptr.To(true),
		AuthOptions:   &rayv1.AuthOptions{Mode: rayv1.AuthModeToken, SecretName: ptr.To("token")},
		HeadGroupSpec: rayv1.HeadGroupSpec{Template: head, EnableIngress: ptr.To(true), RayStartParams: map[string]string{}},
		WorkerGroupSpecs: []rayv1.WorkerGroupSpec{{GroupName: "small", Replicas: ptr.To[int32](1), MinReplicas: ptr.To[int32](0), MaxReplicas: ptr.To[int32](5),
			NumOfHosts: 1, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "ray-worker"}}}}}}}
	cluster.Status = rayv1.RayClusterStatus{State: rayv1.ClusterStateReady, ObservedGeneration: 1, Head: rayv1.HeadInfo{ServiceName: "demo-head-svc"}}
	for kind, status := range map[string]metav1.ConditionStatus{rayv1.ConditionValid: "True", rayv1.ConditionReady: "True", rayv1.ConditionReconciling: "False",
		rayv1.ConditionStalled: "False", rayv1.ConditionPodsHealthy: "True"} {
		set(&cluster.Status.Conditions, kind, status, "AllPodsReady", "")
	}
	return cluster
}

func healthyPods(cluster *rayv1.RayCluster) []*corev1.Pod {
	pod := func(name, nodeType, group, node string, containers ...string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: ownedBy(name, rayv1.KindRayCluster, "demo"), Spec: corev1.PodSpec{NodeName: node},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0." + node[len(node)-1:]}}
		maps.Copy(p.Labels, map[string]string{rayv1.LabelNodeType: nodeType, rayv1.LabelGroup: group})
		for _, kind := range []corev1.PodConditionType{corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled} {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: ago(time.Hour)})
		}
		for _, c := range containers {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: c})
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: c, Ready: true, State: runningSince(time.Hour)})
		}
		return p
	}
	head := pod("demo-head", rayv1.NodeTypeHead, rayv1.HeadGroupName, "node-1", "ray-head", "autoscaler")
	head.Spec.ServiceAccountName, head.Spec.Volumes = "demo", cluster.Spec.HeadGroupSpec.Template.Spec.Volumes
	return []*corev1.Pod{head, pod("demo-small-worker", rayv1.NodeTypeWorker, "small", "node-2", "ray-worker")}
}

// waits turns the worker into one that waits for the head.
func waits(s *Snapshot) {
	worker := workerOf(s)
	worker.Status.Phase = corev1.PodPending
	worker.Status.Conditions[0].Status, worker.Status.Conditions[1].Status = corev1.ConditionFalse, corev1.ConditionFalse
	worker.Spec.InitContainers = []corev1.Container{{Name: "wait-gcs-ready"}}
	worker.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "wait-gcs-ready", State: runningSince(3 * time.Minute)}}
	worker.Status.ContainerStatuses[0].State, worker.Status.ContainerStatuses[0].Ready = waiting("PodInitializing", ""), false
}

func healthyNetwork(s *Snapshot) {
	port := func(name string, number int32) corev1.ServicePort {
		return corev1.ServicePort{Name: name, Port: number, TargetPort: intstr.FromInt32(number)}
	}
	head := &corev1.Service{ObjectMeta: ownedBy("demo-head-svc", rayv1.KindRayCluster, "demo"), Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone,
		Selector: map[string]string{rayv1.LabelCluster: "demo", rayv1.LabelNodeType: rayv1.NodeTypeHead},
		Ports:    []corev1.ServicePort{port("gcs-server", 6379), port("dashboard", 8265), port("client", 10001), port("serve", 8000)}}}
	serve := &corev1.Service{ObjectMeta: ownedBy("chat-serve-svc", rayv1.KindRayService, "chat"), Spec: corev1.ServiceSpec{
		Selector: map[string]string{rayv1.LabelCluster: "demo", rayv1.LabelServe: "true"}, Ports: []corev1.ServicePort{port("serve", 8000)}}}
	delete(serve.Labels, rayv1.LabelCluster)
	s.Services = []*corev1.Service{head, serve}
	for _, service := range s.Services {
		s.Slices = append(s.Slices, &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Name: service.Name + "-x", Labels: map[string]string{discoveryv1.LabelServiceName: service.Name}},
			Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}}}})
	}
	s.IngressClasses = []*networkingv1.IngressClass{{ObjectMeta: metav1.ObjectMeta{Name: "nginx"}}}
	s.Ingresses = []*networkingv1.Ingress{{ObjectMeta: ownedBy("demo-head-ingress", rayv1.KindRayCluster, "demo"),
		Spec:   networkingv1.IngressSpec{IngressClassName: ptr.To("nginx")},
		Status: networkingv1.IngressStatus{LoadBalancer: networkingv1.IngressLoadBalancerStatus{Ingress: []networkingv1.IngressLoadBalancerIngress{{IP: "1.2.3.4"}}}}}}
	own := networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{rayv1.LabelCluster: "demo"}}}
	s.Policies = []*networkingv1.NetworkPolicy{{ObjectMeta: metav1.ObjectMeta{Name: "demo-only"}, Spec: networkingv1.NetworkPolicySpec{
		PodSelector: *own.PodSelector, PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
		Ingress: []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{own}}},
		Egress: []networkingv1.NetworkPolicyEgressRule{{To: []networkingv1.NetworkPolicyPeer{own}},
			{Ports: []networkingv1.NetworkPolicyPort{{Protocol: ptr.To(corev1.ProtocolUDP), Port: ptr.To(intstr.FromInt32(53))}}}}}}}
}

func healthyJob() *rayv1.RayJob {
	job := &rayv1.RayJob{ObjectMeta: metav1.ObjectMeta{Name: "train", Namespace: "ns", Generation: 1, CreationTimestamp: ago(time.Hour)},
		Spec: rayv1.RayJobSpec{ClusterSelector: map[string]string{rayv1.LabelCluster: "demo"}, Entrypoint: "python train.py"},
		Status: rayv1.RayJobStatus{ObservedGeneration: 1, RayClusterName: "demo", JobId: "train-1", JobStatus: rayv1.JobStatusRunning,
			JobDeploymentStatus: rayv1.JobDeploymentStatusRunning, Attempt: 1}}
	set(&job.Status.Conditions, rayv1.ConditionValid, "True", rayv1.ReasonSpecValid, "")
	set(&job.Status.Conditions, rayv1.ConditionReady, "True", rayv1.ReasonConfirmed, "")
	return job
}

func healthyService() *rayv1.RayService {
	service := &rayv1.RayService{ObjectMeta: metav1.ObjectMeta{Name: "chat", Namespace: "ns", Generation: 1, CreationTimestamp: ago(time.Hour)},
		Status: rayv1.RayServiceStatuses{ObservedGeneration: 1, ServiceStatus: rayv1.ServiceStatusRunning, NumServeEndpoints: 1,
			ActiveServiceStatus: rayv1.RayServiceStatus{RayClusterName: "demo", ApplicationStatuses: map[string]rayv1.AppStatus{
				"default": {Status: rayv1.AppStatusRunning}}}}}
	set(&service.Status.Conditions, rayv1.ConditionRayServiceReady, "True", rayv1.ReasonNonZeroServeEndpoints, "")
	set(&service.Status.Conditions, rayv1.ConditionUpgradeInProgress, "False", rayv1.ReasonNoPendingCluster, "")
	set(&service.Status.Conditions, rayv1.ConditionConfigApplied, "True", rayv1.ReasonConfigApplied, "")
	return service
}

func healthyOperator() Operator {
	operator := Operator{CRDFields: map[string][]string{}}
	operator.Deployments = []*appsv1.Deployment{{ObjectMeta: metav1.ObjectMeta{Name: "heliostat", Namespace: "ray-system", CreationTimestamp: ago(time.Hour)},
		Spec:   appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: "heliostat:1"}}}}},
		Status: appsv1.DeploymentStatus{AvailableReplicas: 2}}}
	renewed, acquired := metav1.NewMicroTime(now.Add(-2*time.Second)), metav1.NewMicroTime(now.Add(-time.Hour))
	operator.Leases = []*coordinationv1.Lease{{ObjectMeta: metav1.ObjectMeta{Name: "ray-operator-leader", Namespace: "ray-system",
		CreationTimestamp: ago(10 * time.Hour)}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: ptr.To("heliostat-1"), LeaseDurationSeconds: ptr.To[int32](15), RenewTime: &renewed, AcquireTime: &acquired, LeaseTransitions: ptr.To[int32](40)}}}
	for _, kind := range []string{rayv1.KindRayCluster, rayv1.KindRayJob, rayv1.KindRayService, rayv1.KindRayCronJob} {
		operator.CRDFields[kind] = specFields(kind)
	}
	return operator
}
