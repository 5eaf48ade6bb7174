package chart

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	deploymentName = "Deployment/ray-system/kuberay-operator"
	serviceName    = "Service/ray-system/kuberay-operator"
	budgetName     = "PodDisruptionBudget/ray-system/kuberay-operator"
	configName     = "ConfigMap/ray-system/kuberay-operator-config"
	monitorName    = "ServiceMonitor/ray-system/kuberay-operator"
)

// userRoles are the roles for people.
func userRoles() []string {
	return []string{
		"ClusterRole/raycluster-editor-role", "ClusterRole/raycluster-viewer-role",
		"ClusterRole/raycronjob-editor-role", "ClusterRole/raycronjob-viewer-role",
		"ClusterRole/rayjob-editor-role", "ClusterRole/rayjob-viewer-role",
		"ClusterRole/rayservice-editor-role", "ClusterRole/rayservice-viewer-role",
	}
}

func TestObjectsByMode(t *testing.T) {
	leaderElection := []string{
		"Role/ray-system/kuberay-operator-leader-election",
		"RoleBinding/ray-system/kuberay-operator-leader-election",
	}
	clusterWide := append([]string{"ClusterRole/kuberay-operator", "ClusterRoleBinding/kuberay-operator"}, userRoles()...)
	fence := []string{
		"ValidatingAdmissionPolicy/ray-system-kuberay-operator-fence",
		"ValidatingAdmissionPolicy/ray-system-kuberay-operator-holder",
		"ValidatingAdmissionPolicyBinding/ray-system-kuberay-operator-fence-clusters",
		"ValidatingAdmissionPolicyBinding/ray-system-kuberay-operator-fence-headless",
		"ValidatingAdmissionPolicyBinding/ray-system-kuberay-operator-fence-origins",
		"ValidatingAdmissionPolicyBinding/ray-system-kuberay-operator-fence-ray",
		"ValidatingAdmissionPolicyBinding/ray-system-kuberay-operator-holder",
	}
	fenceRights := []string{"ClusterRole/ray-system-kuberay-operator-fence", "ClusterRoleBinding/ray-system-kuberay-operator-fence"}
	always := []string{deploymentName, serviceName, budgetName, "ServiceAccount/ray-system/kuberay-operator"}
	cases := map[string]struct {
		values string
		want   [][]string
	}{
		"given nothing, rights are cluster-wide":                      {want: [][]string{always, leaderElection, clusterWide, fence, fenceRights}},
		"given namespaces to watch only, rights stay cluster-wide":    {values: "watchNamespace: [a, b]", want: [][]string{always, leaderElection, clusterWide, fence, fenceRights}},
		"given a single namespace, rights are those of the release's": {values: "singleNamespaceInstall: true", want: [][]string{always, leaderElection, {"Role/ray-system/kuberay-operator", "RoleBinding/ray-system/kuberay-operator"}}},
		"given a single-namespace install and two namespaces, each has a Role": {
			values: "{singleNamespaceInstall: true, watchNamespace: [a, b]}",
			want: [][]string{always, leaderElection, {
				"Role/a/kuberay-operator", "Role/b/kuberay-operator",
				"RoleBinding/a/kuberay-operator", "RoleBinding/b/kuberay-operator",
			}},
		},
		"given no Roles for watched namespaces, only leader election has one": {
			values: "{singleNamespaceInstall: true, crNamespacedRbacEnable: false}", want: [][]string{always, leaderElection},
		},
		"given no RBAC, there is none":            {values: "rbacEnable: false", want: [][]string{always, fence}},
		"given fencing is off, there is no fence": {values: "fencing: off", want: [][]string{always, leaderElection, clusterWide}},
		"given no election, there is no fence":    {values: "leaderElectionEnabled: false", want: [][]string{always, leaderElection, clusterWide}},
		"given a single namespace and a fence that is required, the rights on the Holder are cluster-wide": {
			values: "{singleNamespaceInstall: true, fencing: required}",
			want:   [][]string{always, leaderElection, {"Role/ray-system/kuberay-operator", "RoleBinding/ray-system/kuberay-operator"}, fence, fenceRights},
		},
		"given no service account, it is not made":   {values: "{rbacEnable: false, fencing: off, serviceAccount: {create: false}}", want: [][]string{always[:3]}},
		"given one replica, there is no budget":      {values: "{rbacEnable: false, fencing: off, replicas: 1}", want: [][]string{always[:2], always[3:]}},
		"given no budget, there is none":             {values: "{rbacEnable: false, fencing: off, podDisruptionBudget: {enabled: false}}", want: [][]string{always[:2], always[3:]}},
		"given ConfigMap mode, there is a ConfigMap": {values: "{rbacEnable: false, fencing: off, configuration: {enabled: true}}", want: [][]string{always, {configName}}},
		"given a ServiceMonitor, it is made":         {values: "{rbacEnable: false, fencing: off, metrics: {serviceMonitor: {enabled: true}}}", want: [][]string{always, {monitorName}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := map[string]bool{}
			for _, list := range tc.want {
				for _, object := range list {
					want[object] = true
				}
			}
			got := map[string]bool{}
			for _, object := range render(t, tc.values).names() {
				got[object] = true
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("objects (-want +got):\n%s", d)
			}
		})
	}
}

// TestToolsFindTheOperator holds what programs written for KubeRay look for.
func TestToolsFindTheOperator(t *testing.T) {
	r := render(t, "image: {tag: v9}")
	selector := map[string]string{
		"app.kubernetes.io/name": "kuberay-operator", "app.kubernetes.io/instance": releaseName,
	}
	objectLabels := map[string]string{
		"app.kubernetes.io/name": "kuberay-operator", "app.kubernetes.io/instance": releaseName,
		"app.kubernetes.io/managed-by": "Helm", "app.kubernetes.io/version": "0.1.0", "helm.sh/chart": "heliostat-0.1.0",
	}
	podLabels := map[string]string{
		"app.kubernetes.io/name": "kuberay-operator", "app.kubernetes.io/instance": releaseName,
		"app.kubernetes.io/component": "kuberay-operator",
	}
	for _, o := range r.objects {
		if d := cmp.Diff(objectLabels, o.GetLabels()); d != "" {
			t.Errorf("labels of %s %s (-want +got):\n%s", o.GetKind(), o.GetName(), d)
		}
	}

	d := r.deployment(t)
	if diff := cmp.Diff(selector, d.Spec.Selector.MatchLabels); diff != "" {
		t.Errorf("selector of the Deployment (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(podLabels, d.Spec.Template.Labels); diff != "" {
		t.Errorf("labels of the Pods (-want +got):\n%s", diff)
	}
	c := r.container(t)
	if c.Name != "kuberay-operator" || c.Image != "docker.io/heliostat/operator:v9" || c.Command[0] != "/manager" {
		t.Errorf("container %s, image %s, command %v", c.Name, c.Image, c.Command)
	}
	wantPorts := []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}}
	if diff := cmp.Diff(wantPorts, c.Ports); diff != "" {
		t.Errorf("ports of the container (-want +got):\n%s", diff)
	}

	var service corev1.Service
	r.into(t, serviceName, &service)
	want := corev1.ServiceSpec{
		Type: corev1.ServiceTypeClusterIP, Selector: selector,
		Ports: []corev1.ServicePort{{Name: "http", Port: 8080, TargetPort: intstr.FromString("http"), Protocol: corev1.ProtocolTCP}},
	}
	if diff := cmp.Diff(want, service.Spec); diff != "" {
		t.Errorf("Service (-want +got):\n%s", diff)
	}
}

func TestNamesFollowTheValues(t *testing.T) {
	r := render(t, `{nameOverride: nn, fullnameOverride: f, componentOverride: c, serviceAccount: {name: sa},
		labels: {team: x}, annotations: {note: yy}, configuration: {enabled: true}, image: {repository: r/o}}`)
	d := r.deployment(t)
	pod := d.Spec.Template
	got := []string{
		d.Name, d.Labels["app.kubernetes.io/name"], d.Labels["team"], pod.Labels["app.kubernetes.io/name"],
		pod.Labels["app.kubernetes.io/component"], pod.Labels["team"], pod.Annotations["note"], pod.Spec.ServiceAccountName,
		pod.Spec.Containers[0].Name, pod.Spec.Containers[0].Image, pod.Spec.Volumes[0].ConfigMap.Name,
	}
	want := []string{"f", "nn", "x", "nn", "c", "x", "yy", "sa", "kuberay-operator", "r/o:0.1.0", "f-config"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, name := range []string{
		"Service/ray-system/f", "ServiceAccount/ray-system/sa", "ConfigMap/ray-system/f-config", "ClusterRole/f",
		"ClusterRoleBinding/f", "Role/ray-system/f-leader-election", "RoleBinding/ray-system/f-leader-election",
	} {
		if !r.has(name) {
			t.Errorf("%s is missing", name)
		}
	}
}

func TestTheOperatorSurvivesDrainsAndUpgrades(t *testing.T) {
	r := render(t, "")
	d := r.deployment(t)
	if *d.Spec.Replicas != 2 {
		t.Errorf("replicas %d, want 2", *d.Spec.Replicas)
	}
	one, none := intstr.FromInt32(1), intstr.FromInt32(0)
	strategy := appsv1.DeploymentStrategy{
		Type:          appsv1.RollingUpdateDeploymentStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &one, MaxUnavailable: &none},
	}
	if diff := cmp.Diff(strategy, d.Spec.Strategy); diff != "" {
		t.Errorf("strategy (-want +got):\n%s", diff)
	}
	pod := d.Spec.Template.Spec
	if *pod.TerminationGracePeriodSeconds != 30 {
		t.Errorf("grace period %d, want 30", *pod.TerminationGracePeriodSeconds)
	}
	spread := pod.TopologySpreadConstraints
	if len(spread) != 1 || spread[0].TopologyKey != "kubernetes.io/hostname" ||
		spread[0].WhenUnsatisfiable != corev1.ScheduleAnyway ||
		!cmp.Equal(spread[0].LabelSelector, d.Spec.Selector) {
		t.Errorf("topology spread: %+v", spread)
	}
	c := r.container(t)
	if p := c.LivenessProbe.HTTPGet; p.Path != "/healthz" || p.Port != intstr.FromInt32(8082) {
		t.Errorf("liveness probe: %+v", p)
	}
	if p := c.ReadinessProbe.HTTPGet; p.Path != "/readyz" || p.Port != intstr.FromInt32(8082) {
		t.Errorf("readiness probe: %+v", p)
	}
	s := c.SecurityContext
	if !*s.RunAsNonRoot || !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation ||
		s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault || !cmp.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) {
		t.Errorf("security context: %+v", s)
	}

	var budget policyv1.PodDisruptionBudget
	r.into(t, budgetName, &budget)
	if *budget.Spec.MinAvailable != one || !cmp.Equal(budget.Spec.Selector, d.Spec.Selector) {
		t.Errorf("budget: %+v", budget.Spec)
	}
}

func TestPlacementFollowsTheValues(t *testing.T) {
	r := render(t, `{replicas: 3, nodeSelector: {disk: ssd}, tolerations: [{operator: Exists}], priorityClassName: high,
		affinity: {nodeAffinity: {}}, imagePullSecrets: [{name: s}], podSecurityContext: {fsGroup: 1},
		topologySpread: {enabled: false}, podDisruptionBudget: {minAvailable: 50%}, env: [{name: A, value: b}],
		resources: {limits: {cpu: 1}}, livenessProbe: {periodSeconds: 9}}`)
	pod := r.deployment(t).Spec.Template.Spec
	c := r.container(t)
	if pod.NodeSelector["disk"] != "ssd" || len(pod.Tolerations) != 1 || pod.PriorityClassName != "high" ||
		pod.Affinity == nil || pod.ImagePullSecrets[0].Name != "s" || *pod.SecurityContext.FSGroup != 1 ||
		len(pod.TopologySpreadConstraints) != 0 {
		t.Errorf("Pod: %+v", pod)
	}
	if c.Env[0].Name != "A" || c.Resources.Limits.Cpu().String() != "1" || c.Resources.Limits.Memory().String() != "512Mi" ||
		c.LivenessProbe.PeriodSeconds != 9 || c.LivenessProbe.FailureThreshold != 5 {
		t.Errorf("container: %+v", c)
	}
	var budget policyv1.PodDisruptionBudget
	r.into(t, budgetName, &budget)
	if budget.Spec.MinAvailable.String() != "50%" {
		t.Errorf("budget: %v, want 50%%", budget.Spec.MinAvailable)
	}
}

func TestLogFileHasAVolume(t *testing.T) {
	if volumes := render(t, "logging: {baseDir: /logs}").deployment(t).Spec.Template.Spec.Volumes; len(volumes) != 0 {
		t.Errorf("without a file name: volumes %v, want none", volumes)
	}
	r := render(t, "logging: {baseDir: /logs/, fileName: x.log, sizeLimit: 1Gi}")
	volumes := r.deployment(t).Spec.Template.Spec.Volumes
	if len(volumes) != 1 || volumes[0].Name != "kuberay-logs" || volumes[0].EmptyDir.SizeLimit.String() != "1Gi" {
		t.Errorf("volumes: %+v", volumes)
	}
	mounts := r.container(t).VolumeMounts
	if len(mounts) != 1 || mounts[0].Name != "kuberay-logs" || mounts[0].MountPath != "/logs/" || mounts[0].ReadOnly {
		t.Errorf("mounts: %+v", mounts)
	}
}

func TestAChangeOfTheConfigMapRollsThePods(t *testing.T) {
	checksum := func(values string) string {
		return render(t, values).deployment(t).Spec.Template.Annotations["checksum/config"]
	}
	first := checksum("configuration: {enabled: true}")
	same := checksum("{configuration: {enabled: true}, replicas: 3}")
	other := checksum("{configuration: {enabled: true, defaultPodLabels: {a: b}}}")
	if first == "" || first != same || first == other {
		t.Errorf("checksums: %q, with the same file %q, with another file %q", first, same, other)
	}
	if got := checksum(""); got != "" {
		t.Errorf("without ConfigMap mode: checksum %q, want none", got)
	}
}

func TestServiceMonitor(t *testing.T) {
	r := render(t, `metrics: {serviceMonitor: {enabled: true, namespace: mon, interval: 1m, additionalLabels: {release: p}}}`)
	var got struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name, Namespace string
			Labels          map[string]string
		} `json:"metadata"`
		Spec map[string]any `json:"spec"`
	}
	r.into(t, strings.Replace(monitorName, releaseNamespace, "mon", 1), &got)
	if got.Metadata.Labels["release"] != "p" {
		t.Errorf("labels: %v", got.Metadata.Labels)
	}
	want := map[string]any{
		"namespaceSelector": map[string]any{"matchNames": []any{releaseNamespace}},
		"selector":          map[string]any{"matchLabels": map[string]any{"app.kubernetes.io/name": "kuberay-operator"}},
		"endpoints": []any{map[string]any{
			"port": "http", "path": "/metrics", "interval": "1m", "honorLabels": true,
		}},
	}
	if diff := cmp.Diff(want, got.Spec); diff != "" {
		t.Errorf("ServiceMonitor (-want +got):\n%s", diff)
	}
}

func TestNotes(t *testing.T) {
	cases := map[string]struct {
		values    string
		want, not []string
	}{
		"given nothing, all namespaces are named": {
			want: []string{"ray-system", "all namespaces", "rollout status deployment/kuberay-operator"}, not: []string{"WARNING", "No roles"},
		},
		"given namespaces, they are named":              {values: "watchNamespace: [a, b]", want: []string{"a,b"}, not: []string{"all namespaces."}},
		"given no RBAC, the notes say what to do":       {values: "rbacEnable: false", want: []string{"No roles were made"}},
		"given two replicas and no election, a warning": {values: "leaderElectionEnabled: false", want: []string{"WARNING"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			notes := render(t, tc.values).notes
			for _, piece := range tc.want {
				if !strings.Contains(notes, piece) {
					t.Errorf("%q is missing in:\n%s", piece, notes)
				}
			}
			for _, piece := range tc.not {
				if strings.Contains(notes, piece) {
					t.Errorf("%q must not stand in:\n%s", piece, notes)
				}
			}
		})
	}
}
