package diagnose

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/ray"
)

// Kinds that a Pod template refers to by name.
const (
	kindSecret    = "Secret"
	kindConfigMap = "ConfigMap"
	kindAccount   = "ServiceAccount"
	kindClaim     = "PersistentVolumeClaim"
)

// reference is one place in a manifest that names an object which must be there before a Pod can start.
type reference struct {
	kind, name string
	// key is that in a Secret or ConfigMap, or empty when any will do.
	key string
	// path is the field that holds the name, from the object that the user wrote.
	path string
	// in is that object.
	in string
	// pulls is set for Secrets with which only images are pulled.
	pulls bool
}

// references are those of all Pods that are to be made: of living clusters, of jobs and services that have none yet, and of submitters.
func (s *Snapshot) references() []reference {
	var all []reference
	for _, cluster := range s.living() {
		all = append(all, clusterReferences("RayCluster "+cluster.Name, "spec", &cluster.Spec)...)
	}
	for _, job := range s.Jobs {
		o := jobObject(job)
		if o.ended || o.suspended || job.DeletionTimestamp != nil {
			continue
		}
		if spec := job.Spec.RayClusterSpec; spec != nil && s.cluster(job.Status.RayClusterName) == nil {
			all = append(all, clusterReferences(o.String(), "spec.rayClusterSpec", spec)...)
		}
		if template := job.Spec.SubmitterPodTemplate; template != nil && submits(job) {
			all = append(all, podReferences(o.String(), "spec.submitterPodTemplate", &template.Spec)...)
		}
	}
	if service := s.serving(); service != nil && len(s.Clusters) == 0 {
		all = append(all, clusterReferences(serviceObject(service).String(), "spec.rayClusterConfig", &service.Spec.RayClusterConfig)...)
	}
	slices.SortStableFunc(all, func(a, b reference) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name), cmp.Compare(a.key, b.key), cmp.Compare(a.in, b.in), cmp.Compare(a.path, b.path))
	})
	return all
}

// imageDenied tells whether a registry refuses an image of a Pod.
func (s *Snapshot) imageDenied() bool {
	return slices.ContainsFunc(s.Pods, func(pod *corev1.Pod) bool {
		finding := s.trouble(pod)
		return finding.Found() && identify(finding.Reason, finding.Message, "", nil) == idImageDenied
	})
}

// Needs are the names of the Secrets and ConfigMaps that the objects in the Snapshot refer to, sorted. The others of the namespace are
// nobody's business.
func (s *Snapshot) Needs() (secrets, configMaps []string) {
	for _, r := range s.references() {
		switch r.kind {
		case kindSecret:
			secrets = append(secrets, r.name)
		case kindConfigMap:
			configMaps = append(configMaps, r.name)
		}
	}
	return slices.Compact(secrets), slices.Compact(configMaps)
}

// submits tells whether a Kubernetes Job submits the job, which is so unless another way is asked for.
func submits(job *rayv1.RayJob) bool {
	return job.Spec.SubmissionMode == "" || job.Spec.SubmissionMode == rayv1.K8sJobMode
}

func clusterReferences(in, path string, spec *rayv1.RayClusterSpec) []reference {
	all := podReferences(in, path+".headGroupSpec.template", &spec.HeadGroupSpec.Template.Spec)
	for i := range spec.WorkerGroupSpecs {
		group := &spec.WorkerGroupSpecs[i]
		if isTrue(group.Suspend) || wantedReplicas(group) == 0 {
			continue // nobody makes a Pod of it
		}
		all = append(all, podReferences(in, fmt.Sprintf("%s.workerGroupSpecs[%d].template", path, i), &group.Template.Spec)...)
	}
	if o := spec.AutoscalerOptions; o != nil && isTrue(spec.EnableInTreeAutoscaling) {
		all = append(all, envReferences(in, path+".autoscalerOptions", o.Env, o.EnvFrom)...)
	}
	if a := spec.AuthOptions; a != nil && a.Mode == rayv1.AuthModeToken && a.SecretName != nil {
		all = append(all, reference{kind: kindSecret, name: *a.SecretName, key: ray.TokenKey, path: path + ".authOptions.secretName", in: in})
	}
	if g := spec.GcsFaultToleranceOptions; g != nil {
		all = append(all, storageReferences(in, path+".gcsFaultToleranceOptions", g)...)
	}
	return all
}

func storageReferences(in, path string, options *rayv1.GcsFaultToleranceOptions) []reference {
	var all []reference
	for field, credential := range map[string]*rayv1.RedisCredential{"redisUsername": options.RedisUsername, "redisPassword": options.RedisPassword} {
		if credential != nil {
			all = append(all, sourceReferences(in, path+"."+field+".valueFrom", credential.ValueFrom)...)
		}
	}
	if options.Storage != nil && options.Storage.ClaimName != "" {
		all = append(all, reference{kind: kindClaim, name: options.Storage.ClaimName, path: path + ".storage.claimName", in: in})
	}
	return all
}

func podReferences(in, path string, pod *corev1.PodSpec) []reference {
	path += ".spec"
	var all []reference
	if pod.ServiceAccountName != "" {
		all = append(all, reference{kind: kindAccount, name: pod.ServiceAccountName, path: path + ".serviceAccountName", in: in})
	}
	for i, secret := range pod.ImagePullSecrets {
		all = append(all, reference{kind: kindSecret, name: secret.Name, path: fmt.Sprintf("%s.imagePullSecrets[%d]", path, i), in: in, pulls: true})
	}
	for i := range pod.InitContainers {
		c := &pod.InitContainers[i]
		all = append(all, envReferences(in, fmt.Sprintf("%s.initContainers[%d]", path, i), c.Env, c.EnvFrom)...)
	}
	for i := range pod.Containers {
		c := &pod.Containers[i]
		all = append(all, envReferences(in, fmt.Sprintf("%s.containers[%d]", path, i), c.Env, c.EnvFrom)...)
	}
	for i := range pod.Volumes {
		all = append(all, volumeReferences(in, fmt.Sprintf("%s.volumes[%d]", path, i), &pod.Volumes[i])...)
	}
	return all
}

func envReferences(in, path string, env []corev1.EnvVar, from []corev1.EnvFromSource) []reference {
	var all []reference
	for i := range env {
		all = append(all, sourceReferences(in, fmt.Sprintf("%s.env[%d].valueFrom", path, i), env[i].ValueFrom)...)
	}
	for i, source := range from {
		at := fmt.Sprintf("%s.envFrom[%d]", path, i)
		if r := source.SecretRef; r != nil && !isTrue(r.Optional) {
			all = append(all, reference{kind: kindSecret, name: r.Name, path: at + ".secretRef", in: in})
		}
		if r := source.ConfigMapRef; r != nil && !isTrue(r.Optional) {
			all = append(all, reference{kind: kindConfigMap, name: r.Name, path: at + ".configMapRef", in: in})
		}
	}
	return all
}

func sourceReferences(in, path string, source *corev1.EnvVarSource) []reference {
	var all []reference
	if source == nil {
		return nil
	}
	if r := source.SecretKeyRef; r != nil && !isTrue(r.Optional) {
		all = append(all, reference{kind: kindSecret, name: r.Name, key: r.Key, path: path + ".secretKeyRef", in: in})
	}
	if r := source.ConfigMapKeyRef; r != nil && !isTrue(r.Optional) {
		all = append(all, reference{kind: kindConfigMap, name: r.Name, key: r.Key, path: path + ".configMapKeyRef", in: in})
	}
	return all
}

func volumeReferences(in, path string, volume *corev1.Volume) []reference {
	var all []reference
	if v := volume.Secret; v != nil && !isTrue(v.Optional) {
		all = append(all, itemReferences(reference{kind: kindSecret, name: v.SecretName, path: path + ".secret", in: in}, v.Items)...)
	}
	if v := volume.ConfigMap; v != nil && !isTrue(v.Optional) {
		all = append(all, itemReferences(reference{kind: kindConfigMap, name: v.Name, path: path + ".configMap", in: in}, v.Items)...)
	}
	if v := volume.PersistentVolumeClaim; v != nil {
		all = append(all, reference{kind: kindClaim, name: v.ClaimName, path: path + ".persistentVolumeClaim", in: in})
	}
	if volume.Projected == nil {
		return all
	}
	for i := range volume.Projected.Sources {
		source := &volume.Projected.Sources[i]
		at := fmt.Sprintf("%s.projected.sources[%d]", path, i)
		if v := source.Secret; v != nil && !isTrue(v.Optional) {
			all = append(all, itemReferences(reference{kind: kindSecret, name: v.Name, path: at + ".secret", in: in}, v.Items)...)
		}
		if v := source.ConfigMap; v != nil && !isTrue(v.Optional) {
			all = append(all, itemReferences(reference{kind: kindConfigMap, name: v.Name, path: at + ".configMap", in: in}, v.Items)...)
		}
	}
	return all
}

// itemReferences name each key that a volume picks, or the whole object when it takes all.
func itemReferences(whole reference, items []corev1.KeyToPath) []reference {
	if len(items) == 0 {
		return []reference{whole}
	}
	all := make([]reference, 0, len(items))
	for i, item := range items {
		one := whole
		one.key, one.path = item.Key, fmt.Sprintf("%s.items[%d]", whole.path, i)
		all = append(all, one)
	}
	return all
}
