package faults

import (
	"context"
	"testing"
	"time"

	"github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

func yes() *bool { return ptr.To(true) }

// headPod edits the Pod template of the head.
func headPod(edit func(*corev1.PodSpec)) func(*rayv1.RayCluster) {
	return func(c *rayv1.RayCluster) { edit(&c.Spec.HeadGroupSpec.Template.Spec) }
}

// headContainer edits the first container of the head.
func headContainer(edit func(*corev1.Container)) func(*rayv1.RayCluster) {
	return headPod(func(pod *corev1.PodSpec) { edit(&pod.Containers[0]) })
}

// runs makes the head's container run a command instead of Ray.
func runs(command string) func(*rayv1.RayCluster) {
	return func(c *rayv1.RayCluster) {
		c.Annotations = map[string]string{rayv1.AnnotationOverwriteContainerCommand: "true"}
		head := &c.Spec.HeadGroupSpec.Template.Spec.Containers[0]
		head.Command, head.Args = []string{"/bin/bash", "-c"}, []string{command}
	}
}

// object returns a function that makes one object.
func object(build func(namespace string) client.Object) func(string) []client.Object {
	return func(namespace string) []client.Object { return []client.Object{build(namespace)} }
}

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func variable(source *corev1.EnvVarSource) func(*rayv1.RayCluster) {
	return headContainer(func(c *corev1.Container) { c.Env = []corev1.EnvVar{{Name: "X", ValueFrom: source}} })
}

func claimed(name string) func(*rayv1.RayCluster) {
	return headPod(func(pod *corev1.PodSpec) {
		pod.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}}
	})
}

func claim(edit func(*corev1.PersistentVolumeClaim)) func(string) []client.Object {
	return object(func(namespace string) client.Object {
		c := &corev1.PersistentVolumeClaim{ObjectMeta: named(namespace, "data"), Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{"storage": resource.MustParse("1Mi")}}}}
		edit(c)
		return c
	})
}

// OnNodes are the faults that need nodes: most of them keep Ray from starting.
func OnNodes() []Fault {
	var all []Fault
	for _, part := range [][]Fault{imageFaults(), schedulingFaults(), configurationFaults(), startFaults(), refusalFaults(), specFaults()} {
		all = append(all, part...)
	}
	return all
}

func imageFaults() []Fault {
	image := func(name string, policy corev1.PullPolicy) func(*rayv1.RayCluster) {
		return headContainer(func(c *corev1.Container) { c.Image, c.ImagePullPolicy = name, policy })
	}
	return []Fault{
		{Name: "an image name that is none", Want: "image-name-invalid", Edit: image("Not/A:Name:At/All", "")},
		{Name: "an image that may not be fetched", Want: "image-never-pulled", Edit: image("rayproject/ray:0.0.1", corev1.PullNever)},
		{Name: "a registry that does not answer", Want: "registry-unreachable", Edit: image("registry.invalid/ray:1", "")},
		{Name: "an image of an init container", Want: "image-name-invalid", Edit: headPod(func(pod *corev1.PodSpec) {
			pod.InitContainers = []corev1.Container{{Name: "prepare", Image: "UPPER:CASE:x"}}
		})},
		{Name: "an image of a worker group", Want: "image-never-pulled", Edit: func(c *rayv1.RayCluster) {
			group := SmallGroup("w", 1)
			group.Template.Spec.Containers[0].Image, group.Template.Spec.Containers[0].ImagePullPolicy = "rayproject/ray:0.0.1", corev1.PullNever
			c.Spec.WorkerGroupSpecs = []rayv1.WorkerGroupSpec{group}
		}},
	}
}

func schedulingFaults() []Fault {
	request := func(name corev1.ResourceName, quantity string) func(*rayv1.RayCluster) {
		return headContainer(func(c *corev1.Container) {
			c.Resources.Requests = corev1.ResourceList{name: resource.MustParse(quantity)}
			c.Resources.Limits = corev1.ResourceList{name: resource.MustParse(quantity)}
		})
	}
	return []Fault{
		{Name: "too many processors", Want: "insufficient-resources", Edit: request("cpu", "512")},
		{Name: "too much memory", Want: "insufficient-resources", Edit: request("memory", "9Ti")},
		{Name: "GPUs that no node has", Want: "insufficient-resources", Edit: request("nvidia.com/gpu", "8")},
		{Name: "a node selector that no node fits", Want: "selector-mismatch", Edit: headPod(func(pod *corev1.PodSpec) {
			pod.NodeSelector = map[string]string{"example.com/disk": "none"}
		})},
		{Name: "an affinity to Pods that are nowhere", Want: "topology-mismatch", Edit: headPod(func(pod *corev1.PodSpec) {
			pod.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"nobody": "has-it"}}}}}}
		})},
		{Name: "a scheduler that does not run", Want: "no-scheduler", Edit: headPod(func(pod *corev1.PodSpec) { pod.SchedulerName = "volcano" })},
		{Name: "a gate that nobody opens", Want: "scheduling-gated", Edit: headPod(func(pod *corev1.PodSpec) {
			pod.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/queue"}}
		})},
	}
}

func configurationFaults() []Fault {
	secret := func(namespace string) client.Object {
		return &corev1.Secret{ObjectMeta: named(namespace, "there"), StringData: map[string]string{"other": "x"}}
	}
	config := func(namespace string) client.Object {
		return &corev1.ConfigMap{ObjectMeta: named(namespace, "there"), Data: map[string]string{"other": "x"}}
	}
	ref := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	return []Fault{
		{Name: "a Secret for a variable", Want: "secret-missing", Edit: variable(&corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: ref("nobody"), Key: "k"}})},
		{Name: "a Secret for a volume", Want: "secret-missing", Edit: headPod(func(pod *corev1.PodSpec) {
			pod.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "nobody"}}}}
		})},
		{Name: "a ConfigMap for a variable", Want: "configmap-missing", Edit: variable(&corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: ref("nobody"), Key: "k"}})},
		{Name: "a ConfigMap for a volume", Want: "configmap-missing", Edit: headPod(func(pod *corev1.PodSpec) {
			pod.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: ref("nobody")}}}}
		})},
		{Name: "a key of a Secret", Want: "key-missing", With: object(secret),
			Edit: variable(&corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: ref("there"), Key: "k"}})},
		{Name: "a key of a ConfigMap", Want: "key-missing", With: object(config),
			Edit: variable(&corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: ref("there"), Key: "k"}})},
		{Name: "a claim that is not there", Want: "claim-missing", Edit: claimed("data")},
		{Name: "a claim of a class that is not there", Want: "claim-no-class", Edit: claimed("data"),
			With: claim(func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = ptr.To("nobody") })},
		{Name: "a claim that no volume fits", Want: "claim-pending", Edit: claimed("data"),
			With: claim(func(c *corev1.PersistentVolumeClaim) {
				c.Spec.Resources.Requests["storage"] = resource.MustParse("900Ti")
			})},
		{Name: "a service account", Want: "service-account-missing", Edit: headPod(func(pod *corev1.PodSpec) { pod.ServiceAccountName = "nobody" })},
		{Name: "a user that the image does not have", Want: "user-refused", Edit: headPod(func(pod *corev1.PodSpec) {
			pod.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: yes(), RunAsUser: ptr.To(int64(0))}
		})},
	}
}

func startFaults() []Fault {
	return []Fault{
		{Name: "too little memory", Want: "oom-killed", Edit: func(c *rayv1.RayCluster) {
			runs("python3 -c 'x = bytearray(512 << 20); import time; time.sleep(60)'")(c)
			c.Spec.HeadGroupSpec.Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"memory": resource.MustParse("64Mi")}
		}},
		{Name: "an image without Ray", Want: "ray-not-in-image", Edit: headContainer(func(c *corev1.Container) {
			c.Env = []corev1.EnvVar{{Name: "PATH", Value: "/usr/bin:/bin"}}
		})},
		{Name: "a program that is not there", Want: "command-not-in-image", Edit: runs("nonsense --now")},
		{Name: "a parameter that Ray does not know", Want: "start-params-bad", Edit: func(c *rayv1.RayCluster) {
			c.Spec.HeadGroupSpec.RayStartParams["nonsense"] = "1"
		}},
		{Name: "a command that ends", Want: "container-exits", Edit: runs("echo the reason; exit 3")},
		{Name: "a container beside Ray that ends", Want: "container-exits", Edit: headPod(func(pod *corev1.PodSpec) {
			pod.Containers = append(pod.Containers, corev1.Container{Name: "beside", Image: RayImage, Command: []string{"/bin/bash", "-c", "exit 4"}})
		})},
		{Name: "a probe that fails", Want: "probe-failing", Edit: func(c *rayv1.RayCluster) {
			runs("sleep 3600")(c)
			c.Spec.HeadGroupSpec.Template.Spec.Containers[0].ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
				Exec: &corev1.ExecAction{Command: []string{"/bin/false"}}}}
		}},
		{Name: "an init container that waits", Want: "init-waits", Edit: headPod(func(pod *corev1.PodSpec) {
			pod.InitContainers = []corev1.Container{{Name: "prepare", Image: RayImage, Command: []string{"/bin/bash", "-c", "sleep 3600"}}}
		})},
		{Name: "an init container that fails", Want: "container-exits", Edit: headPod(func(pod *corev1.PodSpec) {
			pod.InitContainers = []corev1.Container{{Name: "prepare", Image: RayImage, Command: []string{"/bin/bash", "-c", "exit 5"}}}
		})},
		{Name: "a port that is taken", Want: "port-in-use", Edit: runs(
			"python3 -c 'import socket; a = socket.socket(); a.bind((\"\", 7777)); b = socket.socket(); b.bind((\"\", 7777))'")},
		{Name: "a finalizer that nobody removes", Want: "stuck-terminating", Edit: func(c *rayv1.RayCluster) {
			runs("sleep 3600")(c)
			c.Spec.HeadGroupSpec.Template.Finalizers = nil
		}, Then: holdHead, Also: []string{"probe-failing"}},
	}
}

// holdHead deletes the head Pod while a finalizer that nobody removes holds it. The finalizer goes with the test.
func holdHead(t *testing.T, c client.Client, cluster *rayv1.RayCluster) {
	g := gomega.NewWithT(t)
	pods := &corev1.PodList{}
	g.Eventually(func() int {
		err := c.List(t.Context(), pods, client.InNamespace(cluster.Namespace), client.MatchingLabels{rayv1.LabelCluster: cluster.Name})
		g.Expect(err).ToNot(gomega.HaveOccurred())
		return len(pods.Items)
	}, patience, time.Second).Should(gomega.Equal(1))
	head := &pods.Items[0]
	held := func(finalizers ...string) {
		g.Eventually(func() error {
			if err := c.Get(context.Background(), client.ObjectKeyFromObject(head), head); err != nil {
				return client.IgnoreNotFound(err)
			}
			before := head.DeepCopy()
			head.Finalizers = finalizers
			return c.Patch(context.Background(), head, client.MergeFrom(before))
		}, patience, time.Second).Should(gomega.Succeed())
	}
	held("example.com/hold")
	t.Cleanup(func() { held() })
	g.Expect(c.Delete(t.Context(), head, client.GracePeriodSeconds(1))).To(gomega.Succeed())
}

func refusalFaults() []Fault {
	return []Fault{
		{Name: "a quota", Want: "quota-exceeded", Refuses: true, With: object(func(namespace string) client.Object {
			return &corev1.ResourceQuota{ObjectMeta: named(namespace, "small"), Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"pods": resource.MustParse("0")}}}
		})},
		{Name: "a limit range", Want: "limit-range", Refuses: true, With: object(func(namespace string) client.Object {
			return &corev1.LimitRange{ObjectMeta: named(namespace, "small"), Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
				Type: corev1.LimitTypeContainer, Min: corev1.ResourceList{"cpu": resource.MustParse("1")}}}}}
		})},
		{Name: "a limit range whose default is too low", Want: "limit-range", Refuses: true, With: object(func(namespace string) client.Object {
			return &corev1.LimitRange{ObjectMeta: named(namespace, "small"), Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
				Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{"cpu": resource.MustParse("10m")}}}}}
		})},
		{Name: "a priority class", Want: "priority-class-missing", Edit: headPod(func(pod *corev1.PodSpec) { pod.PriorityClassName = "nobody" })},
		{Name: "a webhook that does not answer", Want: "webhook-unreachable", Refuses: true, With: func(namespace string) []client.Object {
			return []client.Object{&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: namespace},
				Webhooks: []admissionregistrationv1.ValidatingWebhook{{
					Name: "gone.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone),
					TimeoutSeconds:    ptr.To(int32(2)),
					ClientConfig:      admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: namespace, Name: "gone"}},
					NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
					Rules: []admissionregistrationv1.RuleWithOperations{{Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
						Rule: admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}}},
				}}}}
		}},
		{Name: "a policy that refuses", Want: "admission-denied", Refuses: true, With: policy},
		{Name: "a lower priority than others", Want: "insufficient-resources", With: func(namespace string) []client.Object {
			return []client.Object{&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Value: -10}}
		}, Edit: func(c *rayv1.RayCluster) {
			c.Spec.HeadGroupSpec.Template.Spec.PriorityClassName = c.Namespace
			c.Spec.HeadGroupSpec.Template.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("512")
		}},
	}
}

// policy refuses every Pod of one namespace.
func policy(namespace string) []client.Object {
	return []client.Object{
		&admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: ptr.To(admissionregistrationv1.Fail),
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule: admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}}}}},
			Validations: []admissionregistrationv1.Validation{{Expression: "false", Message: "no Pods here"}}}},
		&admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: namespace, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			MatchResources: &admissionregistrationv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}}}}},
	}
}

func specFaults() []Fault {
	return []Fault{
		{Name: "a suspended group beside the autoscaler", Want: "spec-invalid", Edit: func(c *rayv1.RayCluster) {
			group := SmallGroup("w", 1)
			group.Suspend = yes()
			c.Spec.EnableInTreeAutoscaling, c.Spec.WorkerGroupSpecs = yes(), []rayv1.WorkerGroupSpec{group}
		}},
		{Name: "a Service of somebody else", Want: "name-collision", With: object(func(namespace string) client.Object {
			return &corev1.Service{ObjectMeta: named(namespace, "demo-head-svc"), Spec: corev1.ServiceSpec{Selector: map[string]string{"a": "b"}, Ports: []corev1.ServicePort{{Port: 80}}}}
		}), Edit: runs("sleep 3600"), Also: []string{"probe-failing"}},
		{Name: "another controller", Want: "managed-by-other", Edit: func(c *rayv1.RayCluster) { c.Spec.ManagedBy = ptr.To("kueue.x-k8s.io/multikueue") }},
		{Name: "suspended", Want: "suspended", Edit: func(c *rayv1.RayCluster) { c.Spec.Suspend = yes() }},
		{Name: "a dashboard that only the head reaches", Want: "dashboard-localhost", Edit: func(c *rayv1.RayCluster) {
			runs("sleep 3600")(c)
			c.Spec.HeadGroupSpec.RayStartParams["dashboard-host"] = "127.0.0.1"
		}, Also: []string{"probe-failing"}},
		{Name: "a dashboard that everybody reaches", Want: "dashboard-exposed", Edit: func(c *rayv1.RayCluster) {
			runs("sleep 3600")(c)
			c.Spec.HeadGroupSpec.ServiceType = corev1.ServiceTypeNodePort
		}, Also: []string{"probe-failing", "service-no-endpoints"}},
		{Name: "an Ingress that nobody serves", Want: "ingress-no-class", Edit: func(c *rayv1.RayCluster) {
			runs("sleep 3600")(c)
			c.Spec.HeadGroupSpec.EnableIngress = yes()
		}, Also: []string{"probe-failing", "dashboard-exposed", "ingress-no-address"}},
	}
}
