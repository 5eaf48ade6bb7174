package rayservice

import (
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
)

func configCases() []Case {
	return []Case{
		{Row: 10, Kind: same, Given: "a ready service", When: "only serveConfigV2 is changed", Then: "one PUT to the same cluster, and an event", Run: putsAChangedConfig},
		{Row: 11, Kind: same, Given: "a ready service", When: "Serve is asked again and again", Then: "no further PUT", Run: func(e *env) {
			service := e.ready()
			ray := e.ray(e.active(service).Name)
			e.asked(ray, 5)
			e.rest()
			e.Expect(ray.ServePuts()).To(Equal(1))
			e.Expect(e.times(service, "UpdatedServeApplications")).To(Equal(1))
		}},
		{Row: 12, Kind: same, Given: "a ready service", When: "the head has lost its state and Serve has no applications", Then: "PUT again; it serves again", Run: func(e *env) {
			service := e.ready()
			ray := e.ray(e.active(service).Name)
			ray.Restart()
			e.soon(func() any { return ray.ServePuts() }).Should(Equal(2))
			e.soon(func() any { return ray.ServeApplications() }).Should(Equal([]string{"app"}))
			e.asked(ray, 1)
			e.serves(service)
			e.Expect(ray.ServePuts()).To(Equal(2))
		}},
		{Row: 13, Kind: same, Given: "a ready service", When: "the operator is started anew", Then: "it goes on serving, and is PUT its config once more at most", How: "not once more: Serve's report is compared with the spec", Run: func(e *env) {
			service := e.ready()
			ray := e.ray(e.active(service).Name)
			seen := e.record()
			e.operator.Stop()
			e.start()
			e.asked(ray, 3)
			e.rest()
			e.Expect(seen.conditions("Ready")).To(Equal([]string{is(metav1.ConditionTrue, "NonZeroServeEndpoints")}))
			e.Expect(ray.ServePuts()).To(Equal(1))
			e.Expect(e.clusters()).To(HaveLen(1))
		}},
		{Row: 58, Kind: same, Given: "token authentication", When: "Serve is asked and is PUT a config", Then: "each request has the token", Run: func(e *env) {
			e.make(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: e.ns, Name: "mine"}, StringData: map[string]string{"auth_token": "t"}})
			e.newRays(func(ray *fakedashboard.Dashboard) { ray.RequireToken("t") })
			service := e.ready(func(s *rayv1.RayService) {
				s.Spec.RayClusterConfig.AuthOptions = &rayv1.AuthOptions{Mode: rayv1.AuthModeToken, SecretName: ptr.To("mine")}
			})
			ray := e.ray(e.active(service).Name)
			e.Expect(ray.ServePuts()).To(Equal(1))
			e.Expect(ray.Requests(fakedashboard.EndpointPutServe)).To(Equal(1), "each request is let in at once")
		}},
	}
}

func putsAChangedConfig(e *env) {
	service := e.ready()
	cluster := e.active(service)
	ray := e.ray(cluster.Name)
	e.changeSeen(service, replicas("3"))
	e.soon(func() any { return ray.ServePuts() }).Should(Equal(2))
	e.Expect(string(ray.LastServePut())).To(ContainSubstring(`"num_replicas":3`))
	e.soon(func() any { return e.times(service, "UpdatedServeApplications") }).Should(Equal(2))
	e.serves(service)
	e.asked(ray, 2)
	e.Expect(ray.ServePuts()).To(Equal(2))
	e.Expect(e.clusters()).To(HaveLen(1))
	e.Expect(e.active(service).UID).To(Equal(cluster.UID))
}
