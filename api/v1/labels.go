package v1

// FieldManager is the name under which the operator owns fields in server-side apply.
const FieldManager = "heliostat"

// Values of the fields named managedBy.
const (
	// ManagedByOperator stands for this operator. It is the name under which manifests know the operator of this API.
	ManagedByOperator = "ray.io/kuberay-operator"
	// ManagedByMultiKueue stands for MultiKueue, which runs the object in another Kubernetes cluster.
	ManagedByMultiKueue = "kueue.x-k8s.io/multikueue"
)

// Labels that the operator sets and reads.
const (
	// LabelCluster holds the name of the RayCluster to which an object belongs. It is also the key under which
	// a RayJob's clusterSelector names its cluster.
	LabelCluster = "ray.io/cluster"
	// LabelNodeType holds the part that a Pod plays in its cluster: one of the NodeType values.
	LabelNodeType = "ray.io/node-type"
	// LabelGroup holds the name of a Pod's group: HeadGroupName for the head, else groupName.
	LabelGroup = "ray.io/group"
	// LabelIsRayNode is IsRayNodeYes on every Pod that runs Ray.
	LabelIsRayNode = "ray.io/is-ray-node"
	// LabelIdentifier ties the head Service to its Pod.
	LabelIdentifier = "ray.io/identifier"
	// LabelServe is "true" on Pods to which the Service that leads to Serve sends requests.
	LabelServe = "ray.io/serve"
	// LabelHeadlessWorkerService holds the name of the RayCluster on the headless Service of its workers.
	LabelHeadlessWorkerService = "ray.io/headless-worker-svc"
	// LabelWorkerGroupReplicaIndex holds the number of a worker's replica within its group, from 0.
	LabelWorkerGroupReplicaIndex = "ray.io/worker-group-replica-index"
	// LabelWorkerGroupReplicaName holds the name that the Pods of one replica of several hosts have in common.
	LabelWorkerGroupReplicaName = "ray.io/worker-group-replica-name"
	// LabelReplicaHostIndex holds the number of a Pod within its replica of several hosts, from 0.
	LabelReplicaHostIndex = "ray.io/replica-host-index"
	// LabelOriginatedFromName holds the name of the custom resource for which an object was made.
	LabelOriginatedFromName = "ray.io/originated-from-cr-name"
	// LabelOriginatedFromKind holds the kind of that custom resource, such as KindRayJob.
	LabelOriginatedFromKind = "ray.io/originated-from-crd"
	// LabelJobSubmissionMode holds a RayJob's submissionMode on its RayCluster.
	LabelJobSubmissionMode = "ray.io/job-submission-mode"
	// LabelCronJobName holds the name of the RayCronJob that created a RayJob.
	LabelCronJobName = "ray.io/cronjob-name"
	// LabelGangSchedulingEnabled is set by the user to ask for all Pods to be scheduled together or not at all.
	LabelGangSchedulingEnabled = "ray.io/gang-scheduling-enabled"
	// LabelPriorityClassName is set by the user: the priority class for the batch scheduler.
	LabelPriorityClassName = "ray.io/priority-class-name"
	// LabelIncarnation holds the incarnation number of a Pod: which life of its slot it is, from 1. Heliostat adds it.
	LabelIncarnation = "heliostat.io/incarnation"

	// LabelAppName is the recommended label for the name of the application.
	LabelAppName = "app.kubernetes.io/name"
	// LabelCreatedBy is the label by which the operator recognises what it made.
	LabelCreatedBy = "app.kubernetes.io/created-by"
	// LabelAppComponent is the recommended label for the component within the application.
	LabelAppComponent = "app.kubernetes.io/component"
)

// Values of labels.
const (
	// NodeTypeHead marks a head Pod.
	NodeTypeHead = "head"
	// NodeTypeWorker marks a worker Pod.
	NodeTypeWorker = "worker"
	// NodeTypeRedisCleanup marks the Pod that empties Redis after a RayCluster was deleted.
	NodeTypeRedisCleanup = "redis-cleanup"
	// NodeTypeSubmitter marks the Pods of a RayJob's submitter Job. Heliostat adds it, to see why a submitter does not
	// start.
	NodeTypeSubmitter = "submitter"
	// HeadGroupName is the group name of the head.
	HeadGroupName = "headgroup"
	// IsRayNodeYes is the value of LabelIsRayNode.
	IsRayNodeYes = "yes"
	// AppName is the value of LabelAppName on what the operator makes; clients select by it.
	AppName = "kuberay"
	// CreatedByOperator is the value of LabelCreatedBy on what the operator makes; clients select by it.
	CreatedByOperator = "kuberay-operator"
)

// Annotations that the operator sets and reads.
const (
	// AnnotationFTEnabled is the old way to switch GCS fault tolerance on ("true", in any case). The operator sets it
	// on head Pods.
	AnnotationFTEnabled = "ray.io/ft-enabled"
	// AnnotationExternalStorageNamespace is the prefix of a cluster's keys in Redis.
	AnnotationExternalStorageNamespace = "ray.io/external-storage-namespace"
	// AnnotationGCSFTDeletionTimeout is how many seconds the deletion of a RayCluster waits for Redis to be emptied.
	AnnotationGCSFTDeletionTimeout = "ray.io/gcs-ft-deletion-timeout"
	// AnnotationRedisStorage on a RayCluster says what becomes of its keys in Redis when it is deleted: RedisStorageRetain keeps
	// them, anything else does not. Heliostat adds it.
	AnnotationRedisStorage = "heliostat.io/redis-storage"
	// AnnotationProtectHead on a RayCluster keeps its head from being evicted: ProtectHeadAlways, or ProtectHeadWhileJobsRun.
	// Unset, nothing does. Heliostat adds it.
	AnnotationProtectHead = "heliostat.io/protect-head"
	// ProtectHeadAlways keeps the head from being evicted for as long as the RayCluster is there.
	ProtectHeadAlways = "Always"
	// ProtectHeadWhileJobsRun lets the head be evicted when Ray says that no job runs.
	ProtectHeadWhileJobsRun = "WhileJobsRun"
	// AnnotationMaxUnavailableWorkers on a RayCluster is how many Pods of each worker group may be evicted at a time, a number
	// from 0. Unset, nothing keeps them. Heliostat adds it.
	AnnotationMaxUnavailableWorkers = "heliostat.io/max-unavailable-workers"
	// AnnotationStuckHeadTimeout on a RayCluster is how many seconds, from 30, a head Pod may be overdue before it is deleted
	// without waiting for its node. Unset, it is waited for. Heliostat adds it.
	AnnotationStuckHeadTimeout = "heliostat.io/stuck-head-timeout-seconds"
	// RedisStorageRetain is the value of AnnotationRedisStorage that keeps the keys.
	RedisStorageRetain = "Retain"
	// AnnotationRedisCleanupCPU is what the Pod that empties Redis gets of CPU, as a quantity. Heliostat adds it.
	AnnotationRedisCleanupCPU = "heliostat.io/redis-cleanup-cpu"
	// AnnotationRedisCleanupMemory is what the Pod that empties Redis gets of memory, as a quantity. Heliostat adds it.
	AnnotationRedisCleanupMemory = "heliostat.io/redis-cleanup-memory"
	// AnnotationOverwriteContainerCommand, if "true" in any case, makes the operator leave the container's command alone.
	AnnotationOverwriteContainerCommand = "ray.io/overwrite-container-cmd"
	// AnnotationCommandMustSucceed on a RayCluster, if "true" in any case, ends a Ray container when the command that its
	// template gives it fails. Otherwise Ray starts nevertheless. Heliostat adds it.
	AnnotationCommandMustSucceed = "heliostat.io/command-must-succeed"
	// AnnotationEnableServeService, if "true", makes a Service that leads to Serve for a plain RayCluster.
	AnnotationEnableServeService = "ray.io/enable-serve-service"
	// AnnotationInitializingTimeout is how long a RayService may take to become ready: a Go duration or seconds.
	AnnotationInitializingTimeout = "ray.io/initializing-timeout"
	// AnnotationDisableProvisionedHeadRestart, if "true", makes a head that was lost after the cluster was once
	// provisioned stay away.
	AnnotationDisableProvisionedHeadRestart = "ray.io/disable-provisioned-head-restart"
	// AnnotationSpecHash holds the hash of a RayService's cluster spec on the RayCluster that was made from it, without
	// the fields that an autoscaler changes.
	AnnotationSpecHash = "ray.io/hash-without-replicas-and-workers-to-delete"
	// AnnotationNumWorkerGroups holds the number of worker groups at that time.
	AnnotationNumWorkerGroups = "ray.io/num-worker-groups"
	// AnnotationOperatorVersion holds the version of the operator that wrote the object's hashes.
	AnnotationOperatorVersion = "ray.io/kuberay-version"
	// AnnotationRecreateHash holds, on head and worker Pods, the hash of what they were made from, for the upgrade
	// strategy Recreate.
	AnnotationRecreateHash = "ray.io/upgrade-strategy-recreate-hash"
	// AnnotationHosts holds, on the Pods of a replica of several hosts, how many hosts the replica was made for.
	// Heliostat adds it.
	AnnotationHosts = "heliostat.io/hosts"
	// AnnotationApplied holds, on Services and other objects that the operator keeps as wanted, a hash of what it last
	// asked for. Heliostat adds it.
	AnnotationApplied = "heliostat.io/applied"
	// AnnotationToken holds, on Pods that use the token which the operator made, a short hash of that token. Heliostat
	// adds it.
	AnnotationToken = "heliostat.io/auth-token" //nolint:gosec // the name of an annotation, not a token
	// AnnotationSubmitTo holds, on the head Pod of a RayJob in SidecarMode, the session of Ray to which the container beside it
	// may submit. It is set once that life of the head is on record. Heliostat adds it.
	AnnotationSubmitTo = "heliostat.io/submit-to-session"
	// AnnotationCronJobScheduledTimestamp holds the tick for which a RayCronJob created a RayJob: RFC 3339, UTC.
	AnnotationCronJobScheduledTimestamp = "ray.io/cronjob-scheduled-timestamp"
	// AnnotationIngressClass names the ingress class of a RayCluster's Ingress.
	AnnotationIngressClass = "kubernetes.io/ingress.class"
)

// Annotations of a RayService and of what is made for it. Heliostat adds them.
const (
	// AnnotationDrainTimeout on a RayService is how many seconds a replaced cluster is kept for requests that have not
	// ended. Unset means 300.
	AnnotationDrainTimeout = "heliostat.io/drain-timeout-seconds"
	// AnnotationUpgradeTimeout on a RayService is how long a new cluster may take before its upgrade is given up: a Go
	// duration or seconds. Unset means that it may take for ever.
	AnnotationUpgradeTimeout = "heliostat.io/upgrade-timeout"
	// AnnotationServeProxyLocation on a RayCluster, which gets it from its RayService, says on which nodes Serve's proxies
	// run, where that is not on every node: ServeProxyHeadOnly or ServeProxyDisabled.
	AnnotationServeProxyLocation = "heliostat.io/serve-proxy-location"
	// AnnotationServesCluster holds, on the Service that leads to Serve and on the HTTPRoute, the name of the RayCluster
	// that serves. It is written together with what sends the traffic there: this write is the cut-over.
	AnnotationServesCluster = "heliostat.io/serves-cluster"
	// AnnotationServesGoal holds, beside AnnotationServesCluster, the goal of that cluster.
	AnnotationServesGoal = "heliostat.io/serves-goal"
	// AnnotationSwitchedAt holds, beside AnnotationServesCluster, the time of the cut-over: RFC 3339, UTC.
	AnnotationSwitchedAt = "heliostat.io/switched-at"
	// AnnotationSwitchedFrom holds, beside AnnotationServesCluster, the name of the RayCluster that served before.
	AnnotationSwitchedFrom = "heliostat.io/switched-from"
	// AnnotationSwitchReason holds, beside AnnotationServesCluster, why the traffic moved: one of the CutOver values.
	AnnotationSwitchReason = "heliostat.io/switch-reason"
	// AnnotationRetiredAt holds, on a RayCluster that has no part in its RayService any more, since when: RFC 3339, UTC.
	AnnotationRetiredAt = "heliostat.io/retired-at"
	// AnnotationAbandoned marks a RayCluster that is about to be deleted and gets no traffic any more, whatever the spec
	// says by then. Its value is the time of the decision: RFC 3339, UTC.
	AnnotationAbandoned = "heliostat.io/abandoned"
	// AnnotationServeConfig holds, on a RayCluster, the last config that Serve was seen to have taken there.
	AnnotationServeConfig = "heliostat.io/serve-config"
)

// Values of AnnotationServeProxyLocation.
const (
	// ServeProxyHeadOnly means that only the head runs a proxy.
	ServeProxyHeadOnly = "HeadOnly"
	// ServeProxyDisabled means that no node runs a proxy.
	ServeProxyDisabled = "Disabled"
)

// Finalizers that the operator sets.
const (
	// FinalizerGCSFTRedisCleanup keeps a RayCluster until its keys are gone from Redis.
	FinalizerGCSFTRedisCleanup = "ray.io/gcs-ft-redis-cleanup-finalizer"
	// FinalizerRayJob keeps a RayJob until Ray was asked to stop its job.
	FinalizerRayJob = "ray.io/rayjob-finalizer"
	// FinalizerRayCronJobTick keeps a RayJob until the RayCronJob that made it has recorded its tick, so that the tick is
	// not run again when the RayJob is gone. It is there for moments only. Heliostat adds it.
	FinalizerRayCronJobTick = "heliostat.io/raycronjob-tick"
	// FinalizerRayService keeps a RayService until its RayClusters are gone.
	FinalizerRayService = "ray.io/rayservice-finalizer"
)

// Keys in the metadata of a Ray job by which its RayJob is recognised. Heliostat adds them.
const (
	// MetadataRayJobUID holds the UID of the RayJob.
	MetadataRayJobUID = "heliostat.io/rayjob-uid"
	// MetadataAttempt holds the number of the attempt.
	MetadataAttempt = "heliostat.io/attempt"
)
