package raycluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
)

// The kinds of objects, apart from Pods, that a RayCluster owns.
const (
	kindService        = "Service"
	kindServiceAccount = "ServiceAccount"
	kindRole           = "Role"
	kindRoleBinding    = "RoleBinding"
	kindIngress        = "Ingress"
	kindRoute          = "Route"
	kindSecret         = "Secret"
	kindRevision       = "ControllerRevision"
	kindClaim          = "PersistentVolumeClaim"
	kindJob            = "Job"
	kindBudget         = "PodDisruptionBudget"
)

// collisionPause is the wait before a look at what stands where an object of ours should be: its end wakes nobody.
const collisionPause = 30 * time.Second

// objectKey names an object within a namespace. It is also the key under which writes of the object are held back.
func objectKey(kind, name string) string { return kind + "/" + name }

func kindOf(object action.Object) string { return object.GetObjectKind().GroupVersionKind().Kind }

// objects keeps everything but Pods that the cluster wants as wanted, each on its own, and removes what it does not want
// any more.
func (p *planner) objects() {
	wanted := p.wantedObjects()
	for _, object := range wanted {
		p.keep(object)
	}
	p.token()
	p.claim()
	p.keepLastValid()
	p.prune(wanted)
	p.missingAccount()
	for _, key := range slices.Sorted(maps.Keys(p.snapshot.Holds)) {
		// A cache that shows only what carries our labels does not show everything that can stand in the way.
		if kind, name, isObject := strings.Cut(key, "/"); isObject && p.snapshot.Holds[key].Collision {
			p.collide(kind, name, "belongs to someone else")
		}
	}
}

// wantedObjects are all but the Secret, which is made and never changed.
func (p *planner) wantedObjects() []action.Object {
	cluster := p.cluster
	head := HeadService(cluster, p.settings)
	FollowHead(head, p.liveHead())
	wanted := []action.Object{head}
	if headless := HeadlessWorkerService(cluster); headless != nil {
		wanted = append(wanted, headless)
	}
	serve, err := ServeService(cluster, p.settings)
	if err != nil {
		p.notes = append(p.notes, err.Error())
	}
	if serve != nil {
		wanted = append(wanted, serve)
	}
	wanted = append(wanted, p.budgets()...)
	wanted = append(wanted, autoscalerRights(cluster, p.liveHead())...)
	if entrance := entrance(cluster, p.settings); entrance != nil {
		p.noteEntrance(head)
		wanted = append(wanted, entrance)
	}
	return wanted
}

// keep asks for the one write that brings an object to what is wanted, if it needs one.
func (p *planner) keep(object action.Object) {
	kind, name := kindOf(object), object.GetName()
	a := action.Apply{
		Object: action.Stamp(object), Why: "the cluster needs this " + kind,
		Done:   action.Normal("Created"+kind, "Create", "created "+kind),
		Failed: action.Warning("FailedToCreate"+kind, "Create", "cannot make the "+kind),
	}
	live := p.snapshot.standing(kind, name)
	switch {
	case live == nil:
	case !metav1.IsControlledBy(live, p.cluster):
		p.collide(kind, name, belonging(live))
		return
	case live.GetDeletionTimestamp() != nil, action.UpToDate(live, a.Object):
		return
	case mustBeRemade(live, object):
		p.do(deleteObject(live, "it has to be made anew, because its clusterIP cannot be changed"))
		return
	default:
		a.Observed, a.Why = live, "the "+kind+" differs from what the cluster wants"
		a.Done = action.Normal("Updated"+kind, "Update", "updated "+kind)
		a.Failed = action.Warning("FailedToUpdate"+kind, "Update", "cannot change the "+kind)
	}
	if !p.held(a.Key()) {
		p.do(a)
	}
}

// prune removes what the cluster owns and does not want any more, except for what its Pods were made to use, and for claims,
// which hold what cannot be made again.
func (p *planner) prune(wanted []action.Object) {
	keys := map[string]bool{
		objectKey(kindSecret, p.ownSecret()):              true,
		objectKey(kindRevision, lastValidName(p.cluster)): len(p.invalid) > 0,
	}
	for _, object := range wanted {
		keys[objectKey(kindOf(object), object.GetName())] = true
	}
	for _, object := range p.snapshot.Owned {
		if !keys[objectKey(kindOf(object), object.GetName())] && object.GetDeletionTimestamp() == nil && kindOf(object) != kindClaim && p.madeByOperator(object) && !p.inUse(object) {
			p.do(deleteObject(object, "the cluster does not want it any more"))
		}
	}
}

// madeByOperator tells an object of this operator, or of KubeRay, from one that another controller made for the cluster and
// gave to it.
func (p *planner) madeByOperator(object action.Object) bool {
	if _, applied := object.GetAnnotations()[rayv1.AnnotationApplied]; applied || object.GetLabels()[rayv1.LabelCreatedBy] == rayv1.CreatedByOperator {
		return true
	}
	kind, known := ownedKinds(p.settings.Routes)[kindOf(object)]
	return known && slices.Contains(kind.names(p.cluster), object.GetName())
}

func deleteObject(object action.Object, why string) action.Delete {
	kind := kindOf(object)
	return action.Delete{
		Object: object, Why: why,
		Done:   action.Normal("Deleted"+kind, "Delete", "deleted "+kind+": "+why),
		Failed: action.Warning("FailedToDelete"+kind, "Delete", "cannot delete the "+kind),
	}
}

func (p *planner) collide(kind, name, what string) {
	p.collisions = append(p.collisions, fmt.Sprintf("the cluster needs %s %s, but one of that name exists already and %s", kind, name, what))
	p.again(collisionPause)
}

func belonging(object action.Object) string {
	owner := metav1.GetControllerOf(object)
	if owner == nil {
		return "has no owner"
	}
	return fmt.Sprintf("belongs to %s %s (uid %s)", owner.Kind, owner.Name, owner.UID)
}

// mustBeRemade tells whether the API server would refuse to turn a live Service into the wanted one.
func mustBeRemade(live, wanted action.Object) bool {
	have, isService := live.(*corev1.Service)
	if !isService || have.Spec.Type == corev1.ServiceTypeExternalName {
		return false
	}
	want := wanted.(*corev1.Service).Spec.ClusterIP
	if want == "" {
		return have.Spec.ClusterIP == corev1.ClusterIPNone
	}
	return have.Spec.ClusterIP != want
}

// inUse tells whether a Pod of the cluster was made to use an object: without it, the Pod could not go on.
func (p *planner) inUse(object action.Object) bool {
	if madeForRayService(p.cluster) && object.GetName() == ServeServiceName(p.cluster.Name) {
		return true
	}
	host := ServiceHost(object.GetName(), p.cluster.Namespace, p.settings.ClusterDomain)
	uses := func(pod *corev1.Pod) bool { return pod.Spec.ServiceAccountName == object.GetName() }
	switch kindOf(object) {
	case kindServiceAccount:
	case kindService:
		uses = func(pod *corev1.Pod) bool {
			return anyEnv(pod, func(env corev1.EnvVar) bool { return env.Name == "FQ_RAY_IP" && env.Value == host })
		}
	case kindSecret:
		uses = func(pod *corev1.Pod) bool { return usesSecret(pod, object.GetName()) }
	default:
		return false
	}
	return slices.ContainsFunc(p.snapshot.Pods, uses)
}

func usesSecret(pod *corev1.Pod, name string) bool {
	return anyEnv(pod, func(env corev1.EnvVar) bool {
		return env.ValueFrom != nil && env.ValueFrom.SecretKeyRef != nil && env.ValueFrom.SecretKeyRef.Name == name
	})
}

// anyEnv looks at the variables of the Ray container.
func anyEnv(pod *corev1.Pod, is func(corev1.EnvVar) bool) bool {
	return len(pod.Spec.Containers) > 0 && slices.ContainsFunc(pod.Spec.Containers[0].Env, is)
}
