package diagnose

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

func TestScaling(t *testing.T) {
	group := func(change func(*rayv1.WorkerGroupSpec)) func(*Snapshot) {
		return func(s *Snapshot) { change(&demo(s).Spec.WorkerGroupSpecs[0]) }
	}
	log := func(text string) func(*Snapshot) {
		return func(s *Snapshot) { s.Logs = map[string]string{LogKey("demo-head", "autoscaler"): text} }
	}
	written := func(by string, since time.Duration) func(*Snapshot) {
		return func(s *Snapshot) {
			demo(s).ManagedFields[0].Manager, demo(s).ManagedFields[0].Time = by, ptr.To(ago(since))
		}
	}
	testWhole(t, map[string]wholeCase{
		"a head without the autoscaler": {func(s *Snapshot) { headOf(s).Spec.Containers = headOf(s).Spec.Containers[:1] }, []string{"autoscaler-missing Pod demo-head"}},
		"a head without it, and none is asked for": {func(s *Snapshot) {
			demo(s).Spec.EnableInTreeAutoscaling = nil
			headOf(s).Spec.Containers = headOf(s).Spec.Containers[:1]
		}, nil},
		"an autoscaler that does not run": {func(s *Snapshot) {
			headOf(s).Status.ContainerStatuses[1] = corev1.ContainerStatus{Name: "autoscaler", State: waiting("ContainerCreating", "")}
		}, []string{"autoscaler-not-ready Pod demo-head"}},
		"one that crashes, which the rules about Pods tell": {func(s *Snapshot) {
			headOf(s).Status.ContainerStatuses[1] = corev1.ContainerStatus{Name: "autoscaler", State: waiting("CrashLoopBackOff", "")}
		}, nil},
		"one that says nothing":           {log(" \n"), []string{"autoscaler-silent Pod demo-head"}},
		"one that speaks":                 {log("resizing\n"), nil},
		"one that finds no group":         {log("No available node types can fulfill resource request {'GPU': 8.0}. Add suitable node types"), []string{"autoscaler-cannot-fulfil Pod demo-head"}},
		"more replicas than the greatest": {group(func(g *rayv1.WorkerGroupSpec) { g.Replicas, g.MaxReplicas = ptr.To[int32](3), ptr.To[int32](1) }), []string{"replicas-outside-limits RayCluster demo"}},
		"fewer replicas than the least, and nobody makes more": {group(func(g *rayv1.WorkerGroupSpec) {
			g.Replicas, g.MinReplicas = ptr.To[int32](1), ptr.To[int32](2)
		}), []string{"replicas-outside-limits RayCluster demo", "workers-missing RayCluster demo"}},
		"replicas that were left out": {group(func(g *rayv1.WorkerGroupSpec) { g.Replicas, g.MinReplicas = ptr.To[int32](0), ptr.To[int32](1) }), nil},
		"a group at its greatest":     {group(func(g *rayv1.WorkerGroupSpec) { g.MaxReplicas = ptr.To[int32](1) }), nil},
		"workers that nobody makes":   {group(func(g *rayv1.WorkerGroupSpec) { g.Replicas = ptr.To[int32](2) }), []string{"workers-missing RayCluster demo"}},
		"hosts that nobody makes":     {group(func(g *rayv1.WorkerGroupSpec) { g.NumOfHosts = 4 }), []string{"workers-missing RayCluster demo"}},
		"a group that is suspended":   {group(func(g *rayv1.WorkerGroupSpec) { g.Replicas, g.Suspend = ptr.To[int32](2), ptr.To(true) }), nil},
		"workers that were asked for just now": {func(s *Snapshot) {
			demo(s).Spec.WorkerGroupSpecs[0].Replicas = ptr.To[int32](2)
			written(pythonManager, time.Minute)(s)
		}, nil},
		"workers that a quota refuses": {func(s *Snapshot) {
			demo(s).Spec.WorkerGroupSpecs[0].Replicas = ptr.To[int32](2)
			refusedWith(quotaText)(s)
		}, []string{"quota-exceeded RayCluster demo"}},
		"replicas that a tool sets back":        {written("argocd-controller", 10*time.Minute), []string{"replicas-overwritten RayCluster demo"}},
		"replicas that a tool set at the start": {written("argocd-controller", time.Hour), nil},
		"replicas that the autoscaler sets":     {written(pythonManager, 10*time.Minute), nil},
		"a cluster that is suspended, without Pods and Services": {func(s *Snapshot) {
			demo(s).Spec.Suspend = ptr.To(true)
			s.Pods = []*corev1.Pod{}
		}, []string{"suspended RayCluster demo"}},
		"a RayService that is suspended": {func(s *Snapshot) { s.Service.Spec.Suspend = true }, []string{"suspended RayService chat"}},
	})
}

func TestLastWriter(t *testing.T) {
	raw := metav1.NewFieldsV1(`{"f:spec":{"f:workerGroupSpecs":{}}}`)
	for manager, want := range map[string]string{
		"python-requests": "Ray's autoscaler (python-requests)", "kubectl-edit": "a person (kubectl-edit)", "ray-kubectl-plugin": "a person (ray-kubectl-plugin)",
		"argocd-controller": "a tool that applies manifests again and again (argocd-controller)", "helm": "Helm (helm)", "heliostat": "the operator (heliostat)",
		"mine": "mine",
	} {
		older, newer := ago(time.Hour), ago(time.Minute)
		cluster := &rayv1.RayCluster{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{
			{Manager: manager, Time: &newer, FieldsV1: raw}, {Manager: "other", Time: &older, FieldsV1: raw},
			{Manager: "status", Time: &newer, Subresource: "status", FieldsV1: raw}}}}
		if got, _ := LastWriter(cluster); got != want {
			t.Errorf("%s: got %q, want %q", manager, got, want)
		}
	}
}
