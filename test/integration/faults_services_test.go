package integration

import (
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
	"github.com/heliostat-io/heliostat/test/harness"
)

// stepwise asks for upgrades step by step.
func stepwise(service *rayv1.RayService) *rayv1.RayService {
	autoscaledService(service)
	service.Spec.UpgradeStrategy = &rayv1.RayServiceUpgradeStrategy{Type: ptr.To(rayv1.RayServiceNewClusterWithIncrementalUpgrade),
		ClusterUpgradeOptions: &rayv1.ClusterUpgradeOptions{MaxSurgePercent: ptr.To[int32](50), StepSizePercent: ptr.To[int32](25),
			IntervalSeconds: ptr.To[int32](1), GatewayClassName: "traffic"}}
	return service
}

func autoscaledService(service *rayv1.RayService) {
	service.Spec.RayClusterConfig.EnableInTreeAutoscaling = ptr.To(true)
	service.Spec.RayClusterConfig.HeadGroupSpec.RayStartParams = map[string]string{"num-cpus": "0"}
	for i := range service.Spec.RayClusterConfig.WorkerGroupSpecs {
		service.Spec.RayClusterConfig.WorkerGroupSpecs[i].RayStartParams = map[string]string{"num-cpus": "1"}
	}
}

// service makes RayService chat and waits until it has a cluster, of which nothing runs yet.
func (s *scene) service(edits ...func(*rayv1.RayService)) (*rayv1.RayService, *fakedashboard.Dashboard) {
	s.t.Helper()
	service := harness.NewService(s.ns, "chat")
	for _, edit := range edits {
		edit(service)
	}
	s.make(service)
	s.g.Eventually(func() string {
		s.g.Expect(s.Get(s.t.Context(), client.ObjectKeyFromObject(service), service)).To(Succeed())
		return service.Status.PendingServiceStatus.RayClusterName
	}).ShouldNot(BeEmpty())
	s.turn = func() {
		s.serve.Turn(s.t)
		s.EndpointSlices(s.t, s.ns)
		s.CollectGarbage(s.t, s.ns)
	}
	return service, s.dashboard(service.Status.PendingServiceStatus.RayClusterName)
}

// serves makes RayService chat and waits until it serves.
func (s *scene) serves(edits ...func(*rayv1.RayService)) *rayv1.RayService {
	s.t.Helper()
	service, _ := s.service(edits...)
	s.until("ready", service, func() bool {
		return meta.IsStatusConditionTrue(service.Status.Conditions, rayv1.ConditionRayServiceReady) && service.Status.PendingServiceStatus.RayClusterName == ""
	})
	return service
}

// upgrades changes the image of RayService chat, and keeps the Pods of the new cluster from running.
func (s *scene) upgrades(service *rayv1.RayService) {
	s.t.Helper()
	serving, usual := service.Status.ActiveServiceStatus.RayClusterName, s.turn
	s.turn = func() {
		for _, pod := range s.Pods(s.t, s.ns, nil) {
			if cluster := pod.Labels[rayv1.LabelCluster]; cluster != serving && len(pod.Status.Conditions) == 0 {
				s.SetPod(s.t, &pod, func(pod *corev1.Pod) {
					pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}
				})
			}
		}
		usual()
	}
	s.patch(service, func() {
		service.Spec.RayClusterConfig.HeadGroupSpec.Template.Spec.Containers[0].Image = "img:2"
	})
	s.until("looked at", service, func() bool { return service.Status.ObservedGeneration == service.Generation })
}

func serviceFaults() []fault {
	annotated := func(key, value string) func(*rayv1.RayService) {
		return func(service *rayv1.RayService) { metav1.SetMetaDataAnnotation(&service.ObjectMeta, key, value) }
	}
	all := []fault{
		{name: "a config that Serve does not take", want: "serve-config-refused", inject: func(s *scene) {
			_, ray := s.service()
			ray.RefuseServe("no module named app")
		}},
		{name: "an application that does not start", want: "serve-app-unhealthy", inject: func(s *scene) {
			_, ray := s.service()
			ray.ScriptServe("app", fakedashboard.ServeStep{Status: "DEPLOY_FAILED", Message: "ImportError: no module named app"})
		}},
		{name: "an application whose environment cannot be made", want: "serve-app-starting", inject: func(s *scene) {
			_, ray := s.service()
			ray.ScriptServe("app", fakedashboard.ServeStep{Status: "DEPLOYING", Message: "Failed to set up runtime environment."})
		}},
		{name: "an application that does not start in time", want: "serve-start-timeout", inject: func(s *scene) {
			_, ray := s.service(annotated(rayv1.AnnotationInitializingTimeout, "1s"))
			ray.ScriptServe("app", fakedashboard.ServeSteps("DEPLOYING")...)
		}},
		{name: "an upgrade step by step without a gateway", want: "serve-gateway", inject: func(s *scene) {
			service := stepwise(harness.NewService(s.ns, "chat"))
			s.make(service)
			s.until("looked at", service, func() bool { return service.Status.ObservedGeneration != 0 })
		}},
		{name: "proxies that do not answer", want: "serve-no-endpoints", later: longWait, inject: func(s *scene) {
			service := s.serves()
			for _, pod := range s.Pods(s.t, s.ns, nil) {
				s.serve.Proxy(&pod).SetHealthy(false)
			}
			s.until("unserved", service, func() bool {
				return meta.IsStatusConditionFalse(service.Status.Conditions, rayv1.ConditionRayServiceReady)
			})
		}},
		{name: "a new cluster that takes long", want: "upgrade-waiting", later: after(7 * time.Minute), inject: func(s *scene) { s.upgrades(s.serves()) }},
		{name: "a new cluster that takes too long", want: "upgrade-abandoned", inject: func(s *scene) {
			s.upgrades(s.serves(annotated(rayv1.AnnotationUpgradeTimeout, "1s")))
		}},
	}
	for i := range all {
		all[i].of = "rayservice/chat"
	}
	return all
}
