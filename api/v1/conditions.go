package v1

// Types of conditions of a RayCluster.
const (
	// ConditionValid is True when the spec can be acted upon, and False when it cannot: then the cluster is kept as the
	// last spec asked that could, until the spec is corrected. Heliostat adds this condition.
	ConditionValid = "Valid"
	// ConditionHeadPodReady mirrors the condition Ready of the head Pod.
	ConditionHeadPodReady = "HeadPodReady"
	// ConditionRayClusterProvisioned becomes True when all wanted Pods were ready for the first time, and stays True until a
	// suspend is complete.
	ConditionRayClusterProvisioned = "RayClusterProvisioned"
	// ConditionReplicaFailure is True while Pods cannot be created or deleted; else it is absent.
	ConditionReplicaFailure = "ReplicaFailure"
	// ConditionRayClusterSuspending is True from the request to suspend until all Pods are gone.
	ConditionRayClusterSuspending = "RayClusterSuspending"
	// ConditionRayClusterSuspended is True while the cluster has no Pods because it is suspended.
	ConditionRayClusterSuspended = "RayClusterSuspended"
	// ConditionReady is True while everything that the observed generation of the spec asks for is there and ready, and
	// no Pod too many. Heliostat adds this condition.
	ConditionReady = "Ready"
	// ConditionReconciling is True while the cluster is on its way to what the spec asks for and can get there by
	// itself. It is never True together with ConditionStalled. Heliostat adds this condition.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True while something must be changed by somebody before the cluster can become what the spec
	// asks for. Its reason is that of the worst trouble. Heliostat adds this condition.
	ConditionStalled = "Stalled"
	// ConditionPodsHealthy is False while a Pod is in trouble, or refused. Its reason is the worst of them in Kubernetes'
	// own word, for example ImagePullBackOff; its message has a line for each group. A Pod that is only young is in no
	// trouble. Heliostat adds this condition.
	ConditionPodsHealthy = "PodsHealthy"
	// ConditionTroubled is True while anything is wrong with the object, whether it blocks or may pass by itself; else it is
	// absent. It has the worst finding: the reason is its own, the message names the object to look at, the evidence and the
	// cause and ends with "[finding ID: what to do]". The ids are those of docs/troubleshooting.md. RayJobs, RayServices
	// and RayCronJobs have it, too. Heliostat adds this condition.
	ConditionTroubled = "Troubled"
	// ConditionNameCollision is True while objects that are not the cluster's own stand under names or labels of the
	// cluster; else it is absent. Its message names them. Heliostat adds this condition.
	ConditionNameCollision = "NameCollision"
	// ConditionStorageReady says, of a cluster whose GCS keeps its state on a volume, whether that volume is as the spec asks
	// for; else it is absent. Heliostat adds this condition.
	ConditionStorageReady = "StorageReady"
	// ConditionPodsUpToDate is False while there are Pods that were made from a spec which differs from the present one in
	// what shapes them. Without the upgrade strategy Recreate they stay until they end. Heliostat adds this condition.
	ConditionPodsUpToDate = "PodsUpToDate"
)

// Reasons of ConditionPodsUpToDate.
const (
	// ReasonPodsUpToDate means that no Pod was made from another spec.
	ReasonPodsUpToDate = "PodsUpToDate"
	// ReasonSpecChanged means that the message counts the Pods that were.
	ReasonSpecChanged = "SpecChanged"
)

// Reasons of ConditionReady, ConditionReconciling, ConditionStalled and ConditionPodsHealthy. Where ConditionStalled is
// True, and ConditionPodsHealthy False, the reason is that of the trouble instead.
const (
	// ReasonAllPodsReady means that the cluster is as wanted.
	ReasonAllPodsReady = "AllPodsReady"
	// ReasonPodsNotReady means that Pods are missing, not ready, or too many.
	ReasonPodsNotReady = "PodsNotReady"
	// ReasonSuspending means that the cluster is losing its Pods because it is to be suspended.
	ReasonSuspending = "Suspending"
	// ReasonSuspended means that the cluster has no Pods because it is suspended.
	ReasonSuspended = "Suspended"
	// ReasonStalled is the reason of ConditionReconciling while ConditionStalled is True.
	ReasonStalled = "Stalled"
	// ReasonNameCollision is the reason of ConditionNameCollision, and of ConditionStalled because of it.
	ReasonNameCollision = "NameCollision"
	// ReasonClaimReady means that the claim of ConditionStorageReady is there and is as the spec asks for.
	ReasonClaimReady = "ClaimReady"
	// ReasonClaimMissing means that the claim is not there.
	ReasonClaimMissing = "ClaimMissing"
	// ReasonClaimDiffers means that the claim is used although it is not as the spec asks for.
	ReasonClaimDiffers = "ClaimDiffers"
	// ReasonClaimInUse means that the head of another cluster is on the volume, so no head is made.
	ReasonClaimInUse = "ClaimInUse"
	// ReasonNoTrouble means that no Pod reports trouble and none is refused.
	ReasonNoTrouble = "NoTrouble"
)

// Reasons of ConditionValid.
const (
	// ReasonSpecValid means that every part of the spec is served.
	ReasonSpecValid = "SpecValid"
	// ReasonSpecInvalid means that the spec breaks a rule, which the message names.
	ReasonSpecInvalid = "SpecInvalid"
	// ReasonPartlyServed means that the spec is right and that this operator does not serve a part of it; the message
	// names that part.
	ReasonPartlyServed = "PartlyServed"
)

// Reasons of the other conditions of a RayCluster.
const (
	// ReasonHeadPodNotFound means that there is no head Pod.
	ReasonHeadPodNotFound = "HeadPodNotFound"
	// ReasonHeadPodRunningAndReady means that the head Pod is ready.
	ReasonHeadPodRunningAndReady = "HeadPodRunningAndReady"
	// ReasonUnknown means that the Pod gives no reason.
	ReasonUnknown = "Unknown"
	// ReasonContainersNotReady is the reason of a Pod of which some containers are not ready.
	ReasonContainersNotReady = "ContainersNotReady"
	// ReasonRayClusterPodsProvisioning means that not all Pods have been ready yet.
	ReasonRayClusterPodsProvisioning = "RayClusterPodsProvisioning"
	// ReasonAllPodRunningAndReadyFirstTime means that all Pods were ready for the first time.
	ReasonAllPodRunningAndReadyFirstTime = "AllPodRunningAndReadyFirstTime"
	// ReasonFailedDeleteAllPods means that the Pods of a cluster being suspended could not be deleted.
	ReasonFailedDeleteAllPods = "FailedDeleteAllPods"
	// ReasonFailedDeleteHeadPod means that the head Pod could not be deleted.
	ReasonFailedDeleteHeadPod = "FailedDeleteHeadPod"
	// ReasonFailedCreateHeadPod means that the head Pod could not be created.
	ReasonFailedCreateHeadPod = "FailedCreateHeadPod"
	// ReasonFailedDeleteWorkerPod means that a worker Pod could not be deleted.
	ReasonFailedDeleteWorkerPod = "FailedDeleteWorkerPod"
	// ReasonFailedCreateWorkerPod means that a worker Pod could not be created.
	ReasonFailedCreateWorkerPod = "FailedCreateWorkerPod"
	// ReasonRayClusterSuspending is the reason of ConditionRayClusterSuspending, whatever its status.
	ReasonRayClusterSuspending = "RayClusterSuspending"
	// ReasonRayClusterSuspended is the reason of ConditionRayClusterSuspended, whatever its status.
	ReasonRayClusterSuspended = "RayClusterSuspended"
)

// Types of conditions of a RayJob, besides ConditionValid, ConditionReady, ConditionReconciling and ConditionStalled.
// Heliostat adds all of them. Those of an end speak of the RayJob, not of one attempt.
const (
	// ConditionSubmitted is True when Ray has said that it has the job of the present attempt.
	ConditionSubmitted = "Submitted"
	// ConditionRunning is True while Ray says that the job's driver runs.
	ConditionRunning = "Running"
	// ConditionSucceeded is True when the RayJob has ended and Ray says that the job succeeded.
	ConditionSucceeded = "Succeeded"
	// ConditionFailed is True when the RayJob has ended as failed. Its reason is status.reason.
	ConditionFailed = "Failed"
	// ConditionStopped is True when the RayJob has ended with a Ray job that was stopped on request.
	ConditionStopped = "Stopped"
)

// Reasons of the conditions of a RayJob. Besides these, ConditionFailed and ConditionStalled have status.reason, and
// ConditionStalled that of the trouble in Kubernetes' own word.
const (
	// ReasonConfirmed means that Ray has the job.
	ReasonConfirmed = "Confirmed"
	// ReasonNotConfirmed means that Ray has not said yet that it has the job.
	ReasonNotConfirmed = "NotConfirmed"
	// ReasonJobStatus is the reason of ConditionRunning; the message is what Ray says.
	ReasonJobStatus = "JobStatus"
	// ReasonNotEnded means that the RayJob has not ended.
	ReasonNotEnded = "NotEnded"
	// ReasonEnded means that the RayJob has ended; the message tells how.
	ReasonEnded = "Ended"
	// ReasonWaitingForCluster means that the RayCluster is not ready yet.
	ReasonWaitingForCluster = "WaitingForCluster"
	// ReasonWaitingForRay means that Ray's dashboard has not answered yet.
	ReasonWaitingForRay = "WaitingForRay"
	// ReasonWaitingForUser means that somebody must submit the job (InteractiveMode).
	ReasonWaitingForUser = "WaitingForUser"
	// ReasonSubmitting means that the job is on its way to Ray.
	ReasonSubmitting = "Submitting"
	// ReasonStopping means that the Ray job is being stopped.
	ReasonStopping = "Stopping"
	// ReasonRetrying means that a failed attempt is being taken down before the next one.
	ReasonRetrying = "Retrying"
	// ReasonRayDoesNotAnswer means that Ray cannot be asked for the job's status.
	ReasonRayDoesNotAnswer = "RayDoesNotAnswer"
	// ReasonRayClusterNotFound means that there is no RayCluster of the selected name.
	ReasonRayClusterNotFound = "RayClusterNotFound"
	// ReasonNoDashboardPort means that the head's Service has no port named "dashboard".
	ReasonNoDashboardPort = "NoDashboardPort"
	// ReasonTakenDownSlowly means that what is left of an attempt does not go; the message names it.
	ReasonTakenDownSlowly = "TakenDownSlowly"
)
