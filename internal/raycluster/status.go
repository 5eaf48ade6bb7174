package raycluster

import (
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
)

// status returns the status write of the pass, nil when nothing changed that must be written now, and the events that go
// with a change.
func (p *planner) status() (*action.StatusWrite, []action.Event) {
	base := p.snapshot.Cluster
	next := base.DeepCopy()
	st := &next.Status
	st.ObservedGeneration = base.Generation
	st.Incarnations = p.incarnations
	st.RedisStorages = storages(p.cluster)
	p.counts(st)
	p.locations(st)
	events := p.conditions(st)
	p.state(st)
	events = p.troubled(next, events)
	p.lastCensus(st, func() bool { return equality.Semantic.DeepEqual(base.Status, *st) })
	if equality.Semantic.DeepEqual(base.Status, *st) {
		return nil, nil
	}
	if left := mergeFor(&base.Status, st, p.now); left > 0 {
		p.again(left)
		return nil, nil
	}
	now := metav1.NewTime(p.now.Truncate(timeGrain))
	st.LastUpdateTime = &now
	return &action.StatusWrite{Object: next, Base: base, Why: whatChanged(&base.Status, st)}, events
}

// counts fills the numbers of wanted and existing workers and the wanted resources. What is wanted is what the plan acts
// upon, and does not depend on whether the cluster is suspended.
func (p *planner) counts(st *rayv1.RayClusterStatus) {
	spec := &p.cluster.Spec
	st.DesiredWorkerReplicas = DesiredWorkers(spec)
	st.MinWorkerReplicas = MinWorkers(spec)
	st.MaxWorkerReplicas = MaxWorkers(spec)
	st.AvailableWorkerReplicas, st.ReadyWorkerReplicas = 0, 0
	for _, pod := range p.snapshot.Pods {
		if pod.Labels[rayv1.LabelNodeType] != rayv1.NodeTypeWorker || pod.DeletionTimestamp != nil {
			continue
		}
		if pod.Status.Phase == corev1.PodRunning {
			st.AvailableWorkerReplicas++
		}
		if podReady(pod) {
			st.ReadyWorkerReplicas++
		}
	}
	wanted := DesiredResources(p.cluster, p.settings)
	st.DesiredCPU, st.DesiredMemory, st.DesiredGPU, st.DesiredTPU = wanted.CPU, wanted.Memory, wanted.GPU, wanted.TPU
}

// locations fills where the head and its Service are found.
func (p *planner) locations(st *rayv1.RayClusterStatus) {
	st.Head, st.Endpoints = rayv1.HeadInfo{}, nil
	if head := p.liveHead(); head != nil {
		st.Head.PodName, st.Head.PodIP = head.Name, head.Status.PodIP
	}
	service := p.snapshot.service(HeadServiceName(p.cluster))
	if service == nil || !metav1.IsControlledBy(service, p.snapshot.Cluster) {
		return
	}
	st.Head.ServiceName, st.Head.ServiceIP = service.Name, service.Spec.ClusterIP
	if service.Spec.ClusterIP == corev1.ClusterIPNone {
		st.Head.ServiceIP = st.Head.PodIP
	}
	st.Endpoints = endpointsOf(service)
}

// endpointsOf gives for each named port the node port, else the target port, as clients of the status expect.
func endpointsOf(service *corev1.Service) map[string]string {
	endpoints := map[string]string{}
	for _, port := range service.Spec.Ports {
		switch {
		case port.Name == "":
		case port.NodePort != 0:
			endpoints[port.Name] = strconv.Itoa(int(port.NodePort))
		case port.TargetPort != (intstr.IntOrString{}):
			endpoints[port.Name] = port.TargetPort.String()
		}
	}
	return endpoints
}

func (p *planner) liveHead() *corev1.Pod {
	heads := membersOf(p.snapshot.Pods, rayv1.HeadGroupName)
	var best *corev1.Pod
	for _, pod := range heads.live {
		if best == nil || byWorth(pod, best) < 0 {
			best = pod
		}
	}
	return best
}

// allReady tells whether each group has exactly the Pods that it wants and all of them are ready.
func (p *planner) allReady() bool {
	wanted := map[string]int64{rayv1.HeadGroupName: 1}
	for i := range p.cluster.Spec.WorkerGroupSpecs {
		group := &p.cluster.Spec.WorkerGroupSpecs[i]
		if count := podsOf(group, GroupReplicas(group)); count > 0 {
			wanted[group.GroupName] = count
		}
	}
	have := map[string]int64{}
	for _, pod := range p.snapshot.Pods {
		if pod.DeletionTimestamp != nil {
			continue
		}
		if !podReady(pod) {
			return false
		}
		have[groupOf(pod)]++
	}
	return maps.Equal(wanted, have)
}

// state derives the legacy one-word state, and the time of its last change.
func (p *planner) state(st *rayv1.RayClusterStatus) {
	state := rayv1.ClusterStateNew
	switch {
	case p.suspend == suspended:
		state = rayv1.ClusterStateSuspended
	case p.suspend == running && !p.frozen && p.allReady():
		state = rayv1.ClusterStateReady
		st.Reason = ""
	}
	if state == st.State {
		return
	}
	st.State = state
	if state == rayv1.ClusterStateNew {
		return
	}
	now := metav1.NewTime(p.now.Truncate(time.Second))
	st.StateTransitionTimes = maps.Clone(st.StateTransitionTimes)
	if st.StateTransitionTimes == nil {
		st.StateTransitionTimes = map[rayv1.ClusterState]*metav1.Time{}
	}
	st.StateTransitionTimes[state] = &now
}

// whatChanged names the most telling change for the log line.
func whatChanged(before, after *rayv1.RayClusterStatus) string {
	switch {
	case before.State != after.State:
		return "state is now \"" + string(after.State) + "\""
	case !equality.Semantic.DeepEqual(before.Conditions, after.Conditions):
		return "conditions changed"
	case !maps.Equal(before.Incarnations, after.Incarnations):
		return "incarnations are handed out"
	case !slices.Equal(stages(before.Recoveries), stages(after.Recoveries)):
		return "what a loss took"
	case !equality.Semantic.DeepEqual(before.RedisStorages, after.RedisStorages):
		return "where the head keeps its state in Redis"
	case leaves(before.LastCensus, after.LastCensus):
		return "Pods are no longer to be missed"
	case before.ReadyWorkerReplicas != after.ReadyWorkerReplicas:
		return "ready workers changed"
	default:
		return "observed facts changed"
	}
}
