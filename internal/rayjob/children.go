package rayjob

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/raycluster"
)

// cluster makes the job's own cluster if it is missing, and tells whether the cluster is ready. A selected cluster is
// never made, changed or deleted.
func (p *planner) cluster() (ready bool) {
	own := p.selected() == ""
	switch {
	case p.s.Cluster != nil && own && !metav1.IsControlledBy(p.s.Cluster, p.s.Job):
		// Someone else's cluster stands under the name that was computed for ours: take another name.
		p.st.RayClusterName = childName(p.job, "cluster", p.now)
	case p.s.Cluster != nil:
		p.copyClusterStatus()
		ready = p.s.Cluster.Status.State == rayv1.ClusterStateReady
		p.tellTrouble(p.s.Cluster)
	case own && p.held(roleCluster):
	case own:
		p.do(action.Create{
			Object: rayCluster(p.job), Group: roleCluster, Why: "the job needs its cluster",
			Done:   action.Normal("CreatedRayCluster", "Create", "created RayCluster"),
			Failed: action.Warning("FailedToCreateRayCluster", "Create", "cannot create the RayCluster"),
		})
	default:
		message := fmt.Sprintf("spec.clusterSelector names RayCluster %q, which does not exist in namespace %s", p.selected(), p.job.Namespace)
		if p.st.Message != message {
			p.tell(action.Warning("RayClusterNotFound", "Validate", message))
		}
		p.st.Message = message
		p.again(pollAgain)
	}
	if !own {
		// Selected clusters are not ours, so no watch brings their changes here.
		p.again(pollAgain)
	}
	return ready
}

// tellTrouble copies into the message why the cluster cannot be acted upon.
func (p *planner) tellTrouble(cluster *rayv1.RayCluster) {
	valid := meta.FindStatusCondition(cluster.Status.Conditions, rayv1.ConditionValid)
	if valid != nil && valid.Status == metav1.ConditionFalse {
		p.st.Message = truncate(fmt.Sprintf("RayCluster %s: %s", cluster.Name, valid.Message))
	}
}

// The roles under which refused objects are held back.
const (
	roleCluster   = "cluster"
	roleSubmitter = "submitter"
)

// held tells whether the object of a role waits after it was refused, and then says why in the message.
func (p *planner) held(role string) bool {
	hold, ok := p.s.Holds[role]
	if !ok {
		return false
	}
	p.st.Message = truncate(hold.Message)
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
	mirror := *p.s.Cluster.Status.DeepCopy()
	mirror.Incarnations = nil
	before := p.st.RayClusterStatus.DeepCopy()
	before.LastUpdateTime = mirror.LastUpdateTime
	if !equality.Semantic.DeepEqual(*before, mirror) {
		p.st.RayClusterStatus = mirror
	}
}

// deleteCluster removes the cluster if it is the job's own, and tells whether it is gone.
func (p *planner) deleteCluster(why string) (gone bool) {
	if p.s.Cluster == nil || p.selected() != "" || !metav1.IsControlledBy(p.s.Cluster, p.s.Job) {
		return true
	}
	if p.s.Cluster.DeletionTimestamp == nil {
		p.do(action.Delete{
			Object: p.s.Cluster, Why: why,
			Done:   action.Normal("DeletedRayCluster", "Delete", "deleted RayCluster: "+why),
			Failed: action.Warning("FailedToDeleteRayCluster", "Delete", "cannot delete the RayCluster"),
		})
	}
	return false
}

// submitter makes the Job that submits, in the mode that has one.
func (p *planner) submitter() {
	if p.job.Spec.SubmissionMode != rayv1.K8sJobMode {
		return
	}
	if p.s.Submitter != nil {
		if !metav1.IsControlledBy(p.s.Submitter, p.s.Job) {
			p.fail(rayv1.SubmissionFailed, fmt.Sprintf("Job %s/%s exists and belongs to someone else", p.job.Namespace, p.job.Name))
		}
		return
	}
	if p.s.Holds[roleSubmitter].Collision {
		p.fail(rayv1.SubmissionFailed, fmt.Sprintf("Job %s/%s exists and belongs to someone else", p.job.Namespace, p.job.Name))
		return
	}
	if p.held(roleSubmitter) {
		return
	}
	job, err := submitterJob(p.job, p.s.Cluster, p.settings)
	if err != nil {
		p.fail(rayv1.SubmissionFailed, err.Error())
		return
	}
	p.do(action.Create{
		Object: job, Group: roleSubmitter, Why: "the job is to be submitted",
		Done:   action.Normal("CreatedRayJobSubmitter", "Create", "created submitter Job"),
		Failed: action.Warning("FailedToCreateRayJobSubmitter", "Create", "cannot create the submitter Job"),
	})
}

func (p *planner) deleteSubmitter() (gone bool) {
	if p.s.Submitter == nil || !metav1.IsControlledBy(p.s.Submitter, p.s.Job) {
		return true
	}
	if p.s.Submitter.DeletionTimestamp == nil {
		p.do(action.Delete{
			Object: p.s.Submitter, Why: "the attempt is over",
			Done:   action.Normal("DeletedRayJobSubmitter", "Delete", "deleted submitter Job"),
			Failed: action.Warning("FailedToDeleteRayJobSubmitter", "Delete", "cannot delete the submitter Job"),
		})
	}
	return false
}

// headService keeps the Service that leads to the head of whichever cluster the job runs on.
func (p *planner) headService() {
	if p.selected() != "" || p.s.ClusterService == nil {
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
		if action.UpToDate(live, wanted) {
			return
		}
		a.Observed, a.Why = live, "the Service must lead to the present cluster"
		a.Done = action.Normal("UpdatedService", "Update", "updated Service")
	}
	p.do(a)
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

// dashboardURL is host and port of the dashboard, without a scheme, as status.dashboardURL has it.
func dashboardURL(cluster *rayv1.RayCluster, head *corev1.Service, domain string) (string, error) {
	if head == nil {
		return "", fmt.Errorf("RayCluster %s has no head Service yet", cluster.Name)
	}
	for _, port := range head.Spec.Ports {
		if port.Name == "dashboard" {
			return fmt.Sprintf("%s.%s.svc.%s:%d", head.Name, head.Namespace, domain, port.Port), nil
		}
	}
	return "", fmt.Errorf("Service %s has no port named \"dashboard\", so the job cannot be submitted; add a container port of that name to the head's Ray container", head.Name)
}

// statusWrite returns the status write of the pass, or nil when nothing changed.
func (p *planner) statusWrite() *action.StatusWrite {
	p.st.ObservedGeneration = p.s.Job.Generation
	if equality.Semantic.DeepEqual(p.s.Job.Status, p.job.Status) {
		return nil
	}
	return &action.StatusWrite{Object: p.job, Base: p.s.Job, Why: whatChanged(&p.s.Job.Status, &p.job.Status)}
}

func whatChanged(before, after *rayv1.RayJobStatus) string {
	switch {
	case before.JobDeploymentStatus != after.JobDeploymentStatus:
		return fmt.Sprintf("%s is now %s", orNew(before.JobDeploymentStatus), orNew(after.JobDeploymentStatus))
	case before.JobStatus != after.JobStatus:
		return "Ray says that the job is " + string(after.JobStatus)
	default:
		return "observed facts changed"
	}
}

func orNew(status rayv1.JobDeploymentStatus) string {
	if status == rayv1.JobDeploymentStatusNew {
		return "New"
	}
	return string(status)
}
