package raycluster

import (
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/harness"
)

func creationCases() []Case {
	return []Case{
		{Row: 1, Kind: same, When: "the cluster is created", Then: "a head, two workers and the head Service, all controlled by it", Run: makesPodsAndService},
		{Row: 2, Kind: same, When: "the cluster is created", Then: "the head Pod has its labels, annotations and name", Run: headIsLabelled},
		{Row: 3, Kind: same, When: "the cluster is created", Then: "workers have their names, group and replica indices", Run: workersAreLabelled},
		{Row: 4, Kind: same, When: "the cluster is created", Then: "the head Service is headless, has five ports and selects the head", Run: headServiceIsHeadless},
		{Row: 35, Kind: same, Given: "a template with another namespace and a label ray.io/cluster", When: "the cluster is created",
			Then: "Pods are in the cluster's namespace and carry its name", Run: func(e *env) {
				e.given(func(c *rayv1.RayCluster) {
					for _, template := range []*corev1.PodTemplateSpec{&c.Spec.HeadGroupSpec.Template, &c.Spec.WorkerGroupSpecs[0].Template} {
						template.Namespace, template.Labels = "other", map[string]string{rayv1.LabelCluster: "x"}
					}
				})
				e.head()
				e.haveWorkers(2)
			}},
		{Row: 38, Kind: same, Given: "labels of a group", When: "the cluster is created", Then: "its Pods carry them, and Ray is told", Run: func(e *env) {
			e.given(func(c *rayv1.RayCluster) { c.Spec.WorkerGroupSpecs[0].Labels = map[string]string{"tier": "gold"} })
			worker := e.haveWorkers(2)[0]
			e.Expect(worker.Labels).To(HaveKeyWithValue("tier", "gold"))
			e.Expect(commandOf(worker.Spec.Containers[0])).To(ContainSubstring("--labels=tier=gold"))
		}},
		{Row: 126, Kind: same, Given: "a cluster with all of its objects", When: "it is deleted",
			Then: "nothing of ours delays that, and everything it made goes with it", Run: everythingIsOwned},
	}
}

func makesPodsAndService(e *env) {
	cluster := e.given()
	e.head()
	e.haveWorkers(2)
	service := &corev1.Service{}
	e.Eventually(func() error { return e.read(service, "demo-head-svc") }).Should(Succeed())
	objects := []client.Object{service}
	for _, pod := range e.pods() {
		objects = append(objects, &pod)
	}
	e.Expect(objects).To(HaveLen(4))
	for _, object := range objects {
		owner := metav1.GetControllerOf(object)
		e.Expect(owner).ToNot(BeNil(), object.GetName())
		e.Expect(owner.UID).To(Equal(cluster.UID))
		e.Expect(ptr.Deref(owner.BlockOwnerDeletion, false)).To(BeTrue())
	}
}

func headIsLabelled(e *env) {
	e.given()
	head := e.head()
	for key, value := range map[string]string{
		"ray.io/cluster": name, "ray.io/node-type": "head", "ray.io/group": "headgroup", "ray.io/is-ray-node": "yes",
		"ray.io/identifier": "demo-head", "app.kubernetes.io/name": "kuberay", "app.kubernetes.io/created-by": "kuberay-operator",
	} {
		e.Expect(head.Labels).To(HaveKeyWithValue(key, value))
	}
	e.Expect(head.Name).To(HavePrefix("demo-head-"))
	e.Expect(head.Annotations).To(And(HaveKeyWithValue("ray.io/upgrade-strategy-recreate-hash", Not(BeEmpty())),
		HaveKeyWithValue("ray.io/kuberay-version", "test"), HaveKeyWithValue("ray.io/ft-enabled", "false")))
}

func workersAreLabelled(e *env) {
	e.given()
	workers := e.haveWorkers(2, "a")
	e.Expect(harness.Names(workers)).To(HaveEach(HavePrefix("demo-a-worker-")))
	e.Expect(labelsOf(workers, "ray.io/worker-group-replica-index")).To(ConsistOf("0", "1"))
}

func headServiceIsHeadless(e *env) {
	e.given()
	service := &corev1.Service{}
	e.Eventually(func() error { return e.read(service, "demo-head-svc") }).Should(Succeed())
	e.Expect(service.Spec.ClusterIP).To(Equal(corev1.ClusterIPNone))
	e.Expect(service.Spec.PublishNotReadyAddresses).To(BeTrue())
	ports := map[string]int32{}
	for _, port := range service.Spec.Ports {
		ports[port.Name] = port.Port
		e.Expect(port.AppProtocol).To(HaveValue(Equal("tcp")))
	}
	e.Expect(ports).To(Equal(map[string]int32{"client": 10001, "dashboard": 8265, "gcs-server": 6379, "metrics": 8080, "serve": 8000}))
	e.Expect(service.Spec.Selector).To(HaveLen(5))
	selects(e, service, e.head())
}

func everythingIsOwned(e *env) {
	cluster := e.ready(autoscaler, hosts(2), tokenAuth, ingress, annotated(rayv1.AnnotationEnableServeService, "true"))
	e.rest()
	e.Expect(cluster.Finalizers).To(BeEmpty())
	count := 0
	for _, list := range []client.ObjectList{&corev1.PodList{}, &corev1.ServiceList{}, &corev1.ServiceAccountList{}, &corev1.SecretList{},
		&rbacv1.RoleList{}, &rbacv1.RoleBindingList{}, &networkingv1.IngressList{}} {
		for _, object := range e.listed(list) {
			count++
			e.Expect(metav1.IsControlledBy(object, cluster)).To(BeTrue(), "%T %s", object, object.GetName())
		}
	}
	e.Expect(count).To(Equal(5+3+1+1+1+1+1), "5 Pods, 3 Services and one of each other kind")
	e.Expect(e.Delete(e.t.Context(), cluster)).To(Succeed())
	e.Expect(client.IgnoreNotFound(e.read(cluster, name))).To(Succeed())
	e.Expect(e.read(cluster, name)).ToNot(Succeed(), "the cluster is still there")
}
