package ray

import (
	corev1 "k8s.io/api/core/v1"
)

const (
	// TokenKey is the key of a Secret under which the token stands.
	TokenKey = "auth_token"

	tokenVolume   = "ray-token"
	projectedPath = "/var/run/secrets/ray.io/serviceaccount"
)

// Auth says how Ray's processes, and those that talk to them, show that they may. The zero value means that nobody asks.
type Auth struct {
	// Token switches token authentication on.
	Token bool
	// Secret is the name of the Secret that holds the token under TokenKey. If it is empty, tokens are those of service
	// accounts, and Ray has them checked by the Kubernetes API server.
	Secret string
}

// Set gives a container what it needs to talk to Ray. Releases of Ray differ in what they do when they are told nothing,
// so authentication is switched off explicitly, too.
//
// That variable is left out where the user has a say: when the container or the given variables, which others add
// later, name it, and when the container takes variables from elsewhere, because a value from there would be hidden.
func (a Auth) Set(container *corev1.Container, later []corev1.EnvVar) {
	switch {
	case !a.Token:
		if len(container.EnvFrom) == 0 && !hasEnv(later, EnvAuthMode) {
			AddEnv(container, literal(EnvAuthMode, "disabled"))
		}
	case a.Secret == "":
		AddEnv(container, literal(EnvAuthMode, "token"), literal("RAY_ENABLE_K8S_TOKEN_AUTH", "true"))
		if !mounts(container, projectedPath) {
			container.VolumeMounts = append(container.VolumeMounts,
				corev1.VolumeMount{Name: tokenVolume, MountPath: projectedPath, ReadOnly: true})
		}
	default:
		AddEnv(container, literal(EnvAuthMode, "token"), corev1.EnvVar{
			Name: "RAY_AUTH_TOKEN",
			ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: a.Secret}, Key: TokenKey,
			}},
		})
	}
}

// AddVolume gives the Pod what containers mount after Set.
func (a Auth) AddVolume(pod *corev1.PodSpec) {
	if !a.Token || a.Secret != "" || hasVolume(pod, tokenVolume) {
		return
	}
	token := corev1.ServiceAccountTokenProjection{Path: "token"}
	pod.Volumes = append(pod.Volumes, corev1.Volume{
		Name: tokenVolume,
		VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{{ServiceAccountToken: &token}},
		}},
	})
}
