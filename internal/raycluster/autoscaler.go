package raycluster

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/ray"
)

// autoscalerVersion returns the version that the options name, or "" when they leave the choice to Ray.
func autoscalerVersion(cluster *rayv1.RayCluster) rayv1.AutoscalerVersion {
	if cluster.Spec.AutoscalerOptions == nil {
		return ""
	}
	return ptr.Deref(cluster.Spec.AutoscalerOptions.Version, "")
}

// addAutoscaler puts Ray's autoscaler beside the head, with the account under which it may scale the cluster.
func (b *build) addAutoscaler() {
	if !autoscaling(b.cluster) {
		return
	}
	ray.LeaveScalingToSidecar(b.params)
	if version := autoscalerVersion(b.cluster); version != "" {
		ray.SetAutoscalerVersion(b.container(), version == rayv1.AutoscalerVersionV2)
	}
	b.neverRestart()
	b.pod.Spec.ServiceAccountName = AutoscalerAccountName(b.cluster)
	b.pod.Spec.Containers = append(b.pod.Spec.Containers, b.autoscaler())
}

// neverRestart is what version v2 of the autoscaler needs: a restarted container would be a new Ray node in a Pod that
// the autoscaler has given up.
func (b *build) neverRestart() {
	if autoscaling(b.cluster) && autoscalerVersion(b.cluster) == rayv1.AutoscalerVersionV2 {
		b.pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	}
}

// autoscaler returns the container of the autoscaler with the user's options.
func (b *build) autoscaler() corev1.Container {
	container := ray.Autoscaler(b.container().Image, b.shell())
	options := b.cluster.Spec.AutoscalerOptions.DeepCopy()
	if options == nil {
		options = &rayv1.AutoscalerOptions{}
	}
	if b.pod.Spec.RestartPolicy == corev1.RestartPolicyNever {
		ray.KeepRunning(&container)
	}
	container.EnvFrom = options.EnvFrom
	b.auth.Set(&container, slices.Concat(b.settings.DefaultContainerEnvs, options.Env))
	container.Env = append(container.Env, options.Env...)
	container.VolumeMounts = append(container.VolumeMounts, options.VolumeMounts...)
	container.Image = ptr.Deref(options.Image, container.Image)
	container.ImagePullPolicy = ptr.Deref(options.ImagePullPolicy, container.ImagePullPolicy)
	container.Resources = ptr.Deref(options.Resources, container.Resources)
	container.SecurityContext = options.SecurityContext
	if len(options.Command)+len(options.Args) > 0 {
		// Who writes one of the two knows the plain start line, not the one around it.
		container.Args = ray.Autoscaler("", b.shell()).Args
	}
	if len(options.Command) > 0 {
		container.Command = options.Command
	}
	if len(options.Args) > 0 {
		container.Args = options.Args
	}
	return container
}

// shareLogs lets the autoscaler write where the head's dashboard looks for its log.
func (b *build) shareLogs() {
	if autoscaling(b.cluster) {
		ray.ShareLogs(&b.pod.Spec, ray.AutoscalerContainer)
	}
}

// noteGroups says what Ray will not understand, or not do well, in the groups of the cluster.
func (p *planner) noteGroups() {
	head := &p.cluster.Spec.HeadGroupSpec
	if mounts := head.Template.Spec.AutomountServiceAccountToken; autoscaling(p.cluster) && !ptr.Deref(mounts, true) {
		p.notes = append(p.notes, "headGroupSpec: with automountServiceAccountToken false, Ray's autoscaler cannot reach the API server")
	}
	p.noteGroup("headGroupSpec", ray.Head, &head.Template, head.RayStartParams, head.Resources)
	for i := range p.cluster.Spec.WorkerGroupSpecs {
		group := &p.cluster.Spec.WorkerGroupSpecs[i]
		p.noteGroup("group "+group.GroupName, ray.Worker, &group.Template, group.RayStartParams, group.Resources)
		policy := group.Template.Spec.RestartPolicy
		v1 := autoscaling(p.cluster) && autoscalerVersion(p.cluster) == rayv1.AutoscalerVersionV1
		if v1 && policy != "" && policy != corev1.RestartPolicyNever {
			p.notes = append(p.notes, fmt.Sprintf("group %s: with restartPolicy %s, a worker that the autoscaler stops may start "+
				"again in its Pod; Never is the safe value", group.GroupName, policy))
		}
	}
}

func (p *planner) noteGroup(name string, role ray.Role, template *corev1.PodTemplateSpec, params, resources map[string]string) {
	for _, problem := range ray.ResourceProblems(params, resources) {
		p.notes = append(p.notes, name+": "+problem)
	}
	if !autoscaling(p.cluster) || len(template.Spec.Containers) == 0 {
		return
	}
	node := ray.Node{Role: role, Params: params, Resources: resources}
	if !node.CPUsKnown(&template.Spec.Containers[0]) {
		p.notes = append(p.notes, name+": Ray's autoscaler fails on a group whose number of CPUs it cannot tell: set num-cpus in "+
			"rayStartParams, or a CPU limit or request on the first container")
	}
}
