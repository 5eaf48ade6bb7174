package integration

import (
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
	"github.com/heliostat-io/heliostat/test/harness"
)

// after is a single later time.
func after(by time.Duration) []time.Duration { return []time.Duration{by} }

// ages are times at which all rules have had their chance of a false alarm.
func ages() []time.Duration {
	return []time.Duration{0, 90 * time.Second, 3 * time.Minute, 7 * time.Minute, time.Hour}
}

func tokened(c *rayv1.RayCluster) {
	c.Spec.AuthOptions = &rayv1.AuthOptions{Mode: rayv1.AuthModeToken}
}

// autoscaled switches the autoscaler on, with groups whose CPUs it can tell.
func autoscaled(c *rayv1.RayCluster) {
	c.Spec.EnableInTreeAutoscaling = ptr.To(true)
	c.Spec.HeadGroupSpec.RayStartParams = map[string]string{"num-cpus": "0"}
	for i := range c.Spec.WorkerGroupSpecs {
		c.Spec.WorkerGroupSpecs[i].RayStartParams = map[string]string{"num-cpus": "1"}
	}
}

// claim makes a claim; the phase is what the controller of volumes would write.
func (s *scene) claim(name string, phase corev1.PersistentVolumeClaimPhase, edits ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	s.t.Helper()
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: s.meta(name), Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{"storage": resource.MustParse("1Mi")}}}}
	for _, edit := range edits {
		edit(claim)
	}
	s.make(claim)
	s.patchStatus(claim, func() { claim.Status.Phase = phase })
	return claim
}

// mounts gives all Pods of a cluster a claim.
func mounts(claim string) func(*rayv1.RayCluster) {
	return func(c *rayv1.RayCluster) {
		volume := corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}
		c.Spec.HeadGroupSpec.Template.Spec.Volumes = []corev1.Volume{volume}
		c.Spec.WorkerGroupSpecs[0].Template.Spec.Volumes = []corev1.Volume{volume}
	}
}

func clusterFaults() []fault {
	return []fault{
		{name: "a lost claim", want: "claim-lost", inject: func(s *scene) {
			s.claim("data", corev1.ClaimLost, func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "gone" })
			s.ready(mounts("data"))
		}},
		{name: "a claim for one node, used on two", want: "claim-on-several-nodes", later: after(2 * time.Minute), inject: func(s *scene) {
			s.claim("data", corev1.ClaimBound)
			s.cluster(mounts("data"))
			s.bind(s.head(), "one")
			s.SetPod(s.t, s.head(), harness.Ready)
			for _, worker := range s.workers() {
				s.bind(worker, "two")
				s.SetPod(s.t, worker, harness.Waiting("ray-worker", "ContainerCreating", ""))
			}
		}},
		{name: "a volume of another head", want: "gcs-storage-not-ready", later: after(2 * time.Minute), inject: func(s *scene) {
			s.claim("state", corev1.ClaimBound)
			on := func(c *rayv1.RayCluster) {
				c.Spec.GcsFaultToleranceOptions = &rayv1.GcsFaultToleranceOptions{Backend: rayv1.GcsBackendRocksDB, Storage: &rayv1.GcsEmbeddedStorage{ClaimName: "state"}}
			}
			first := harness.NewCluster(s.ns, "first", on)
			s.make(first)
			s.BecomesReady(s.t, first)
			second := s.cluster(on)
			s.until("refused its volume", second, func() bool {
				return s.Cluster.Condition(s.t, second, rayv1.ConditionStorageReady).Status == metav1.ConditionFalse
			})
		}},
		{name: "an annotation that means nothing", want: "spec-partly-served", inject: func(s *scene) {
			s.ready(func(c *rayv1.RayCluster) { c.Annotations = map[string]string{rayv1.AnnotationProtectHead: "perhaps"} })
		}},
		{name: "an Ingress that nobody takes up", want: "ingress-no-address", later: after(3 * time.Minute), inject: func(s *scene) {
			class := &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: s.ns}, Spec: networkingv1.IngressClassSpec{Controller: "example.com/nobody"}}
			s.make(class)
			s.ready(tokened, func(c *rayv1.RayCluster) {
				c.Annotations = map[string]string{rayv1.AnnotationIngressClass: s.ns}
				c.Spec.HeadGroupSpec.EnableIngress = ptr.To(true)
			})
		}},
		{name: "a load balancer that leads to the dashboard", want: "dashboard-exposed", inject: func(s *scene) {
			s.ready(func(c *rayv1.RayCluster) { c.Spec.HeadGroupSpec.ServiceType = corev1.ServiceTypeLoadBalancer })
		}},
		{name: "a finalizer that nobody removes", want: "deletion-stuck", later: after(6 * time.Minute), inject: func(s *scene) {
			s.held(s.ready())
		}},
		{name: "an account that the autoscaler may not use", want: "autoscaler-rights-missing", later: after(2 * time.Minute), also: []string{"spec-partly-served"}, inject: func(s *scene) {
			s.ready(autoscaled, func(c *rayv1.RayCluster) {
				c.Spec.HeadGroupSpec.Template.Spec.AutomountServiceAccountToken = ptr.To(false)
			})
		}},
		{name: "losses that Ray has reported", want: "losses-reported", inject: func(s *scene) {
			cluster := s.ready()
			s.patchStatus(cluster, func() {
				cluster.Status.Recoveries = []rayv1.RayClusterRecovery{{Pod: "gone", Cause: "Deleted", Time: metav1.Now(),
					Part: "Worker", State: "Complete", Actors: &rayv1.RecoveryCounts{Lost: 2}}}
			})
		}},
	}
}

// bind plays the scheduler: a Pod gets its node.
func (s *scene) bind(pod *corev1.Pod, node string) {
	s.t.Helper()
	binding := &corev1.Binding{ObjectMeta: s.meta(pod.Name), Target: corev1.ObjectReference{Kind: "Node", Name: node}}
	s.g.Expect(s.SubResource("binding").Create(s.t.Context(), pod, binding)).To(Succeed())
	s.g.Expect(s.Get(s.t.Context(), client.ObjectKeyFromObject(pod), pod)).To(Succeed())
}

// healthyObjects are objects of each kind with which nothing is wrong.
func healthyObjects() []fault {
	plain := func(*rayv1.RayCluster) {}
	kinds := []struct {
		name string
		edit func(*rayv1.RayCluster)
	}{
		{"a plain cluster", plain},
		{"a cluster that asks for a token", tokened},
		{"a cluster with an autoscaler", autoscaled},
		{"a cluster without workers", func(c *rayv1.RayCluster) { c.Spec.WorkerGroupSpecs = nil }},
		{"a group that is suspended", func(c *rayv1.RayCluster) { c.Spec.WorkerGroupSpecs[0].Suspend = ptr.To(true) }},
		{"a head Service with an address of its own", func(c *rayv1.RayCluster) {
			c.Spec.HeadGroupSpec.ServiceType = corev1.ServiceTypeClusterIP
			c.Annotations = map[string]string{rayv1.AnnotationProtectHead: rayv1.ProtectHeadAlways}
		}},
		{"a group of several hosts", func(c *rayv1.RayCluster) {
			c.Spec.WorkerGroupSpecs[0].NumOfHosts, c.Spec.WorkerGroupSpecs[0].Replicas = 2, ptr.To[int32](1)
		}},
	}
	var all []fault
	for _, kind := range kinds {
		all = append(all, fault{name: kind.name, later: ages(), inject: func(s *scene) { s.ready(kind.edit) }})
	}
	return append(all,
		fault{name: "a policy that lets Ray through", later: ages(), inject: func(s *scene) {
			own := &metav1.LabelSelector{MatchLabels: map[string]string{rayv1.LabelCluster: "demo"}}
			s.make(&networkingv1.NetworkPolicy{ObjectMeta: s.meta("own"), Spec: networkingv1.NetworkPolicySpec{PodSelector: *own,
				Ingress: []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{{PodSelector: own}}}}}})
			s.ready()
		}},
		fault{name: "a job over HTTP", of: "rayjob/train", later: ages(), inject: func(s *scene) { s.job(rayv1.HTTPMode, runs) }},
		fault{name: "a job with a submitter", of: "rayjob/train", later: ages(), inject: func(s *scene) { s.job(rayv1.K8sJobMode, runs) }},
		fault{name: "a job that has ended well", of: "rayjob/train", later: ages(), inject: func(s *scene) {
			s.is(s.job(rayv1.HTTPMode, ends(fakedashboard.Step{Status: "SUCCEEDED"})), rayv1.JobDeploymentStatusComplete)
		}},
		fault{name: "a job on a cluster that is there", of: "rayjob/train", later: ages(), inject: func(s *scene) {
			s.ready()
			s.job(rayv1.HTTPMode, runs, onDemo)
		}},
		fault{name: "a service", of: "rayservice/chat", later: ages(), inject: func(s *scene) { s.serves() }},
	)
}
