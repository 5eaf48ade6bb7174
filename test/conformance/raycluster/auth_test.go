package raycluster

import (
	"encoding/base64"
	"slices"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

func tokenAuth(c *rayv1.RayCluster) {
	c.Spec.AuthOptions = &rayv1.AuthOptions{Mode: rayv1.AuthModeToken}
}

func authCases() []Case {
	return []Case{
		{Row: 92, Kind: same, Given: "token authentication, autoscaler on", When: "the cluster is created", Then: "a Secret with a token; every container of Ray reads it", Run: func(e *env) {
			cluster := e.given(tokenAuth, autoscaler)
			secret := e.secret()
			e.Expect(metav1.IsControlledBy(secret, cluster)).To(BeTrue())
			random, err := base64.StdEncoding.DecodeString(string(secret.Data["auth_token"]))
			e.Expect(err).ToNot(HaveOccurred())
			e.Expect(random).To(HaveLen(32))
			e.readTokenFrom(name)
		}},
		{Row: 93, Kind: same, Given: "token authentication, a Ray version that is empty or older than 2.52", When: "the cluster is created", Then: "a Warning, no Pods", Run: func(e *env) {
			for _, version := range []string{"", "2.51.0"} {
				cluster := e.given(tokenAuth, func(c *rayv1.RayCluster) { c.Spec.RayVersion = version })
				e.isInvalid(cluster, invalidSpec, "rayVersion")
				e.Expect(e.Delete(e.t.Context(), cluster)).To(Succeed())
			}
		}},
		{Row: 94, Kind: same, Given: "token authentication with the user's Secret", When: "the cluster is created", Then: "no Secret is made, containers read the user's", Run: func(e *env) {
			mine := &corev1.Secret{StringData: map[string]string{"auth_token": "t"}}
			mine.Namespace, mine.Name = e.ns, "mine"
			e.make(mine)
			e.given(tokenAuth, func(c *rayv1.RayCluster) { c.Spec.AuthOptions.SecretName = ptr.To("mine") })
			e.readTokenFrom("mine")
			e.rest()
			e.Expect(e.listed(&corev1.SecretList{})).To(HaveLen(1))
		}},
		{Row: 95, Kind: better, Weak: []string{"W53"}, Theirs: "new Pods get a new token and cannot join the old head", Given: "token authentication, all Pods ready", When: "the Secret is deleted", Then: "old and new Pods agree on the token",
			How: "the same token is restored, or all Pods are replaced with the new one", Run: secretIsRestored},
	}
}

// secret waits for the Secret of the cluster.
func (e *env) secret() *corev1.Secret {
	e.t.Helper()
	secret := &corev1.Secret{}
	e.Eventually(func() error { return e.read(secret, name) }).Should(Succeed())
	return secret
}

// readTokenFrom checks that all containers of Ray read the token from that Secret.
func (e *env) readTokenFrom(secret string) {
	e.t.Helper()
	head, worker := e.head(), e.haveWorkers(2)[0]
	containers := slices.Concat(head.Spec.Containers, worker.Spec.Containers, worker.Spec.InitContainers)
	for _, container := range containers {
		e.Expect(envOf(container, "RAY_AUTH_MODE")).To(HaveValue(HaveField("Value", "token")), container.Name)
		token := envOf(container, "RAY_AUTH_TOKEN")
		e.Expect(token).ToNot(BeNil(), container.Name)
		e.Expect(token.ValueFrom.SecretKeyRef.Name).To(Equal(secret))
		e.Expect(token.ValueFrom.SecretKeyRef.Key).To(Equal("auth_token"))
	}
}

func secretIsRestored(e *env) {
	e.ready(tokenAuth)
	before, old := e.secret(), uids(e.pods())
	e.Expect(e.Delete(e.t.Context(), before.DeepCopy())).To(Succeed())
	e.Eventually(func(g Gomega) {
		after := &corev1.Secret{}
		g.Expect(e.read(after, name)).To(Succeed())
		g.Expect(after.UID).ToNot(Equal(before.UID))
		if string(after.Data["auth_token"]) == string(before.Data["auth_token"]) {
			return
		}
		g.Expect(e.pods()).To(HaveLen(3))
		for _, uid := range uids(e.pods()) {
			g.Expect(old).ToNot(ContainElement(uid), "a Pod with the old token is left")
		}
	}).Should(Succeed())
}

func ingress(c *rayv1.RayCluster) {
	c.Spec.HeadGroupSpec.EnableIngress = ptr.To(true)
	annotated(rayv1.AnnotationIngressClass, "nginx")(c)
}

func ingressCases() []Case {
	return []Case{
		{Row: 96, Kind: same, Given: "enableIngress and an ingress class", When: "the cluster is created", Then: "an Ingress that leads to the dashboard", Run: func(e *env) {
			cluster := e.given(ingress)
			made := &networkingv1.Ingress{}
			e.Eventually(func() error { return e.read(made, "demo-head-ingress") }).Should(Succeed())
			e.Expect(metav1.IsControlledBy(made, cluster)).To(BeTrue())
			e.Expect(made.Spec.IngressClassName).To(HaveValue(Equal("nginx")))
			e.Expect(made.Spec.Rules).To(HaveLen(1))
			path := made.Spec.Rules[0].HTTP.Paths[0]
			e.Expect(path.Path).To(Equal("/"))
			e.Expect(path.PathType).To(HaveValue(Equal(networkingv1.PathTypePrefix)))
			e.Expect(path.Backend.Service.Name).To(Equal("demo-head-svc"))
			e.Expect(path.Backend.Service.Port.Number).To(Equal(int32(8265)))
		}},
		{Row: 97, Kind: same, Given: "someone else's Ingress of that name", When: "the cluster is created", Then: "it is left alone, a Warning, Pods", Run: func(e *env) {
			foreign := &networkingv1.Ingress{Spec: networkingv1.IngressSpec{DefaultBackend: &networkingv1.IngressBackend{
				Service: &networkingv1.IngressServiceBackend{Name: "other", Port: networkingv1.ServiceBackendPort{Number: 80}}}}}
			foreign.Namespace, foreign.Name = e.ns, "demo-head-ingress"
			e.make(foreign)
			cluster := e.given(ingress)
			e.head()
			e.haveWorkers(2)
			e.said(cluster, corev1.EventTypeWarning, "FailedToCreateIngress")
			after := &networkingv1.Ingress{}
			e.Expect(e.read(after, foreign.Name)).To(Succeed())
			e.Expect(after.ResourceVersion).To(Equal(foreign.ResourceVersion))
		}},
		{Row: 98, Kind: better, Weak: []string{"W36"}, Theirs: "the Ingress stays", Given: "a cluster with an Ingress", When: "enableIngress becomes false", Then: "the Ingress goes",
			How: "what we own and the spec does not want any more is removed", Run: func(e *env) {
				cluster := e.ready(ingress)
				e.Eventually(func() error { return e.read(&networkingv1.Ingress{}, "demo-head-ingress") }).Should(Succeed())
				e.change(cluster, func(c *rayv1.RayCluster) { c.Spec.HeadGroupSpec.EnableIngress = ptr.To(false) })
				e.Eventually(func() bool { return isGone(e.read(&networkingv1.Ingress{}, "demo-head-ingress")) }).Should(BeTrue())
			}},
	}
}
