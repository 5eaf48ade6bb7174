//go:build e2e

package e2e

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

func background() context.Context { return context.Background() }

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

// faults is the catalogue.
func faults() []fault {
	var all []fault
	for _, part := range [][]fault{imageFaults(), schedulingFaults(), configurationFaults(), startFaults(), refusalFaults(), specFaults()} {
		all = append(all, part...)
	}
	return all
}

func imageFaults() []fault {
	image := func(name string, policy corev1.PullPolicy) func(*rayv1.RayCluster) {
		return headContainer(func(c *corev1.Container) { c.Image, c.ImagePullPolicy = name, policy })
	}
	return []fault{
		{name: "an image name that is none", want: "image-name-invalid", edit: image("Not/A:Name:At/All", "")},
		{name: "an image that may not be fetched", want: "image-never-pulled", edit: image("rayproject/ray:0.0.1", corev1.PullNever)},
		{name: "a registry that does not answer", want: "registry-unreachable", edit: image("registry.invalid/ray:1", "")},
		{name: "an image of an init container", want: "image-name-invalid", edit: headPod(func(pod *corev1.PodSpec) {
			pod.InitContainers = []corev1.Container{{Name: "prepare", Image: "UPPER:CASE:x"}}
		})},
		{name: "an image of a worker group", want: "image-never-pulled", edit: func(c *rayv1.RayCluster) {
			group := smallGroup("w", 1)
			group.Template.Spec.Containers[0].Image, group.Template.Spec.Containers[0].ImagePullPolicy = "rayproject/ray:0.0.1", corev1.PullNever
			c.Spec.WorkerGroupSpecs = []rayv1.WorkerGroupSpec{group}
		}},
	}
}

func schedulingFaults() []fault {
	request := func(name corev1.ResourceName, quantity string) func(*rayv1.RayCluster) {
		return headContainer(func(c *corev1.Container) {
			c.Resources.Requests = corev1.ResourceList{name: resource.MustParse(quantity)}
			c.Resources.Limits = corev1.ResourceList{name: resource.MustParse(quantity)}
		})
	}
	return []fault{
		{name: "too many processors", want: "insufficient-resources", edit: request("cpu", "512")},
		{name: "too much memory", want: "insufficient-resources", edit: request("memory", "9Ti")},
		{name: "GPUs that no node has", want: "insufficient-resources", edit: request("nvidia.com/gpu", "8")},
		{name: "a node selector that no node fits", want: "selector-mismatch", edit: headPod(func(pod *corev1.PodSpec) {
			pod.NodeSelector = map[string]string{"example.com/disk": "none"}
		})},
		{name: "an affinity to Pods that are nowhere", want: "topology-mismatch", edit: headPod(func(pod *corev1.PodSpec) {
			pod.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"nobody": "has-it"}}}}}}
		})},
		{name: "a scheduler that does not run", want: "no-scheduler", edit: headPod(func(pod *corev1.PodSpec) { pod.SchedulerName = "volcano" })},
		{name: "a gate that nobody opens", want: "scheduling-gated", edit: headPod(func(pod *corev1.PodSpec) {
			pod.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/queue"}}
		})},
	}
}

func configurationFaults() []fault {
	secret := func(namespace string) client.Object {
		return &corev1.Secret{ObjectMeta: named(namespace, "there"), StringData: map[string]string{"other": "x"}}
	}
	config := func(namespace string) client.Object {
		return &corev1.ConfigMap{ObjectMeta: named(namespace, "there"), Data: map[string]string{"other": "x"}}
	}
	ref := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	return []fault{
		{name: "a Secret for a variable", want: "secret-missing", edit: variable(&corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: ref("nobody"), Key: "k"}})},
		{name: "a Secret for a volume", want: "secret-missing", edit: headPod(func(pod *corev1.PodSpec) {
			pod.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "nobody"}}}}
		})},
		{name: "a ConfigMap for a variable", want: "configmap-missing", edit: variable(&corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: ref("nobody"), Key: "k"}})},
		{name: "a ConfigMap for a volume", want: "configmap-missing", edit: headPod(func(pod *corev1.PodSpec) {
			pod.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: ref("nobody")}}}}
		})},
		{name: "a key of a Secret", want: "key-missing", with: object(secret),
			edit: variable(&corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: ref("there"), Key: "k"}})},
		{name: "a key of a ConfigMap", want: "key-missing", with: object(config),
			edit: variable(&corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: ref("there"), Key: "k"}})},
		{name: "a claim that is not there", want: "claim-missing", edit: claimed("data")},
		{name: "a claim of a class that is not there", want: "claim-no-class", edit: claimed("data"),
			with: claim(func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = ptr.To("nobody") })},
		{name: "a claim that no volume fits", want: "claim-pending", edit: claimed("data"),
			with: claim(func(c *corev1.PersistentVolumeClaim) {
				c.Spec.Resources.Requests["storage"] = resource.MustParse("900Ti")
			})},
		{name: "a service account", want: "service-account-missing", edit: headPod(func(pod *corev1.PodSpec) { pod.ServiceAccountName = "nobody" })},
		{name: "a user that the image does not have", want: "user-refused", edit: headPod(func(pod *corev1.PodSpec) {
			pod.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: yes(), RunAsUser: ptr.To(int64(0))}
		})},
	}
}

func startFaults() []fault {
	return []fault{
		{name: "too little memory", want: "oom-killed", edit: func(c *rayv1.RayCluster) {
			runs("python3 -c 'x = bytearray(512 << 20); import time; time.sleep(60)'")(c)
			c.Spec.HeadGroupSpec.Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"memory": resource.MustParse("64Mi")}
		}},
		{name: "an image without Ray", want: "ray-not-in-image", edit: headContainer(func(c *corev1.Container) {
			c.Env = []corev1.EnvVar{{Name: "PATH", Value: "/usr/bin:/bin"}}
		})},
		{name: "a program that is not there", want: "command-not-in-image", edit: runs("nonsense --now")},
		{name: "a parameter that Ray does not know", want: "start-params-bad", edit: func(c *rayv1.RayCluster) {
			c.Spec.HeadGroupSpec.RayStartParams["nonsense"] = "1"
		}},
		{name: "a command that ends", want: "container-exits", edit: runs("echo the reason; exit 3")},
		{name: "a container beside Ray that ends", want: "container-exits", edit: headPod(func(pod *corev1.PodSpec) {
			pod.Containers = append(pod.Containers, corev1.Container{Name: "beside", Image: rayImage, Command: []string{"/bin/bash", "-c", "exit 4"}})
		})},
		{name: "a probe that fails", want: "probe-failing", edit: func(c *rayv1.RayCluster) {
			runs("sleep 3600")(c)
			c.Spec.HeadGroupSpec.Template.Spec.Containers[0].ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
				Exec: &corev1.ExecAction{Command: []string{"/bin/false"}}}}
		}},
		{name: "an init container that waits", want: "init-waits", edit: headPod(func(pod *corev1.PodSpec) {
			pod.InitContainers = []corev1.Container{{Name: "prepare", Image: rayImage, Command: []string{"/bin/bash", "-c", "sleep 3600"}}}
		})},
		{name: "an init container that fails", want: "container-exits", edit: headPod(func(pod *corev1.PodSpec) {
			pod.InitContainers = []corev1.Container{{Name: "prepare", Image: rayImage, Command: []string{"/bin/bash", "-c", "exit 5"}}}
		})},
		{name: "a port that is taken", want: "port-in-use", edit: runs(
			"python3 -c 'import socket; a = socket.socket(); a.bind((\"\", 7777)); b = socket.socket(); b.bind((\"\", 7777))'")},
		{name: "a finalizer that nobody removes", want: "stuck-terminating", edit: func(c *rayv1.RayCluster) {
			runs("sleep 3600")(c)
			c.Spec.HeadGroupSpec.Template.Finalizers = nil
		}, then: holdHead, also: []string{"probe-failing"}},
	}
}

// holdHead deletes the head Pod while a finalizer that nobody removes holds it. The finalizer goes with the test.
func holdHead(t *testing.T, w *world, cluster string) {
	g := NewWithT(t)
	var head *corev1.Pod
	g.Eventually(func() int {
		pods := w.pods(t, client.MatchingLabels{rayv1.LabelCluster: cluster})
		if len(pods) == 1 {
			head = &pods[0]
		}
		return len(pods)
	}, podPatience, time.Second).Should(Equal(1))
	held := func(finalizers ...string) {
		g.Eventually(func() error {
			if err := w.Get(background(), client.ObjectKeyFromObject(head), head); err != nil {
				return client.IgnoreNotFound(err)
			}
			before := head.DeepCopy()
			head.Finalizers = finalizers
			return w.Patch(background(), head, client.MergeFrom(before))
		}, podPatience, time.Second).Should(Succeed())
	}
	held("example.com/hold")
	t.Cleanup(func() { held() })
	g.Expect(w.Delete(t.Context(), head, client.GracePeriodSeconds(1))).To(Succeed())
}

func refusalFaults() []fault {
	return []fault{
		{name: "a quota", want: "quota-exceeded", refuses: true, with: object(func(namespace string) client.Object {
			return &corev1.ResourceQuota{ObjectMeta: named(namespace, "small"), Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"pods": resource.MustParse("0")}}}
		})},
		{name: "a limit range", want: "limit-range", refuses: true, with: object(func(namespace string) client.Object {
			return &corev1.LimitRange{ObjectMeta: named(namespace, "small"), Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
				Type: corev1.LimitTypeContainer, Min: corev1.ResourceList{"cpu": resource.MustParse("1")}}}}}
		})},
		{name: "a limit range whose default is too low", want: "limit-range", refuses: true, with: object(func(namespace string) client.Object {
			return &corev1.LimitRange{ObjectMeta: named(namespace, "small"), Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
				Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{"cpu": resource.MustParse("10m")}}}}}
		})},
		{name: "a priority class", want: "priority-class-missing", edit: headPod(func(pod *corev1.PodSpec) { pod.PriorityClassName = "nobody" })},
		{name: "a webhook that does not answer", want: "webhook-unreachable", refuses: true, with: func(namespace string) []client.Object {
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
		{name: "a policy that refuses", want: "admission-denied", refuses: true, with: policy},
		{name: "a lower priority than others", want: "insufficient-resources", with: func(namespace string) []client.Object {
			return []client.Object{&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Value: -10}}
		}, edit: func(c *rayv1.RayCluster) {
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

func specFaults() []fault {
	return []fault{
		{name: "a suspended group beside the autoscaler", want: "spec-invalid", edit: func(c *rayv1.RayCluster) {
			group := smallGroup("w", 1)
			group.Suspend = yes()
			c.Spec.EnableInTreeAutoscaling, c.Spec.WorkerGroupSpecs = yes(), []rayv1.WorkerGroupSpec{group}
		}},
		{name: "a Service of somebody else", want: "name-collision", with: object(func(namespace string) client.Object {
			return &corev1.Service{ObjectMeta: named(namespace, "demo-head-svc"), Spec: corev1.ServiceSpec{Selector: map[string]string{"a": "b"}, Ports: []corev1.ServicePort{{Port: 80}}}}
		}), edit: runs("sleep 3600"), also: []string{"probe-failing"}},
		{name: "another controller", want: "managed-by-other", edit: func(c *rayv1.RayCluster) { c.Spec.ManagedBy = ptr.To("kueue.x-k8s.io/multikueue") }},
		{name: "suspended", want: "suspended", edit: func(c *rayv1.RayCluster) { c.Spec.Suspend = yes() }},
		{name: "a dashboard that only the head reaches", want: "dashboard-localhost", edit: func(c *rayv1.RayCluster) {
			runs("sleep 3600")(c)
			c.Spec.HeadGroupSpec.RayStartParams["dashboard-host"] = "127.0.0.1"
		}, also: []string{"probe-failing"}},
		{name: "a dashboard that everybody reaches", want: "dashboard-exposed", edit: func(c *rayv1.RayCluster) {
			runs("sleep 3600")(c)
			c.Spec.HeadGroupSpec.ServiceType = corev1.ServiceTypeNodePort
		}, also: []string{"probe-failing", "service-no-endpoints"}},
		{name: "an Ingress that nobody serves", want: "ingress-no-class", edit: func(c *rayv1.RayCluster) {
			runs("sleep 3600")(c)
			c.Spec.HeadGroupSpec.EnableIngress = yes()
		}, also: []string{"probe-failing", "dashboard-exposed", "ingress-no-address"}},
	}
}
