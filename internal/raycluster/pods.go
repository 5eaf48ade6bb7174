package raycluster

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/ray"
)

// HeadPod returns the head Pod of a RayCluster in the given incarnation. It is a pure function of its arguments and
// leaves them alone. A spec that Validate refuses yields a Pod that the API server refuses, never a panic.
func HeadPod(cluster *rayv1.RayCluster, settings Settings, incarnation int64) *corev1.Pod {
	head := &cluster.Spec.HeadGroupSpec
	b := newBuild(cluster, settings, &head.Template)
	b.node.Role = ray.Head
	b.node.Params, b.node.Resources, b.node.Labels = head.RayStartParams, head.Resources, head.Labels
	b.node.GracePeriod = b.pod.Spec.TerminationGracePeriodSeconds
	b.pod.Name = HeadPodName(cluster, settings, incarnation)
	b.pod.Labels = headLabels(cluster)
	b.slot = PodSlot{Group: rayv1.HeadGroupName, Incarnation: incarnation}
	return b.run(
		(*build).setIncarnation,
		(*build).completeParams,
		(*build).copyOverwriteAnnotation,
		(*build).addAutoscaler,
		(*build).setStorage,
		(*build).addMetricsPort,
		(*build).setAuth,
		(*build).addSidecars,
		(*build).addDefaults,
		(*build).markServe,
		(*build).addSharedMemory,
		(*build).shareLogs,
		(*build).setCommand,
		(*build).setEnvironment,
		(*build).setProbes,
		(*build).setGracePeriod,
		(*build).setOwner,
		(*build).markVersion,
	)
}

// WorkerPod returns the Pod of a worker group in a slot. It is a pure function of its arguments and leaves them alone.
func WorkerPod(cluster *rayv1.RayCluster, group *rayv1.WorkerGroupSpec, settings Settings, slot PodSlot) *corev1.Pod {
	b := newBuild(cluster, settings, &group.Template)
	b.node.Role = ray.Worker
	b.node.Params, b.node.Resources, b.node.Labels = group.RayStartParams, group.Resources, group.Labels
	b.node.GracePeriod = b.pod.Spec.TerminationGracePeriodSeconds
	b.pod.Name = WorkerPodName(cluster, slot)
	b.pod.Labels = mergeLabels(ownLabels(cluster, rayv1.NodeTypeWorker, group.GroupName), group.Template.Labels, group.Labels)
	b.slot, b.hosts = slot, group.NumOfHosts
	return b.run(
		(*build).addWaitForGCS,
		(*build).setIncarnation,
		(*build).setIndices,
		(*build).completeParams,
		(*build).copyOverwriteAnnotation,
		(*build).neverRestart,
		(*build).awaitHead,
		(*build).addMetricsPort,
		(*build).setAuth,
		(*build).addSidecars,
		(*build).addDefaults,
		(*build).markServe,
		(*build).addSharedMemory,
		(*build).setCommand,
		(*build).setEnvironment,
		(*build).setProbes,
		(*build).setGracePeriod,
		(*build).setDrain,
		(*build).setOwner,
		func(b *build) { b.annotate(rayv1.AnnotationRecreateHash, WorkerHash(&cluster.Spec, group)) },
	)
}

// build is a Pod in the making. Each method below is one step; the order of the steps matters, because most of them
// add only what is not there yet.
type build struct {
	cluster  *rayv1.RayCluster
	settings Settings
	slot     PodSlot
	hosts    int32
	node     ray.Node
	auth     ray.Auth
	pod      *corev1.Pod
	// params and start are there after completeParams and setCommand.
	params map[string]string
	start  string
}

// newBuild begins with a copy of a template. Its name and namespace do not count: two clusters that share a template
// would otherwise fight for one Pod.
func newBuild(cluster *rayv1.RayCluster, settings Settings, template *corev1.PodTemplateSpec) *build {
	template = template.DeepCopy()
	return &build{
		cluster:  cluster,
		settings: settings,
		auth:     AuthOf(cluster),
		node: ray.Node{Cluster: ray.Cluster{
			HeadHost:        ServiceHost(HeadServiceName(cluster), cluster.Namespace, settings.ClusterDomain),
			GCSPort:         ray.GCSPort(cluster.Spec.HeadGroupSpec.RayStartParams),
			Version:         cluster.Spec.RayVersion,
			CreatedBy:       cluster.Labels[rayv1.LabelOriginatedFromKind],
			OperatorVersion: settings.OperatorVersion,

			ServeProxyLocation: cluster.Annotations[rayv1.AnnotationServeProxyLocation],
		}},
		pod: &corev1.Pod{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{
				Namespace:   cluster.Namespace,
				Annotations: template.Annotations,
				Finalizers:  template.Finalizers,
			},
			Spec: template.Spec,
		},
	}
}

func (b *build) run(steps ...func(*build)) *corev1.Pod {
	if len(b.pod.Spec.Containers) == 0 {
		return b.pod
	}
	for _, step := range steps {
		step(b)
	}
	return b.pod
}

// container returns the Ray container. Steps must not keep it, because others append containers.
func (b *build) container() *corev1.Container {
	return &b.pod.Spec.Containers[0]
}

func (b *build) shell() ray.Shell {
	return ray.Shell{Login: b.settings.LoginShell}
}

func (b *build) annotate(key, value string) {
	if b.pod.Annotations == nil {
		b.pod.Annotations = map[string]string{}
	}
	b.pod.Annotations[key] = value
}

// addWaitForGCS comes first, because the init container copies the Ray container as the user wrote it.
func (b *build) addWaitForGCS() {
	if !b.settings.InjectInitContainer {
		return
	}
	b.pod.Spec.InitContainers = append(b.pod.Spec.InitContainers, b.node.WaitForGCS(b.container(), b.shell()))
}

func (b *build) setIncarnation() {
	b.pod.Labels[rayv1.LabelIncarnation] = strconv.FormatInt(b.slot.Incarnation, 10)
}

func (b *build) setIndices() {
	b.pod.Labels[rayv1.LabelWorkerGroupReplicaIndex] = strconv.Itoa(b.slot.Replica)
	if b.hosts <= 1 {
		return
	}
	b.pod.Labels[rayv1.LabelWorkerGroupReplicaName] = ReplicaName(b.cluster.UID, b.slot.Group, b.slot.Replica)
	b.pod.Labels[rayv1.LabelReplicaHostIndex] = strconv.Itoa(b.slot.Host)
	b.annotate(rayv1.AnnotationHosts, strconv.Itoa(int(b.hosts)))
}

func (b *build) completeParams() {
	b.params = b.node.StartParams(b.container())
}

// copyOverwriteAnnotation lets the wish of the RayCluster, which concerns all its Pods, stand on each of them.
func (b *build) copyOverwriteAnnotation() {
	if strings.EqualFold(b.cluster.Annotations[rayv1.AnnotationOverwriteContainerCommand], "true") {
		b.annotate(rayv1.AnnotationOverwriteContainerCommand, "true")
	}
}

func (b *build) addMetricsPort() {
	ray.AddMetricsPort(b.container())
}

// setAuth concerns the containers that connect to the GCS on their own. The autoscaler has what it needs already.
func (b *build) setAuth() {
	b.auth.AddVolume(&b.pod.Spec)
	b.auth.Set(b.container(), b.settings.DefaultContainerEnvs)
	for i := range b.pod.Spec.InitContainers {
		if c := &b.pod.Spec.InitContainers[i]; c.Name == ray.WaitForGCSContainer {
			b.auth.Set(c, b.settings.DefaultContainerEnvs)
		}
	}
}

func (b *build) addSidecars() {
	sidecars := b.settings.WorkerSidecarContainers
	if b.node.Role == ray.Head {
		sidecars = b.settings.HeadSidecarContainers
	}
	for i := range sidecars {
		b.pod.Spec.Containers = append(b.pod.Spec.Containers, *sidecars[i].DeepCopy())
	}
}

func (b *build) addDefaults() {
	for key, value := range b.settings.DefaultPodAnnotations {
		if _, ok := b.pod.Annotations[key]; !ok {
			b.annotate(key, value)
		}
	}
	for key, value := range b.settings.DefaultPodLabels {
		if _, ok := b.pod.Labels[key]; !ok {
			b.pod.Labels[key] = value
		}
	}
}

// markServe tells the Service of a RayService which Pods to send requests to: workers that will have a proxy. The head joins
// when its proxy is up; the controller of RayServices changes the label then.
func (b *build) markServe() {
	if !madeForRayService(b.cluster) {
		return
	}
	b.pod.Labels[rayv1.LabelServe] = strconv.FormatBool(b.node.Role == ray.Worker && b.node.RunsServeProxy())
}

func (b *build) addSharedMemory() {
	ray.AddSharedMemory(&b.pod.Spec, b.params)
}

func (b *build) setCommand() {
	b.start = ray.StartCommand(b.node.Role, b.params)
	ray.SetCommand(b.container(), b.start, b.shell(), b.ownCommand())
}

func (b *build) ownCommand() ray.OwnCommand {
	switch {
	case strings.EqualFold(b.pod.Annotations[rayv1.AnnotationOverwriteContainerCommand], "true"):
		return ray.IsAll
	case strings.EqualFold(b.cluster.Annotations[rayv1.AnnotationCommandMustSucceed], "true"):
		return ray.MustSucceed
	default:
		return ray.RunsFirst
	}
}

func (b *build) setEnvironment() {
	for i := range b.pod.Spec.InitContainers {
		b.node.SetHeadHost(&b.pod.Spec.InitContainers[i])
	}
	b.node.SetEnvironment(b.container(), b.start, b.settings.DefaultContainerEnvs)
}

func (b *build) setProbes() {
	if b.settings.InjectProbes {
		b.node.SetProbes(b.container(), b.params)
	}
}

func (b *build) setGracePeriod() {
	b.node.SetGracePeriod(&b.pod.Spec)
}

// setDrain leaves alone what runs Ray by other means.
func (b *build) setDrain() {
	if b.ownCommand() != ray.IsAll {
		b.node.SetDrain(&b.pod.Spec, b.shell())
	}
}

func (b *build) setOwner() {
	b.pod.OwnerReferences = ownerReferences(b.cluster)
}

// markVersion says by which operator and from which spec the head was made.
func (b *build) markVersion() {
	b.annotate(rayv1.AnnotationRecreateHash, HeadHash(&b.cluster.Spec))
	b.annotate(rayv1.AnnotationOperatorVersion, b.settings.OperatorVersion)
}

// ownerReferences makes an object go when its RayCluster goes.
func ownerReferences(cluster *rayv1.RayCluster) []metav1.OwnerReference {
	return []metav1.OwnerReference{
		*metav1.NewControllerRef(cluster, rayv1.GroupVersion.WithKind(rayv1.KindRayCluster)),
	}
}

// headLabels returns the labels of a RayCluster's head Pods, apart from those that later steps add. The head Service
// selects by them.
func headLabels(cluster *rayv1.RayCluster) map[string]string {
	head := &cluster.Spec.HeadGroupSpec
	return mergeLabels(ownLabels(cluster, rayv1.NodeTypeHead, rayv1.HeadGroupName), head.Template.Labels, head.Labels)
}

func ownLabels(cluster *rayv1.RayCluster, nodeType, group string) map[string]string {
	identifier := WorkerIdentifier(cluster.Name)
	if nodeType == rayv1.NodeTypeHead {
		identifier = HeadIdentifier(cluster.Name)
	}
	return map[string]string{
		rayv1.LabelCluster:    cluster.Name,
		rayv1.LabelNodeType:   nodeType,
		rayv1.LabelGroup:      group,
		rayv1.LabelIdentifier: identifier,
		rayv1.LabelIsRayNode:  rayv1.IsRayNodeYes,
		rayv1.LabelAppName:    rayv1.AppName,
		rayv1.LabelCreatedBy:  rayv1.CreatedByOperator,
	}
}

// mergeLabels lays the user's labels over our own, later ones over earlier ones. Those by which Services, caches and
// clients find the Pod stay ours, except for the application's name: its users choose it, and the head Service
// follows them.
func mergeLabels(own map[string]string, users ...map[string]string) map[string]string {
	reserved := []string{
		rayv1.LabelCluster, rayv1.LabelNodeType, rayv1.LabelGroup, rayv1.LabelIdentifier, rayv1.LabelCreatedBy,
	}
	merged := maps.Clone(own)
	for _, labels := range users {
		for key, value := range labels {
			if !slices.Contains(reserved, key) {
				merged[key] = value
			}
		}
	}
	return merged
}
