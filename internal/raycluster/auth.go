package raycluster

import (
	"crypto/sha256"
	"encoding/hex"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/ray"
)

// AuthOf returns how Ray's processes in a RayCluster, and clients of it, show that they may talk to it.
func AuthOf(cluster *rayv1.RayCluster) ray.Auth {
	options := cluster.Spec.AuthOptions
	switch {
	case options == nil || options.Mode != rayv1.AuthModeToken:
		return ray.Auth{}
	case ptr.Deref(options.EnableK8sTokenAuth, false):
		return ray.Auth{Token: true}
	case ptr.Deref(options.SecretName, "") != "":
		return ray.Auth{Token: true, Secret: *options.SecretName}
	default:
		return ray.Auth{Token: true, Secret: ShortName(cluster.Name)}
	}
}

// ownSecret is the name of the Secret that the operator makes for the cluster, or "" when it makes none.
func (p *planner) ownSecret() string {
	if options := p.cluster.Spec.AuthOptions; options != nil && ptr.Deref(options.SecretName, "") != "" {
		return ""
	}
	return AuthOf(p.cluster).Secret
}

// token makes the Secret with the token, and makes it anew when the token is gone from it.
func (p *planner) token() {
	if options := p.cluster.Spec.AuthOptions; options != nil && options.Mode == "" {
		p.notes = append(p.notes, `spec.authOptions.mode is empty, which counts as "disabled": Ray asks nobody for a token`)
	}
	name := p.ownSecret()
	if name == "" {
		return
	}
	a := action.MakeToken{
		Secret: &corev1.Secret{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: kindSecret},
			ObjectMeta: ownedMeta(p.cluster, name),
		},
		Entry:  ray.TokenKey,
		Why:    "the cluster needs a token",
		Done:   action.Normal("CreatedSecret", "Create", "created Secret with a new token"),
		Failed: action.Warning("FailedToCreateSecret", "Create", "cannot make the Secret with the token"),
	}
	live := p.snapshot.standing(kindSecret, name)
	switch {
	case live == nil && p.held(a.Key()):
	case live == nil:
		p.do(a)
	case !metav1.IsControlledBy(live, p.cluster):
		p.collide(kindSecret, name, belonging(live))
	case live.GetDeletionTimestamp() == nil && p.tokenHash() == "":
		p.do(deleteObject(live, "it holds no token under "+ray.TokenKey))
	}
}

// tokenHash is a short hash of the token that the operator made, or "" when there is none now.
func (p *planner) tokenHash() string {
	secret, isSecret := p.snapshot.standing(kindSecret, p.ownSecret()).(*corev1.Secret)
	if !isSecret || !metav1.IsControlledBy(secret, p.cluster) || len(secret.Data[ray.TokenKey]) == 0 {
		return ""
	}
	sum := sha256.Sum256(secret.Data[ray.TokenKey])
	return hex.EncodeToString(sum[:4])
}

// awaitsToken tells whether no Pod can be made now, because the token that it would be given is not there yet.
func (p *planner) awaitsToken() bool { return p.ownSecret() != "" && p.tokenHash() == "" }

// withToken writes on a new Pod which token it is given.
func (p *planner) withToken(pod *corev1.Pod) *corev1.Pod {
	hash := p.tokenHash()
	if hash == "" {
		return pod
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[rayv1.AnnotationToken] = hash
	return pod
}

// staleToken tells whether a Pod was given another token than the one that Pods are given now. It cannot talk to those.
// Of Pods that another operator made, only the time tells.
func (p *planner) staleToken(pod *corev1.Pod) bool {
	hash := p.tokenHash()
	if hash == "" || !usesSecret(pod, p.ownSecret()) {
		return false
	}
	if given, ok := pod.Annotations[rayv1.AnnotationToken]; ok {
		return given != hash
	}
	made := p.snapshot.standing(kindSecret, p.ownSecret()).GetCreationTimestamp()
	return pod.CreationTimestamp.Before(&made)
}
