package rayjob

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/excerpt"
	"github.com/heliostat-io/heliostat/internal/raycluster"
)

// cluster makes the job's own cluster if it is missing, and tells whether the cluster is ready. A selected cluster is
// never made, changed or deleted.
func (p *planner) cluster() (ready bool) {
	own := p.selected() == ""
	switch {
	case !own && p.st.RayClusterName != p.selected() && !p.ownsCluster():
		// The selector was corrected.
		p.st.RayClusterName, p.st.DashboardURL, p.st.Message = p.selected(), "", ""
	case p.s.Cluster != nil && own && !p.ownsCluster():
		// Someone else's cluster stands under the name that was computed for ours: take another name.
		p.st.RayClusterName = childName(p.job, "cluster", p.st.RayClusterName)
	case p.s.Cluster != nil:
		p.copyClusterStatus()
		ready = p.s.Cluster.Status.State == rayv1.ClusterStateReady
		trouble := p.clusterTrouble()
		p.st.Message = trouble.message
		if trouble.reason != "" {
			p.obstacle = trouble
		}
	case own && p.held(roleCluster):
	case own:
		p.makeCluster()
	default:
		p.st.Message = excerpt.Beginning(fmt.Sprintf(
			"spec.clusterSelector names RayCluster %q, which does not exist in namespace %s", p.selected(), p.job.Namespace), maxMessage)
		p.obstacle = obstacle{rayv1.ReasonRayClusterNotFound, p.st.Message}
		if p.s.Job.Status.Message != p.st.Message {
			p.tell(action.Warning(rayv1.ReasonRayClusterNotFound, "Validate", p.st.Message))
		}
	}
	return ready
}

func (p *planner) makeCluster() {
	cluster := rayCluster(p.job)
	if p.job.Spec.SubmissionMode == rayv1.SidecarMode {
		if err := addSidecar(cluster, p.job, p.settings); err != nil {
			p.fail(rayv1.SubmissionFailed, err.Error())
			return
		}
	}
	p.do(action.Create{
		Object: cluster, Group: roleCluster, Why: "the job needs its cluster",
		Done:   action.Normal("CreatedRayCluster", "Create", "created RayCluster"),
		Failed: action.Warning("FailedToCreateRayCluster", "Create", "cannot create the RayCluster"),
	})
}

// clusterTrouble is what keeps the cluster from becoming ready, by its own conditions. It has a reason when somebody must
// change something.
func (p *planner) clusterTrouble() obstacle {
	if p.s.Cluster == nil || p.s.Cluster.Status.State == rayv1.ClusterStateReady {
		return obstacle{}
	}
	conditions := p.s.Cluster.Status.Conditions
	about := func(c *metav1.Condition) string {
		return excerpt.Beginning(fmt.Sprintf("RayCluster %s: %s", p.s.Cluster.Name, c.Message), maxMessage)
	}
	if stalled := meta.FindStatusCondition(conditions, rayv1.ConditionStalled); stalled != nil && stalled.Status == metav1.ConditionTrue {
		return obstacle{stalled.Reason, about(stalled)}
	}
	for _, kind := range []string{rayv1.ConditionValid, rayv1.ConditionPodsHealthy} {
		if c := meta.FindStatusCondition(conditions, kind); c != nil && c.Status == metav1.ConditionFalse {
			return obstacle{message: about(c)}
		}
	}
	return obstacle{}
}

// The roles under which refused objects are held back.
const (
	roleCluster   = "cluster"
	roleSubmitter = "submitter"
)

// held tells whether the object of a role waits after it was refused, and then says why.
func (p *planner) held(role string) bool {
	hold, ok := p.s.Holds[role]
	if !ok {
		return false
	}
	p.st.Message = excerpt.Beginning(hold.Message, maxMessage)
	p.obstacle = obstacle{hold.Reason, p.st.Message}
	if hold.Collision {
		p.obstacle.reason = rayv1.ReasonNameCollision
	}
	wait := hold.Until.Sub(p.now)
	p.again(wait)
	return wait > 0
}

// rayCluster is the cluster of the attempt.
func rayCluster(job *rayv1.RayJob) *rayv1.RayCluster {
	labels := withOrigin(maps.Clone(job.Labels), job)
	labels[rayv1.LabelJobSubmissionMode] = string(job.Spec.SubmissionMode)
	return &rayv1.RayCluster{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       job.Namespace,
			Name:            job.Status.RayClusterName,
			Labels:          labels,
			Annotations:     withoutApplied(job.Annotations),
			OwnerReferences: []metav1.OwnerReference{ownerReference(job)},
		},
		Spec: *job.Spec.RayClusterSpec.DeepCopy(),
	}
}

// withoutApplied copies annotations without kubectl's record of the last applied manifest: that is the RayJob's, and
// on the cluster it would tell kubectl wrong things.
func withoutApplied(annotations map[string]string) map[string]string {
	copied := maps.Clone(annotations)
	delete(copied, corev1.LastAppliedConfigAnnotation)
	return copied
}

func withOrigin(labels map[string]string, job *rayv1.RayJob) map[string]string {
	if labels == nil {
		labels = map[string]string{}
	}
	labels[rayv1.LabelOriginatedFromName] = job.Name
	labels[rayv1.LabelOriginatedFromKind] = "RayJob"
	return labels
}

func ownerReference(job *rayv1.RayJob) metav1.OwnerReference {
	return *metav1.NewControllerRef(job, rayv1.GroupVersion.WithKind("RayJob"))
}

// copyClusterStatus mirrors what clients want to know of the cluster. Times that tell only of writes are left out,
// so that the mirror does not change whenever the cluster's status is written.
func (p *planner) copyClusterStatus() {
	if p.s.Cluster == nil {
		return
	}
	raycluster.MirrorStatus(&p.st.RayClusterStatus, p.s.Cluster)
}

// deleteCluster removes the cluster if it is the job's own, and tells whether it is gone. No other path deletes a cluster,
// and the executor refuses to delete one that the job does not control.
func (p *planner) deleteCluster(why string) (gone bool) {
	if !p.ownsCluster() {
		return true
	}
	if p.s.Cluster.DeletionTimestamp == nil {
		p.do(action.Delete{
			Object: p.s.Cluster, Owner: p.s.Job, Why: why,
			Done:   action.Normal("DeletedRayCluster", "Delete", "deleted RayCluster: "+why),
			Failed: action.Warning("FailedToDeleteRayCluster", "Delete", "cannot delete the RayCluster"),
		})
	}
	return false
}

// submitter makes the Job that submits, and tells whether it is there.
func (p *planner) submitter() bool {
	if p.s.Submitter != nil {
		if p.s.hasSubmitter() {
			p.st.Message = ""
			return true
		}
		p.collides("Job", p.job.Name)
		return false
	}
	waits := p.held(roleSubmitter)
	if p.s.Holds[roleSubmitter].Collision {
		p.collides("Job", p.job.Name)
	}
	if waits {
		return false
	}
	job, err := submitterJob(p.job, p.s.Cluster, p.settings)
	if err != nil {
		p.fail(rayv1.SubmissionFailed, err.Error())
		return false
	}
	p.do(action.Create{
		Object: job, Group: roleSubmitter, Why: "the job is to be submitted",
		Done:   action.Normal("CreatedRayJobSubmitter", "Create", "created submitter Job"),
		Failed: action.Warning("FailedToCreateRayJobSubmitter", "Create", "cannot create the submitter Job"),
	})
	return false
}

// collides says that an object of somebody else stands where one of ours is to be. It is never touched; its deletion wakes
// the job, or the next look finds it gone.
func (p *planner) collides(kind, name string) {
	message := fmt.Sprintf("%s %s/%s exists and belongs to someone else; the job goes on when it is gone", kind, p.job.Namespace, name)
	p.obstacle = obstacle{rayv1.ReasonNameCollision, message}
	if p.s.Job.Status.Message != message {
		p.tell(action.Warning(rayv1.ReasonNameCollision, "Create", message))
	}
	p.st.Message = message
	p.again(collisionPause)
}

func (p *planner) deleteSubmitter(why string) (gone bool) {
	if !p.s.hasSubmitter() {
		return true
	}
	if p.s.Submitter.DeletionTimestamp == nil && !p.deletes(p.s.Submitter) {
		p.do(action.Delete{
			Object: p.s.Submitter, Owner: p.s.Job, Why: why,
			Done:   action.Normal("DeletedRayJobSubmitter", "Delete", "deleted submitter Job: "+why),
			Failed: action.Warning("FailedToDeleteRayJobSubmitter", "Delete", "cannot delete the submitter Job"),
		})
	}
	return false
}

// deletes tells whether the plan deletes an object already.
func (p *planner) deletes(object action.Object) bool {
	return slices.ContainsFunc(p.decision.Actions, func(a action.Action) bool {
		deletion, ok := a.(action.Delete)
		return ok && deletion.Object == object
	})
}

// headService keeps the Service that leads to the head of whichever cluster the job runs on.
func (p *planner) headService() {
	if !p.ownsCluster() || p.s.ClusterService == nil {
		return
	}
	wanted := action.Stamp(jobHeadService(p.job, p.s.ClusterService))
	a := action.Apply{
		Object: wanted,
		Done:   action.Normal("CreatedService", "Create", "created Service"),
		Failed: action.Warning("FailedToCreateService", "Create", "cannot make the Service"),
		Why:    "the job needs its head Service",
	}
	if live := p.s.HeadService; live != nil {
		if !metav1.IsControlledBy(live, p.s.Job) {
			p.foreignService()
			return
		}
		if action.UpToDate(live, wanted) {
			return
		}
		a.Observed, a.Why = live, "the Service must lead to the present cluster"
		a.Done = action.Normal("UpdatedService", "Update", "updated Service")
	}
	if wait := p.s.Holds[a.Key()].Until.Sub(p.now); wait > 0 {
		p.again(wait)
		return
	}
	p.do(a)
}

// foreignService says that the job's head Service cannot be made. The job runs without it.
func (p *planner) foreignService() {
	message := fmt.Sprintf("Service %s/%s exists and belongs to someone else, so the job runs without a Service of that name", p.job.Namespace, headServiceName(p.job))
	p.notes = append(p.notes, message)
	p.again(time.Minute) // nothing wakes the job when the Service goes
}

// jobHeadService is the cluster's head Service under the job's name.
func jobHeadService(job *rayv1.RayJob, cluster *corev1.Service) *corev1.Service {
	labels := withOrigin(nil, job)
	labels[rayv1.LabelNodeType] = rayv1.NodeTypeHead
	labels[rayv1.LabelIdentifier] = raycluster.HeadIdentifier(job.Name)
	service := &corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       job.Namespace,
			Name:            headServiceName(job),
			Labels:          labels,
			OwnerReferences: []metav1.OwnerReference{ownerReference(job)},
		},
		Spec: corev1.ServiceSpec{
			Selector:                 maps.Clone(cluster.Spec.Selector),
			Type:                     cluster.Spec.Type,
			PublishNotReadyAddresses: cluster.Spec.PublishNotReadyAddresses,
		},
	}
	if cluster.Spec.ClusterIP == corev1.ClusterIPNone {
		service.Spec.ClusterIP = corev1.ClusterIPNone
	}
	for _, port := range cluster.Spec.Ports {
		port.NodePort = 0
		service.Spec.Ports = append(service.Spec.Ports, port)
	}
	return service
}
