package diagnose

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

func TestSpecs(t *testing.T) {
	testWhole(t, map[string]wholeCase{
		"a spec that breaks a rule": {func(s *Snapshot) {
			set(&demo(s).Status.Conditions, rayv1.ConditionValid, "False", rayv1.ReasonSpecInvalid, "spec.workerGroupSpecs[0].groupName is empty")
		}, []string{"spec-invalid RayCluster demo"}},
		"one that KubeRay does not take": {func(s *Snapshot) {
			demo(s).Generation, demo(s).Status.Conditions = 2, nil
			s.Events = []corev1.Event{event("RayCluster", "demo", "InvalidRayClusterSpec", "too long", time.Minute)}
		}, []string{"spec-invalid RayCluster demo"}},
		"one that was corrected since": {func(s *Snapshot) {
			demo(s).Status.Conditions = nil
			s.Events = []corev1.Event{event("RayCluster", "demo", "InvalidRayClusterSpec", "too long", time.Minute)}
		}, nil},
		"a RayJob that KubeRay does not take": {func(s *Snapshot) {
			s.Jobs[0].Status = rayv1.RayJobStatus{JobDeploymentStatus: rayv1.JobDeploymentStatusValidationFailed, Message: "no entrypoint"}
		}, []string{"spec-invalid RayJob train"}},
		"a RayService that KubeRay does not take": {func(s *Snapshot) {
			set(&s.Service.Status.Conditions, rayv1.ConditionRayServiceReady, "False", rayv1.ReasonValidationFailed, "bad name")
		}, []string{"spec-invalid RayService chat"}},
		"one of which a part is not served": {func(s *Snapshot) {
			set(&demo(s).Status.Conditions, rayv1.ConditionValid, "True", rayv1.ReasonPartlyServed, "spec.tlsOptions.enabled")
		}, []string{"spec-partly-served RayCluster demo"}},
		"a name that is taken": {func(s *Snapshot) {
			set(&demo(s).Status.Conditions, rayv1.ConditionNameCollision, "True", rayv1.ReasonNameCollision, "Secret demo belongs to nobody")
		}, []string{"name-collision RayCluster demo"}},
		"a name that is taken, which the owner repeats": {func(s *Snapshot) {
			set(&demo(s).Status.Conditions, rayv1.ConditionNameCollision, "True", rayv1.ReasonNameCollision, "Secret demo belongs to nobody")
			set(&s.Service.Status.Conditions, rayv1.ConditionStalled, "True", rayv1.ReasonNameCollision, "RayCluster demo: Secret demo belongs to nobody")
		}, []string{"name-collision RayCluster demo"}},
		"a RayService whose name is taken": {func(s *Snapshot) {
			set(&s.Service.Status.Conditions, rayv1.ConditionStalled, "True", rayv1.ReasonNameCollision, "Service chat-serve-svc belongs to nobody")
		}, []string{"name-collision RayService chat"}},
		"a dashboard on the loopback interface, which then does not answer": {func(s *Snapshot) {
			demo(s).Spec.HeadGroupSpec.RayStartParams["dashboard-host"] = "127.0.0.1"
			s.Dashboards["demo"] = Dashboard{Error: "connection refused"}
		}, []string{"dashboard-localhost RayCluster demo"}},
		"a dashboard on all interfaces": {func(s *Snapshot) { demo(s).Spec.HeadGroupSpec.RayStartParams["dashboard-host"] = "0.0.0.0" }, nil},
	})
}

func TestReferences(t *testing.T) {
	worker := func(change func(*corev1.PodSpec), groups ...func(*rayv1.WorkerGroupSpec)) func(*Snapshot) {
		return func(s *Snapshot) {
			change(&demo(s).Spec.WorkerGroupSpecs[0].Template.Spec)
			for _, group := range groups {
				group(&demo(s).Spec.WorkerGroupSpecs[0])
			}
		}
	}
	envFrom := func(secret string) corev1.PodSpec {
		return corev1.PodSpec{Containers: []corev1.Container{{EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: secret}}}}}}}
	}
	volume := func(source corev1.VolumeSource) func(*Snapshot) {
		return worker(func(pod *corev1.PodSpec) {
			pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "v", VolumeSource: source})
		})
	}
	from := func(source corev1.EnvVarSource) func(*Snapshot) {
		return worker(func(pod *corev1.PodSpec) {
			pod.InitContainers = []corev1.Container{{Env: []corev1.EnvVar{{Name: "E", ValueFrom: &source}}}}
		})
	}
	named := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	testWhole(t, map[string]wholeCase{
		"the Secret of a variable": {func(s *Snapshot) { delete(s.Secrets, "creds") }, []string{"secret-missing Secret creds"}},
		"the Secret of a variable that is optional": {from(corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: named("nope"), Optional: ptr.To(true)}}), nil},
		"the Secret for pulling images that all may have": {func(s *Snapshot) { delete(s.Secrets, "pull") }, nil},
		"the Secret for pulling images that are refused": {func(s *Snapshot) {
			delete(s.Secrets, "pull")
			headOf(s).Status.ContainerStatuses[0] = corev1.ContainerStatus{Name: "ray-head", State: waiting("ImagePullBackOff", "403 Forbidden")}
		}, []string{"secret-missing Secret pull"}},
		"the Secret of a group that is suspended": {worker(func(pod *corev1.PodSpec) { pod.ServiceAccountName = "robot" }, func(g *rayv1.WorkerGroupSpec) {
			g.Suspend = ptr.To(true)
		}), nil},
		"the Secret of a group without replicas": {worker(func(pod *corev1.PodSpec) { pod.ServiceAccountName = "robot" }, func(g *rayv1.WorkerGroupSpec) {
			g.Replicas = ptr.To[int32](0)
		}), nil},
		"the Secret of the token":           {func(s *Snapshot) { delete(s.Secrets, "token") }, []string{"secret-missing Secret token"}},
		"the key of the token":              {func(s *Snapshot) { s.Secrets["token"] = []string{"token"} }, []string{"key-missing Secret token"}},
		"the Secret of a volume":            {volume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "tls"}}), []string{"secret-missing Secret tls"}},
		"that of a volume that is optional": {volume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "tls", Optional: ptr.To(true)}}), nil},
		"the Secret of a projected volume": {volume(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{Secret: &corev1.SecretProjection{LocalObjectReference: named("tls")}}}}}), []string{"secret-missing Secret tls"}},
		"a ConfigMap that two places name": {func(s *Snapshot) { delete(s.ConfigMaps, "settings") }, []string{"configmap-missing ConfigMap settings"}},
		"the key of a ConfigMap":           {func(s *Snapshot) { s.ConfigMaps["settings"] = nil }, []string{"key-missing ConfigMap settings"}},
		"the ConfigMap of a volume":        {volume(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: named("m")}}), []string{"configmap-missing ConfigMap m"}},
		"the ConfigMap of a variable": {from(corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
			LocalObjectReference: named("m"), Key: "k"}}), []string{"configmap-missing ConfigMap m"}},
		"Secrets and ConfigMaps that could not be read": {func(s *Snapshot) { s.Secrets, s.ConfigMaps = nil, nil }, nil},
		"a cluster that is suspended": {func(s *Snapshot) {
			s.Secrets = Keys{}
			demo(s).Spec.Suspend = ptr.To(true)
		}, []string{"suspended RayCluster demo"}},
		"the password of Redis": {func(s *Snapshot) {
			demo(s).Spec.GcsFaultToleranceOptions = &rayv1.GcsFaultToleranceOptions{RedisPassword: &rayv1.RedisCredential{ValueFrom: &corev1.EnvVarSource{
				SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: named("redis"), Key: "password"}}}}
		}, []string{"secret-missing Secret redis"}},
		"the Secret of a submitter": {func(s *Snapshot) {
			s.Jobs[0].Spec.SubmitterPodTemplate = &corev1.PodTemplateSpec{Spec: envFrom("other")}
		}, []string{"secret-missing Secret other"}},
		"the Secret of a cluster that a job has yet to make": {func(s *Snapshot) {
			s.Jobs[0].Spec.ClusterSelector, s.Jobs[0].Status.RayClusterName = nil, ""
			s.Jobs[0].Spec.RayClusterSpec = &rayv1.RayClusterSpec{HeadGroupSpec: rayv1.HeadGroupSpec{Template: corev1.PodTemplateSpec{Spec: envFrom("other")}}}
		}, []string{"secret-missing Secret other"}},
		"the Secret of a cluster that a service has yet to make": {func(s *Snapshot) {
			s.Clusters, s.Jobs, s.Pods = nil, nil, nil
			s.Service.Spec.RayClusterConfig = rayv1.RayClusterSpec{HeadGroupSpec: rayv1.HeadGroupSpec{Template: corev1.PodTemplateSpec{Spec: envFrom("other")}}}
		}, []string{"secret-missing Secret other"}},
		"an account": {worker(func(pod *corev1.PodSpec) { pod.ServiceAccountName = "robot" }), []string{"service-account-missing ServiceAccount robot"}},
		"a claim":    {func(s *Snapshot) { s.Claims = []*corev1.PersistentVolumeClaim{} }, []string{"claim-missing PersistentVolumeClaim data"}},
	})
}

func TestClaims(t *testing.T) {
	pending := func(change func(*Snapshot, *corev1.PersistentVolumeClaim)) func(*Snapshot) {
		return func(s *Snapshot) {
			claim := s.Claims[0]
			claim.Status.Phase, claim.Spec.VolumeName = corev1.ClaimPending, ""
			change(s, claim)
		}
	}
	waitsForPod := func(s *Snapshot) {
		s.StorageClasses[0].VolumeBindingMode = ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)
	}
	onTwoNodes := func(phase corev1.PodPhase) func(*Snapshot) {
		return func(s *Snapshot) {
			workerOf(s).Spec.Volumes, workerOf(s).Status.Phase = headOf(s).Spec.Volumes, phase
		}
	}
	testWhole(t, map[string]wholeCase{
		"a volume that is gone": {func(s *Snapshot) { s.Claims[0].Status.Phase = corev1.ClaimLost }, []string{"claim-lost PersistentVolumeClaim data"}},
		"no class and no default": {pending(func(s *Snapshot, c *corev1.PersistentVolumeClaim) {
			c.Spec.StorageClassName, s.StorageClasses[0].Annotations = nil, nil
		}), []string{"claim-no-class PersistentVolumeClaim data"}},
		"no class and a default": {pending(func(_ *Snapshot, c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = nil }), nil},
		"a class that is not there": {pending(func(_ *Snapshot, c *corev1.PersistentVolumeClaim) {
			c.Spec.StorageClassName = ptr.To("fast")
		}), []string{"claim-no-class PersistentVolumeClaim data"}},
		"volumes by hand": {pending(func(_ *Snapshot, c *corev1.PersistentVolumeClaim) {
			c.Spec.StorageClassName = ptr.To("")
		}), []string{"claim-no-class PersistentVolumeClaim data"}},
		"a provisioner that does not answer": {pending(func(*Snapshot, *corev1.PersistentVolumeClaim) {}), []string{"claim-pending PersistentVolumeClaim data"}},
		"a class that waits for a Pod":       {pending(func(s *Snapshot, _ *corev1.PersistentVolumeClaim) { waitsForPod(s) }), nil},
		"a class that has got its Pod": {pending(func(s *Snapshot, c *corev1.PersistentVolumeClaim) {
			waitsForPod(s)
			c.Annotations = map[string]string{annotationSelectedNode: "node-1"}
		}), []string{"claim-pending PersistentVolumeClaim data"}},
		"a class that waits, and a driver that fails": {pending(func(s *Snapshot, _ *corev1.PersistentVolumeClaim) {
			waitsForPod(s)
			s.Events = []corev1.Event{event("PersistentVolumeClaim", "data", "ProvisioningFailed", "no space", time.Minute)}
		}), []string{"claim-pending PersistentVolumeClaim data"}},
		"a class without a provisioner": {pending(func(s *Snapshot, _ *corev1.PersistentVolumeClaim) {
			s.StorageClasses[0].Provisioner = noProvisioner
		}), []string{"claim-pending PersistentVolumeClaim data"}},
		"a class without a provisioner, and an event that says so": {pending(func(s *Snapshot, _ *corev1.PersistentVolumeClaim) {
			s.StorageClasses[0].Provisioner = noProvisioner
			s.Events = []corev1.Event{event("PersistentVolumeClaim", "data", "ProvisioningFailed", "no volume plugin matched name", time.Minute)}
		}), []string{"claim-pending PersistentVolumeClaim data"}},
		"a claim that is young": {pending(func(_ *Snapshot, c *corev1.PersistentVolumeClaim) { c.CreationTimestamp = ago(90 * time.Second) }), nil},
		"classes that could not be read": {pending(func(s *Snapshot, c *corev1.PersistentVolumeClaim) {
			s.StorageClasses, c.Spec.StorageClassName = nil, nil
		}), nil},
		"a claim on two nodes, of which one cannot have it": {onTwoNodes(corev1.PodPending), []string{"claim-on-several-nodes PersistentVolumeClaim data"}},
		"a claim on two nodes that both have it":            {onTwoNodes(corev1.PodRunning), nil},
		"a claim that may be on several nodes": {func(s *Snapshot) {
			onTwoNodes(corev1.PodPending)(s)
			s.Claims[0].Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
		}, nil},
		"the state of the head on a volume in use": {func(s *Snapshot) {
			set(&demo(s).Status.Conditions, rayv1.ConditionStorageReady, "False", rayv1.ReasonClaimInUse, "claim c is in use by cluster b")
		}, []string{"gcs-storage-not-ready RayCluster demo"}},
		"the state of the head on its volume": {func(s *Snapshot) {
			set(&demo(s).Status.Conditions, rayv1.ConditionStorageReady, "True", rayv1.ReasonClaimReady, "")
		}, nil},
	})
}

func TestIngresses(t *testing.T) {
	ingress := func(change func(*Snapshot, *networkingv1.Ingress)) func(*Snapshot) {
		return func(s *Snapshot) { change(s, s.Ingresses[0]) }
	}
	testWhole(t, map[string]wholeCase{
		"no class":                  {ingress(func(_ *Snapshot, i *networkingv1.Ingress) { i.Spec.IngressClassName = nil }), []string{"ingress-no-class Ingress demo-head-ingress"}},
		"a class that is not there": {ingress(func(_ *Snapshot, i *networkingv1.Ingress) { i.Spec.IngressClassName = ptr.To("alb") }), []string{"ingress-no-class Ingress demo-head-ingress"}},
		"no class and a default": {ingress(func(s *Snapshot, i *networkingv1.Ingress) {
			i.Spec.IngressClassName = nil
			s.IngressClasses[0].Annotations = map[string]string{networkingv1.AnnotationIsDefaultIngressClass: "true"}
		}), nil},
		"a class in the old annotation": {ingress(func(_ *Snapshot, i *networkingv1.Ingress) {
			i.Spec.IngressClassName, i.Annotations = nil, map[string]string{rayv1.AnnotationIngressClass: "nginx"}
		}), nil},
		"classes that could not be read": {ingress(func(s *Snapshot, i *networkingv1.Ingress) { s.IngressClasses, i.Spec.IngressClassName = nil, nil }), nil},
		"no address":                     {ingress(func(_ *Snapshot, i *networkingv1.Ingress) { i.Status.LoadBalancer.Ingress = nil }), []string{"ingress-no-address Ingress demo-head-ingress"}},
		"no address yet": {ingress(func(_ *Snapshot, i *networkingv1.Ingress) {
			i.Status.LoadBalancer.Ingress, i.CreationTimestamp = nil, ago(time.Minute)
		}), nil},
		"that of somebody else": {ingress(func(_ *Snapshot, i *networkingv1.Ingress) {
			i.Spec.IngressClassName, i.Labels = nil, nil
		}), nil},
	})
}

func TestMissingReferenceNamesAllPlaces(t *testing.T) {
	s := healthy()
	delete(s.ConfigMaps, "settings")
	found := Findings(s)
	if len(found) != 1 {
		t.Fatalf("got %+v", found)
	}
	want := "named by RayCluster demo spec.headGroupSpec.template.spec.containers[0].envFrom[0].configMapRef, " +
		"RayCluster demo spec.headGroupSpec.template.spec.volumes[1].projected.sources[0].configMap.items[0], and not there"
	if found[0].Message != want {
		t.Errorf("got  %q\nwant %q", found[0].Message, want)
	}
}

func TestNotesComeLast(t *testing.T) {
	s := healthy()
	delete(s.Secrets, "creds")
	set(&demo(s).Status.Conditions, rayv1.ConditionValid, metav1.ConditionTrue, rayv1.ReasonPartlyServed, "a part")
	s.Ingresses[0].Status.LoadBalancer.Ingress = nil
	var got []Severity
	for _, f := range Findings(s) {
		got = append(got, f.Severity)
	}
	want := []Severity{Blocking, Passing, Note}
	if len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestVolumesByHandNeedAPerson(t *testing.T) {
	s := healthy()
	s.Claims[0].Status.Phase, s.StorageClasses[0].Provisioner = corev1.ClaimPending, noProvisioner
	s.Events = []corev1.Event{event("PersistentVolumeClaim", "data", "ProvisioningFailed", "no volume plugin matched name", time.Minute)}
	found := Findings(s)
	want := "Create a PersistentVolume of StorageClass standard that fits PersistentVolumeClaim data, or create the claim anew with a lower spec.resources.requests.storage."
	if len(found) != 1 || found[0].Next != want {
		t.Errorf("got %+v\nwant next %q", found, want)
	}
}

func TestNeeds(t *testing.T) {
	secrets, configMaps := healthy().Needs()
	if diff := cmp.Diff([]string{"creds", "pull", "token"}, secrets); diff != "" {
		t.Errorf("Secrets: %s", diff)
	}
	if diff := cmp.Diff([]string{"settings"}, configMaps); diff != "" {
		t.Errorf("ConfigMaps: %s", diff)
	}
}
