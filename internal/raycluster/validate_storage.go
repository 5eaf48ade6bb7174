package raycluster

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

const (
	onlyForRedis    = "is for the backend redis"
	byTheOptions    = "is set from spec.gcsFaultToleranceOptions"
	withoutFT       = "has an effect only with spec.gcsFaultToleranceOptions"
	redisAddressIs  = "must be the address of a Redis server, as host:port, redis://host:port or rediss://host:port"
	byTheBackend    = "is set for the backend rocksdb"
	namesTheClaim   = "cannot be combined with claimName: a given claim is used as it is"
	embeddedGateOff = "needs the feature gate GCSFaultToleranceEmbeddedStorage of the operator"
)

// faultTolerance checks where the GCS is to keep its state.
func (v *validator) faultTolerance(spec *field.Path) {
	options := v.spec.GcsFaultToleranceOptions
	at := spec.Child("gcsFaultToleranceOptions")
	v.redisUsername(spec.Child("headGroupSpec"))
	switch {
	case options == nil:
		v.withoutOptions()
		return
	case v.cluster.Annotations[rayv1.AnnotationFTEnabled] != "":
		v.invalid(annotationPath(rayv1.AnnotationFTEnabled), v.cluster.Annotations[rayv1.AnnotationFTEnabled], "cannot be combined with "+at.String())
	}
	if embedded(v.cluster) {
		v.embedded(at, options)
		return
	}
	v.redis(spec, at, options)
}

func annotationPath(key string) *field.Path { return field.NewPath("metadata", "annotations").Key(key) }

func (v *validator) withoutOptions() {
	if !FaultTolerant(v.cluster) && v.headEnv(envRedisAddress) != nil {
		v.invalid(v.headEnvPath(), envRedisAddress, withoutFT)
	}
}

// redisUsername refuses the ways in which a user name for Redis does not reach everything that needs it.
func (v *validator) redisUsername(head *field.Path) {
	const rule = "must be written as spec.gcsFaultToleranceOptions.redisUsername"
	if value, ok := v.spec.HeadGroupSpec.RayStartParams[paramRedisUsername]; ok {
		v.invalid(head.Child("rayStartParams").Key(paramRedisUsername), value, rule)
	}
	if v.headEnv(envRedisUsername) != nil {
		v.invalid(v.headEnvPath(), envRedisUsername, rule)
	}
}

func (v *validator) redis(spec, at *field.Path, options *rayv1.GcsFaultToleranceOptions) {
	if value, ok := v.spec.HeadGroupSpec.RayStartParams[paramRedisPassword]; ok {
		v.invalid(spec.Child("headGroupSpec", "rayStartParams").Key(paramRedisPassword), value, byTheOptions)
	}
	for _, name := range []string{envRedisPassword, envRedisAddress} {
		if v.headEnv(name) != nil {
			v.invalid(v.headEnvPath(), name, byTheOptions)
		}
	}
	if value := v.cluster.Annotations[rayv1.AnnotationExternalStorageNamespace]; value != "" {
		v.invalid(annotationPath(rayv1.AnnotationExternalStorageNamespace), value, "must be written as "+at.Child("externalStorageNamespace").String())
	}
	if options.Storage != nil {
		v.errs = append(v.errs, field.Forbidden(at.Child("storage"), "is for the backend rocksdb"))
	}
	v.redisAddress(at.Child("redisAddress"), options.RedisAddress)
}

// redisAddress lets references of Kubernetes pass, which only the kubelet can resolve.
func (v *validator) redisAddress(at *field.Path, addresses string) {
	if strings.TrimSpace(addresses) == "" {
		v.errs = append(v.errs, field.Required(at, redisAddressIs+"; without one Ray keeps its state in memory"))
		return
	}
	for address := range strings.SplitSeq(addresses, ",") {
		if !strings.Contains(address, "$(") && !isRedisAddress(address) {
			v.invalid(at, addresses, redisAddressIs)
			return
		}
	}
}

func isRedisAddress(address string) bool {
	u := redisURL(address)
	if u == nil || u.Hostname() == "" || u.Path != "" || u.RawQuery != "" || u.Fragment != "" {
		return false
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	return err == nil && port > 0 && (u.Scheme == "redis" || u.Scheme == "rediss")
}

func (v *validator) embedded(at *field.Path, options *rayv1.GcsFaultToleranceOptions) {
	v.forbid(at, onlyForRedis, []given{
		{"redisAddress", options.RedisAddress != ""}, {"redisUsername", options.RedisUsername != nil},
		{"redisPassword", options.RedisPassword != nil}, {"externalStorageNamespace", options.ExternalStorageNamespace != ""},
	})
	for _, name := range []string{envStorage, envStoragePath} {
		if v.headEnv(name) != nil {
			v.invalid(v.headEnvPath(), name, byTheBackend)
		}
	}
	v.storageMount()
	storage := storageOf(v.cluster)
	if storage.ClaimName != "" {
		v.forbid(at.Child("storage"), namesTheClaim, []given{
			{"size", storage.Size != nil}, {"storageClassName", storage.StorageClassName != nil}, {"accessModes", len(storage.AccessModes) > 0},
		})
	}
}

// given is a field, and whether the user wrote it.
type given struct {
	field string
	is    bool
}

func (v *validator) forbid(at *field.Path, rule string, fields []given) {
	for _, f := range fields {
		if f.is {
			v.errs = append(v.errs, field.Forbidden(at.Child(f.field), rule))
		}
	}
}

// storageMount refuses what stands where the volume of the GCS is mounted.
func (v *validator) storageMount() {
	pod := &v.spec.HeadGroupSpec.Template.Spec
	path := field.NewPath("spec", "headGroupSpec", "template", "spec")
	if i := slices.IndexFunc(pod.Volumes, func(volume corev1.Volume) bool { return volume.Name == storageVolume }); i >= 0 {
		v.invalid(path.Child("volumes").Index(i).Child("name"), storageVolume, byTheBackend)
	}
	if len(pod.Containers) == 0 {
		return
	}
	for i, mount := range pod.Containers[0].VolumeMounts {
		at := path.Child("containers").Index(0).Child("volumeMounts").Index(i)
		switch {
		case mount.Name == storageVolume:
			v.invalid(at.Child("name"), mount.Name, byTheBackend)
		case mount.MountPath == storagePath:
			v.invalid(at.Child("mountPath"), mount.MountPath, byTheBackend)
		}
	}
}
