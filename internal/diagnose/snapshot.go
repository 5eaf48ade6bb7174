package diagnose

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/rights"
)

// Snapshot is all that the rules about whole objects may know: one object of ray.io/v1, all that belongs to it, and what
// it needs. A part that could not be read is nil and named in Gaps; rules are silent about what is not known.
type Snapshot struct {
	Now time.Time
	// The object in question stands in one of these, and below it those that belong to it. Clusters holds each RayCluster
	// that it makes or uses.
	CronJob  *rayv1.RayCronJob
	Jobs     []*rayv1.RayJob
	Service  *rayv1.RayService
	Clusters []*rayv1.RayCluster

	// Pods are those of the clusters and of the submitters, from all of them.
	Pods []*corev1.Pod
	// SubmitterJobs are the Kubernetes Jobs of the RayJobs.
	SubmitterJobs []*batchv1.Job
	// Events are those about the objects and the Pods, in no order.
	Events []corev1.Event
	// Logs are the last lines of containers in trouble, by LogKey.
	Logs map[string]string

	// Services, Slices, Ingresses, Policies, Claims, Accounts, Roles, Bindings and Quotas are those of the namespace. Of Secrets and
	// ConfigMaps there are only those that the objects refer to, and of them only names and keys.
	Services   []*corev1.Service
	Slices     []*discoveryv1.EndpointSlice
	Ingresses  []*networkingv1.Ingress
	Policies   []*networkingv1.NetworkPolicy
	Secrets    Keys
	ConfigMaps Keys
	Claims     []*corev1.PersistentVolumeClaim
	Accounts   []*corev1.ServiceAccount
	Roles      []*rbacv1.Role
	Bindings   []*rbacv1.RoleBinding
	Quotas     []*corev1.ResourceQuota

	// Nodes, StorageClasses and IngressClasses are those of the whole cluster.
	Nodes          []*corev1.Node
	StorageClasses []*storagev1.StorageClass
	IngressClasses []*networkingv1.IngressClass

	// Operator is what is known about the operator itself.
	Operator Operator
	// Dashboards are the answers of Ray's dashboards by the name of the RayCluster. One that was not asked is absent.
	Dashboards map[string]Dashboard
	// Gaps are the parts that could not be read.
	Gaps []Gap

	// told are the only refusals there are, or nil when conditions and events tell.
	told []refusal
	// index is what many rules ask for, or nil. Only the copy that Findings works on has one.
	index *index
}

// Keys are the keys of Secrets or ConfigMaps by the name of the object.
type Keys map[string][]string

// LogKey names the log of one container.
func LogKey(pod, container string) string { return pod + "/" + container }

// Gap is a part of the snapshot that could not be read.
type Gap struct {
	// What is missing, for example "nodes".
	What string
	// Why it is missing, for example the API server's refusal.
	Why string
}

// Operator is what can be seen of the operator from outside.
type Operator struct {
	// Deployments are those that run an operator for ray.io, in any namespace.
	Deployments []*appsv1.Deployment
	// Pods are the Pods of those Deployments.
	Pods []*corev1.Pod
	// Leases are those that the operator's replicas compete for.
	Leases []*coordinationv1.Lease
	// CRDFields are the top-level fields of spec in the ray.io/v1 schema of each kind, as the API server has it. A kind that
	// is not installed is absent.
	CRDFields map[string][]string
	// Refused are the rights that the operator needs and that its service account does not have, as the API server says when it
	// is asked.
	Refused []rights.Right
}

// Dashboard is the answer of a dashboard, asked through the API server.
type Dashboard struct {
	// Error is why there is no answer, or empty.
	Error string
	// Took is how long the answer took.
	Took time.Duration
	// RayVersion is the version that the head runs, or empty.
	RayVersion string
}
