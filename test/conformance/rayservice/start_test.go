package rayservice

import (
	"maps"
	"slices"
	"strings"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
	"github.com/heliostat-io/heliostat/test/harness"
)

func startCases() []Case {
	return []Case{
		{Row: 1, Kind: same, When: "the service is created", Then: "a finalizer, Ready and UpgradeInProgress False with Initializing, and the name of the pending cluster before that exists", Run: recordsBeforeItActs},
		{Row: 2, Kind: same, When: "the service is created", Then: "one RayCluster of that name, controlled by it, with its labels and annotations, two labels of its origin and three annotations to compare by", Run: makesOneCluster},
		{Row: 3, Kind: same, Given: "a name of 47 characters", When: "the service is created", Then: "it serves, and its Services have their full names", Run: func(e *env) {
			long := strings.Repeat("a", 47)
			e.ready(named(long))
			e.service(long + "-head-svc")
			e.service(long + "-serve-svc")
		}},
		{Row: 4, Kind: same, Given: "the head is ready, Serve has no application of a config", When: "Serve is asked", Then: "it is asked for applications of configs only, and is PUT the YAML of the spec as JSON; event UpdatedServeApplications", Run: putsTheConfig},
		{Row: 5, Kind: same, Given: "applications are DEPLOYING", When: "Serve is asked again", Then: "pendingServiceStatus.applicationStatuses says so; there is no Service of the RayService yet", Run: tellsOfDeployment},
		{Row: 6, Kind: same, When: "all applications are RUNNING", Then: "head and serve Service lead to the cluster, which becomes active; NoPendingCluster", Run: makesServices},
		{Row: 7, Kind: same, Given: "no workers", When: "the head is a ready endpoint", Then: "Ready True with NonZeroServeEndpoints, serviceStatus Running, numServeEndpoints 1", Run: func(e *env) {
			service := e.ready(noWorkers)
			c := condition(service, "Ready")
			e.Expect(is(c.Status, c.Reason)).To(Equal(is(metav1.ConditionTrue, "NonZeroServeEndpoints")))
			e.Expect(service.Status.ServiceStatus).To(Equal(rayv1.ServiceStatusRunning))
			e.Expect(service.Status.NumServeEndpoints).To(Equal(int32(1)))
		}},
		{Row: 8, Kind: same, Given: "a service without workers", When: "its Pod is in a slice of IPv4 and in one of IPv6", Then: "it counts once", Run: countsPodsOnce},
		{Row: 9, Kind: same, Given: "a ready service", When: "its endpoints vanish", Then: "Ready False with ZeroServeEndpoints, serviceStatus empty", Run: func(e *env) {
			service := e.ready()
			e.loseEndpoints(service)
			e.Expect(service.Status.ServiceStatus).To(Equal(rayv1.ServiceStatusNotRunning))
		}},
	}
}

func recordsBeforeItActs(e *env) {
	e.noKubelet = true
	service := e.given()
	cluster := e.pending(service)
	e.Expect(service.Finalizers).To(ContainElement("ray.io/rayservice-finalizer"))
	e.Expect(cluster.Name).To(MatchRegexp("^llm-[a-z0-9]{5}$"))
	for _, kind := range []string{"Ready", "UpgradeInProgress"} {
		c := condition(service, kind)
		e.Expect(is(c.Status, c.Reason)).To(Equal(is(metav1.ConditionFalse, "Initializing")), kind)
	}
	e.Expect(service.Status.ServiceStatus).To(Equal(rayv1.ServiceStatusNotRunning))
	writes := e.operator.Traffic.All()
	of := func(verbs []string, resource string) int {
		return slices.IndexFunc(writes, func(r harness.Request) bool { return r.Resource == resource && slices.Contains(verbs, r.Verb) })
	}
	recorded := of([]string{"patch", "update", "apply"}, "rayservices/status")
	e.Expect(recorded).To(BeNumerically(">", of([]string{"patch", "update", "apply"}, "rayservices")), "the finalizer comes first")
	e.Expect(recorded).To(And(BeNumerically(">=", 0), BeNumerically("<", of([]string{"create", "apply"}, "rayclusters"))), "%v", writes)
}

func makesOneCluster(e *env) {
	e.noKubelet = true
	service := e.given(func(s *rayv1.RayService) {
		s.Labels, s.Annotations = map[string]string{"team": "a"}, map[string]string{"note": "b"}
	})
	cluster := e.pending(service)
	e.rest()
	e.Expect(e.clusters()).To(HaveLen(1))
	e.Expect(metav1.IsControlledBy(cluster, service)).To(BeTrue())
	for label, value := range map[string]string{"team": "a", "ray.io/originated-from-cr-name": name, "ray.io/originated-from-crd": "RayService"} {
		e.Expect(cluster.Labels).To(HaveKeyWithValue(label, value))
	}
	e.Expect(cluster.Annotations).To(HaveKeyWithValue("note", "b"))
	e.Expect(cluster.Annotations).To(HaveKeyWithValue("ray.io/num-worker-groups", "1"))
	e.Expect(cluster.Annotations).To(HaveKeyWithValue("ray.io/kuberay-version", Not(BeEmpty())))
	e.Expect(cluster.Annotations).To(HaveKeyWithValue("ray.io/hash-without-replicas-and-workers-to-delete", Not(BeEmpty())))
}

func putsTheConfig(e *env) {
	e.newRays(func(ray *fakedashboard.Dashboard) { ray.RunServe("by-hand") })
	service := e.ready()
	e.said(service, corev1.EventTypeNormal, "UpdatedServeApplications")
	config, err := yaml.YAMLToJSON([]byte(service.Spec.ServeConfigV2))
	e.Expect(err).ToNot(HaveOccurred())
	e.Expect(e.ray(e.active(service).Name).LastServePut()).To(MatchJSON(config))
	e.Expect(service.Status.ActiveServiceStatus.ApplicationStatuses).To(And(HaveKey("app"), Not(HaveKey("by-hand"))))
}

func tellsOfDeployment(e *env) {
	e.newRays(staysDeploying)
	service := e.given()
	cluster := e.pending(service).Name
	e.follow(service, func(s *rayv1.RayServiceStatuses) any { return s.PendingServiceStatus.ApplicationStatuses["app"].Status }).
		Should(Equal("DEPLOYING"))
	e.Expect(service.Status.PendingServiceStatus.ApplicationStatuses["app"].ServeDeploymentStatuses).To(HaveKey("Main"))
	e.asked(e.ray(cluster), 2)
	e.rest()
	for _, absent := range []string{"llm-head-svc", "llm-serve-svc"} {
		e.Expect(apierrors.IsNotFound(e.read(&corev1.Service{}, absent))).To(BeTrue(), absent)
	}
}

func makesServices(e *env) {
	e.newRays(staysDeploying)
	service := e.given()
	cluster := e.pending(service).Name
	e.runs(cluster)
	e.have(service, "UpgradeInProgress", metav1.ConditionFalse, "NoPendingCluster")
	e.Expect(service.Status.ActiveServiceStatus.RayClusterName).To(Equal(cluster))
	e.Expect(service.Status.PendingServiceStatus.RayClusterName).To(BeEmpty())
	e.soon(func() any { return []string{e.leadsTo("llm-head-svc"), e.leadsTo("llm-serve-svc")} }).Should(Equal([]string{cluster, cluster}))
	serving := e.service("llm-serve-svc")
	e.Expect(metav1.IsControlledBy(serving, service)).To(BeTrue())
	e.Expect(serving.Spec.Selector).To(Equal(map[string]string{"ray.io/cluster": cluster, "ray.io/serve": "true"}))
	e.Expect(serving.Labels).To(And(HaveKeyWithValue("ray.io/serve", "llm-serve"), HaveKeyWithValue("ray.io/originated-from-cr-name", name)))
	head := e.service("llm-head-svc")
	e.Expect(metav1.IsControlledBy(head, service)).To(BeTrue())
	e.Expect(head.Labels).To(And(HaveKeyWithValue("ray.io/identifier", "llm-head"), HaveKeyWithValue("ray.io/node-type", "head")))
	e.Expect(head.Spec.ClusterIP).To(Equal(corev1.ClusterIPNone))
	e.Expect(head.Spec.Selector).To(HaveKeyWithValue("ray.io/node-type", "head"))
}

func countsPodsOnce(e *env) {
	service := e.ready(noWorkers)
	ipv4 := &discoveryv1.EndpointSlice{}
	e.Expect(e.read(ipv4, "llm-serve-svc-ipv4")).To(Succeed())
	ipv6 := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: e.ns, Name: "llm-serve-svc-ipv6", Labels: maps.Clone(ipv4.Labels), OwnerReferences: ipv4.OwnerReferences},
		AddressType: discoveryv1.AddressTypeIPv6, Ports: ipv4.Ports,
	}
	ipv6.Labels[discoveryv1.LabelManagedBy] = "test"
	// Another Pod, which the first slice does not have, shows that this one was read.
	for address, pod := range map[string]types.UID{"fd00::1": ipv4.Endpoints[0].TargetRef.UID, "fd00::2": "other"} {
		endpoint := *ipv4.Endpoints[0].DeepCopy()
		endpoint.Addresses, endpoint.TargetRef.UID = []string{address}, pod
		ipv6.Endpoints = append(ipv6.Endpoints, endpoint)
	}
	e.make(ipv6)
	e.follow(service, func(s *rayv1.RayServiceStatuses) any { return s.NumServeEndpoints }).Should(Equal(int32(2)))
}
