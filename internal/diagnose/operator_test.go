package diagnose

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

func TestOperator(t *testing.T) {
	lease := func(change func(*coordinationv1.LeaseSpec)) func(*Snapshot) {
		return func(s *Snapshot) { change(&s.Operator.Leases[0].Spec) }
	}
	micro := func(since time.Duration) *metav1.MicroTime { return ptr.To(metav1.NewMicroTime(now.Add(-since))) }
	// behind has a spec that was changed some time ago and that no status speaks of.
	behind := func(since time.Duration) func(*Snapshot) {
		return func(s *Snapshot) {
			demo(s).Generation, demo(s).ManagedFields[0].Time = 2, ptr.To(ago(since))
		}
	}
	// heldBy gives the Lease to a Pod that is new, after many others had it.
	heldBy := func(restarts int32) func(*Snapshot) {
		return func(s *Snapshot) {
			lease(func(l *coordinationv1.LeaseSpec) {
				l.AcquireTime, l.HolderIdentity = micro(time.Minute), ptr.To("heliostat-7_20261129T115900.000000")
			})(s)
			s.Operator.Pods = []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "heliostat-7", CreationTimestamp: ago(2 * time.Minute)},
				Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{RestartCount: restarts}}}}}
		}
	}
	const deployment = "Deployment ray-system/heliostat"
	testWhole(t, map[string]wholeCase{
		"none": {func(s *Snapshot) {
			s.Operator.Deployments = []*appsv1.Deployment{}
			behind(5 * time.Minute)(s)
		}, []string{"operator-missing Deployment of the operator"}},
		"one that nobody recognizes, and a change": {func(s *Snapshot) {
			s.Operator.Deployments = []*appsv1.Deployment{}
			behind(5 * time.Second)(s)
		}, nil},
		// A deletion counts as a change of the spec, and no status speaks of it.
		"one that nobody recognizes, and a deletion": {func(s *Snapshot) {
			s.Operator.Deployments = []*appsv1.Deployment{}
			behind(5 * time.Minute)(s)
			demo(s).DeletionTimestamp = ptr.To(ago(time.Minute))
		}, nil},
		"none, and the objects of Ray are not known": {func(s *Snapshot) {
			*s = Snapshot{Now: now, Operator: Operator{Deployments: []*appsv1.Deployment{}}}
		}, []string{"operator-missing Deployment of the operator"}},
		"one that nobody recognizes": {func(s *Snapshot) { s.Operator.Deployments = []*appsv1.Deployment{} }, nil},
		"none that could be read":    {func(s *Snapshot) { s.Operator = Operator{} }, nil},
		"no replica":                 {func(s *Snapshot) { s.Operator.Deployments[0].Status.AvailableReplicas = 0 }, []string{"operator-unavailable " + deployment}},
		"no replica yet": {func(s *Snapshot) {
			s.Operator.Deployments[0].Status.AvailableReplicas, s.Operator.Deployments[0].CreationTimestamp = 0, ago(10*time.Second)
		}, nil},
		"scaled to none": {func(s *Snapshot) {
			s.Operator.Deployments[0].Status.AvailableReplicas, s.Operator.Deployments[0].Spec.Replicas = 0, ptr.To[int32](0)
		}, []string{"operator-unavailable " + deployment}},
		"a Lease by a clock that goes differently": {lease(func(l *coordinationv1.LeaseSpec) { l.RenewTime = micro(2 * time.Minute) }), nil},
		"a Lease that nobody renews":               {lease(func(l *coordinationv1.LeaseSpec) { l.RenewTime = micro(5 * time.Minute) }), []string{"operator-no-leader Lease ray-system/ray-operator-leader"}},
		"an old Lease beside one that is renewed": {func(s *Snapshot) {
			old := s.Operator.Leases[0].DeepCopy()
			old.Spec.RenewTime = micro(time.Hour)
			s.Operator.Leases = append([]*coordinationv1.Lease{old}, s.Operator.Leases...)
		}, nil},
		"no Lease, as with a single replica":         {func(s *Snapshot) { s.Operator.Leases = nil }, nil},
		"a Lease that changes hands again and again": {lease(func(l *coordinationv1.LeaseSpec) { l.AcquireTime = micro(time.Minute) }), []string{"lease-contested Lease ray-system/ray-operator-leader"}},
		"a Lease that has changed hands once": {lease(func(l *coordinationv1.LeaseSpec) {
			l.AcquireTime, l.LeaseTransitions = micro(time.Minute), ptr.To[int32](1)
		}), nil},
		"a Lease that has changed hands often in half a year": {func(s *Snapshot) {
			lease(func(l *coordinationv1.LeaseSpec) { l.AcquireTime = micro(time.Minute) })(s)
			s.Operator.Leases[0].CreationTimestamp = ago(180 * 24 * time.Hour)
		}, nil},
		"a Lease of which nobody knows the age": {func(s *Snapshot) {
			lease(func(l *coordinationv1.LeaseSpec) { l.AcquireTime = micro(time.Minute) })(s)
			s.Operator.Leases[0].CreationTimestamp = metav1.Time{}
		}, nil},
		"a Lease that a new Pod has taken":            {heldBy(0), nil},
		"a Lease that a Pod which restarts has taken": {heldBy(2), []string{"lease-contested Lease ray-system/ray-operator-leader"}},
		"a kind that is not installed":                {func(s *Snapshot) { delete(s.Operator.CRDFields, "RayJob") }, []string{"kind-not-installed CustomResourceDefinition rayjobs.ray.io"}},
		"a kind that nobody needs here":               {func(s *Snapshot) { delete(s.Operator.CRDFields, "RayCronJob") }, nil},
		"a schema that lacks a field": {func(s *Snapshot) {
			s.Operator.CRDFields["RayCluster"] = slices.DeleteFunc(s.Operator.CRDFields["RayCluster"], func(f string) bool { return f == "tlsOptions" })
		}, []string{"crd-older CustomResourceDefinition rayclusters.ray.io"}},
		"another controller that does nothing": {func(s *Snapshot) {
			demo(s).Spec.ManagedBy, demo(s).Status = ptr.To(rayv1.ManagedByMultiKueue), rayv1.RayClusterStatus{}
		}, []string{"managed-by-other RayCluster demo"}},
		"another controller that acts":    {func(s *Snapshot) { demo(s).Spec.ManagedBy = ptr.To(rayv1.ManagedByMultiKueue) }, nil},
		"this operator by its name":       {func(s *Snapshot) { demo(s).Spec.ManagedBy = ptr.To(rayv1.ManagedByOperator) }, nil},
		"a change that was not looked at": {behind(5 * time.Minute), []string{"status-not-observed RayCluster demo"}},
		"a change of just now":            {behind(10 * time.Second), nil},
		"a change that KubeRay saw no reason to write of": {func(s *Snapshot) {
			behind(5 * time.Minute)(s)
			kubeRay(s)
		}, nil},
		"a cluster that KubeRay has not looked at": {func(s *Snapshot) {
			kubeRay(s)
			demo(s).Status = rayv1.RayClusterStatus{}
		}, []string{"status-not-observed RayCluster demo"}},
		"a RayJob of KubeRay, which never writes it": {func(s *Snapshot) {
			kubeRay(s)
			s.Jobs[0].Status.ObservedGeneration = 0
		}, nil},
		"a change without a record": {func(s *Snapshot) {
			behind(time.Hour)(s)
			demo(s).ManagedFields = nil
		}, nil},
		"a change of an object that is on its way out": {func(s *Snapshot) {
			behind(5 * time.Minute)(s)
			demo(s).DeletionTimestamp = ptr.To(ago(time.Minute))
		}, nil},
		"a change while the operator is down": {func(s *Snapshot) {
			behind(5 * time.Minute)(s)
			s.Operator.Deployments[0].Status.AvailableReplicas = 0
		}, []string{"operator-unavailable " + deployment}},
	})
}

func TestSpecFieldsAreThoseOfTheAPI(t *testing.T) {
	for kind, field := range map[string]string{"RayCluster": "headGroupSpec", "RayJob": "entrypoint", "RayService": "serveConfigV2", "RayCronJob": "schedule"} {
		fields := specFields(kind)
		if !slices.Contains(fields, field) || slices.Contains(fields, "") {
			t.Errorf("%s: got %q", kind, fields)
		}
	}
}

// kubeRay puts KubeRay in Heliostat's place.
func kubeRay(s *Snapshot) {
	demo(s).Status.Conditions, s.Jobs[0].Status.Conditions, s.Service.Status.Conditions = nil, nil, s.Service.Status.Conditions[:1]
	s.Operator.Deployments[0].Name = "kuberay-operator"
	s.Operator.Deployments[0].Spec.Template.Spec.Containers[0].Image = "quay.io/kuberay/operator:v1.5.0"
	s.Operator.CRDFields["RayCluster"] = []string{"headGroupSpec"}
}
