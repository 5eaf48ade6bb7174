package integration

import (
	"slices"
	"strings"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/config"
	"github.com/heliostat-io/heliostat/test/harness"
)

// deployed makes the Deployment of an operator that may do everything, which all namespaces see. Both go with the fault.
func (s *scene) deployed(available int32) {
	s.t.Helper()
	all := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: s.ns},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "system:serviceaccounts:" + s.ns}}}
	s.make(all)
	template := harness.PodTemplate("heliostat")
	template.Labels = map[string]string{rayv1.LabelAppName: "heliostat"}
	deployment := &appsv1.Deployment{ObjectMeta: s.meta("heliostat"), Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template}}
	deployment.Labels = template.Labels
	s.make(deployment)
	s.t.Cleanup(func() {
		for _, object := range []client.Object{deployment, all} {
			if err := s.Delete(s.after(), object); err != nil {
				s.t.Errorf("delete %T %s: %v", object, object.GetName(), err)
			}
		}
	})
	s.patchStatus(deployment, func() {
		deployment.Status.Replicas, deployment.Status.ReadyReplicas, deployment.Status.AvailableReplicas = 1, available, available
	})
}

// lease makes the Lease that the replicas of an operator compete for.
func (s *scene) lease(renewed time.Duration, transitions int32) {
	s.t.Helper()
	now := metav1.NewMicroTime(time.Now())
	s.make(&coordinationv1.Lease{ObjectMeta: s.meta(config.LeaseName), Spec: coordinationv1.LeaseSpec{
		HolderIdentity: ptr.To("heliostat-1_somebody"), LeaseDurationSeconds: ptr.To[int32](15), LeaseTransitions: &transitions,
		AcquireTime: &now, RenewTime: ptr.To(metav1.NewMicroTime(now.Add(-renewed)))}})
}

// schema changes version v1 of a CustomResourceDefinition until the fault is over.
func (s *scene) schema(name string, change func(version map[string]any)) {
	s.t.Helper()
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	crd.SetName(name)
	s.g.Expect(s.Get(s.t.Context(), client.ObjectKeyFromObject(crd), crd)).To(Succeed())
	before := crd.DeepCopy()
	versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	s.g.Expect(err).ToNot(HaveOccurred())
	for _, version := range versions {
		if v := version.(map[string]any); v["name"] == "v1" {
			change(v)
		}
	}
	s.g.Expect(unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions")).To(Succeed())
	s.g.Expect(s.Update(s.t.Context(), crd)).To(Succeed())
	s.t.Cleanup(func() {
		before.SetResourceVersion(crd.GetResourceVersion())
		if err := s.Patch(s.after(), before, client.MergeFrom(crd)); err != nil {
			s.t.Errorf("restore %s: %v", name, err)
		}
	})
}

func operatorFaults() []fault {
	cluster := func(s *scene) { s.cluster() }
	return []fault{
		{name: "nobody has installed an operator", want: "operator-missing", later: longWait, inject: cluster},
		{name: "an operator whose Pods do not start", want: "operator-unavailable", later: longWait, inject: func(s *scene) {
			s.deployed(0)
			s.cluster()
		}},
		{name: "replicas of which none leads", want: "operator-no-leader", inject: func(s *scene) {
			s.deployed(1)
			s.lease(10*time.Minute, 1)
			s.cluster()
		}},
		{name: "replicas that take the Lease from each other", want: "lease-contested", inject: func(s *scene) {
			s.deployed(1)
			s.lease(0, 20)
			s.cluster()
		}},
		{name: "an operator that watches other namespaces", want: "status-not-observed", also: []string{"head-missing", "head-service-missing"}, later: after(90 * time.Second), inject: func(s *scene) {
			s.deployed(1)
			s.lease(0, 1)
			s.cluster()
		}},
		{name: "a schema that an upgrade has left behind", want: "crd-older", inject: func(s *scene) {
			s.deployed(1)
			s.lease(0, 1)
			s.schema("rayclusters.ray.io", func(version map[string]any) {
				unstructured.RemoveNestedField(version, "schema", "openAPIV3Schema", "properties", "spec", "properties", "historyServerOptions")
			})
			s.cluster()
		}},
		{name: "a kind that the API server does not serve", want: "kind-not-installed", of: "rayjob/train", inject: func(s *scene) {
			s.deployed(1)
			s.lease(0, 1)
			s.make(harness.NewJob(s.ns, rayv1.HTTPMode))
			s.schema("rayclusters.ray.io", func(version map[string]any) { version["served"] = false })
		}},
	}
}

// halted makes RayCluster demo by an operator that ends as soon as the cluster is ready.
func (s *scene) halted(edits ...func(*rayv1.RayCluster)) *rayv1.RayCluster {
	s.t.Helper()
	operator := s.Run(s.t, s.ns, harness.Alone())
	cluster := s.ready(edits...)
	operator.Settle(s.t)
	operator.Stop()
	return cluster
}

// haltedFaults are what an operator would mend, had it not been stopped.
func haltedFaults() []fault {
	service := func(s *scene) *corev1.Service {
		service := &corev1.Service{}
		s.g.Expect(s.Get(s.t.Context(), client.ObjectKey{Namespace: s.ns, Name: "demo-head-svc"}, service)).To(Succeed())
		return service
	}
	return append(endedWords(),
		fault{name: "a head that is gone", want: "head-missing", later: longWait, inject: func(s *scene) {
			s.halted()
			s.Kill(s.t, s.head())
		}},
		fault{name: "workers that are gone", want: "workers-missing", later: longWait, inject: func(s *scene) {
			s.halted()
			for _, worker := range s.workers() {
				s.Kill(s.t, worker)
			}
		}},
		fault{name: "a head Service that is gone", want: "head-service-missing", later: longWait, inject: func(s *scene) {
			s.halted()
			s.Lift(s.t, service(s))
		}},
		fault{name: "a head Service of another object", want: "head-service-foreign", later: longWait, inject: func(s *scene) {
			s.halted()
			own := service(s)
			s.Lift(s.t, own)
			other := &corev1.ConfigMap{ObjectMeta: s.meta("other")}
			s.make(other)
			foreign := &corev1.Service{ObjectMeta: s.meta(own.Name), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
			foreign.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(other, corev1.SchemeGroupVersion.WithKind("ConfigMap"))}
			s.make(foreign)
		}},
		fault{name: "a head Service that selects another Pod", want: "head-service-selector", later: longWait, inject: func(s *scene) {
			s.halted()
			own := service(s)
			s.patch(own, func() { own.Spec.Selector["app"] = "another" })
		}},
		fault{name: "a job of which nobody can ask any more", want: "job-failed", of: "rayjob/train", inject: func(s *scene) {
			s.Run(s.t, s.ns, harness.Alone(), harness.Env("RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS", "1"))
			job := s.job(rayv1.HTTPMode, runs)
			s.dashboard(job.Status.RayClusterName).Down()
			s.is(job, rayv1.JobDeploymentStatusFailed)
		}},
	)
}

// nightly makes a RayCronJob of that schedule.
func (s *scene) nightly(schedule string, edits ...func(*rayv1.RayCronJob)) *rayv1.RayCronJob {
	s.t.Helper()
	cron := &rayv1.RayCronJob{ObjectMeta: s.meta("nightly"), Spec: rayv1.RayCronJobSpec{Schedule: schedule, JobTemplate: harness.NewJob(s.ns, rayv1.HTTPMode).Spec}}
	for _, edit := range edits {
		edit(cron)
	}
	s.make(cron)
	return cron
}

// cronFaults are about schedules. What is due within the hour is due at once for an operator whose clock is an hour ahead.
func cronFaults() []fault {
	all := []fault{
		{name: "a schedule", later: ages(), inject: func(s *scene) {
			s.Run(s.t, s.ns, harness.Alone(), cronJobs())
			cron := s.nightly("0 3 * * *")
			s.until("looked at", cron, func() bool { return len(cron.Status.Conditions) > 0 })
		}},
		{name: "a schedule that is suspended", want: "schedule-suspended", inject: func(s *scene) {
			s.Run(s.t, s.ns, harness.Alone(), cronJobs())
			s.nightly("0 3 * * *", func(c *rayv1.RayCronJob) { c.Spec.Suspend = ptr.To(true) })
		}},
		{name: "a schedule that is none, and no operator to say so", want: "schedule-invalid", inject: func(s *scene) { s.nightly("every now and then") }},
		{name: "a tick that was noticed too late", want: "run-missed", inject: func(s *scene) {
			s.nightly("0 * * * *", func(c *rayv1.RayCronJob) { c.Spec.StartingDeadlineSeconds = ptr.To[int64](1) })
			s.Run(s.t, s.ns, harness.Alone(), cronJobs(), harness.Clock(ahead{}))
		}},
		{name: "a namespace that is being deleted", want: "run-refused", inject: func(s *scene) {
			s.nightly("* * * * *")
			s.Lift(s.t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.ns}})
			s.Run(s.t, s.ns, harness.Alone(), cronJobs(), harness.Clock(ahead{}))
		}},
	}
	for i := range all {
		all[i].of = "raycronjob/nightly"
	}
	return all
}

// without runs an operator with the rights of the chart but for some.
func (s *scene) without(taken func(rule *rbacv1.PolicyRule)) {
	s.t.Helper()
	rights := chartRights(s.t, s.Cluster, s.ns)
	role := &rbacv1.Role{ObjectMeta: s.meta("operator")}
	s.g.Expect(s.Get(s.t.Context(), client.ObjectKeyFromObject(role), role)).To(Succeed())
	s.patch(role, func() {
		for i := range role.Rules {
			taken(&role.Rules[i])
		}
	})
	s.Run(s.t, s.ns, harness.Alone(), rights)
}

func rightsFaults() []fault {
	stalls := func(s *scene) {
		cluster := s.cluster()
		s.until("refused", cluster, func() bool {
			return meta.IsStatusConditionTrue(cluster.Status.Conditions, rayv1.ConditionReplicaFailure)
		})
	}
	return []fault{
		{name: "an operator that may not make Pods", want: "operator-forbidden", inject: func(s *scene) {
			s.without(func(rule *rbacv1.PolicyRule) {
				if slices.Contains(rule.Resources, "pods") {
					rule.Verbs = slices.DeleteFunc(rule.Verbs, func(verb string) bool { return verb == "create" })
				}
			})
			stalls(s)
		}},
		{name: "an operator that may not set finalizers of owners", want: "owner-reference-refused", inject: func(s *scene) {
			s.without(func(rule *rbacv1.PolicyRule) {
				rule.Resources = slices.DeleteFunc(rule.Resources, func(resource string) bool { return strings.HasSuffix(resource, "/finalizers") })
				if len(rule.Resources) == 0 {
					rule.Resources = []string{"nothing"}
				}
			})
			stalls(s)
		}},
	}
}

// refusedFaults are what the API server does not take.
func refusedFaults() []fault {
	return []fault{
		{name: "a namespace with restricted Pods", want: "pod-security", inject: func(s *scene) {
			namespace := &corev1.Namespace{}
			s.g.Expect(s.Get(s.t.Context(), client.ObjectKey{Name: s.ns}, namespace)).To(Succeed())
			s.patch(namespace, func() {
				metav1.SetMetaDataLabel(&namespace.ObjectMeta, "pod-security.kubernetes.io/enforce", "restricted")
			})
			s.cluster()
		}},
		{name: "a template that makes no valid Pod", want: "pod-invalid", inject: func(s *scene) {
			s.cluster(func(c *rayv1.RayCluster) { c.Spec.HeadGroupSpec.Template.Spec.DNSPolicy = corev1.DNSNone })
		}},
		{name: "a quota without room", want: "quota-exceeded", inject: func(s *scene) {
			s.LimitPods(s.t, s.ns, 0)
			s.cluster()
		}},
		{name: "a limit on processors", want: "limit-range", inject: func(s *scene) {
			s.LimitCPUs(s.t, s.ns)
			s.cluster(func(c *rayv1.RayCluster) {
				harness.AskFor(&c.Spec.WorkerGroupSpecs[0].Template, map[corev1.ResourceName]string{"cpu": harness.TooManyCPUs})
			})
		}},
	}
}
