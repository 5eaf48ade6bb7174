package v1

// Types of conditions of a RayService. Besides these there are ConditionValid, ConditionReconciling and ConditionStalled.
const (
	// ConditionRayServiceReady is True while at least one Pod takes requests.
	ConditionRayServiceReady = "Ready"
	// ConditionUpgradeInProgress is True while a second cluster is prepared to take over.
	ConditionUpgradeInProgress = "UpgradeInProgress"
	// ConditionRollbackInProgress is True while a step by step take-over is being undone; else it is absent.
	ConditionRollbackInProgress = "RollbackInProgress"
	// ConditionRayServiceSuspending is True from the request to suspend until all owned objects are gone.
	ConditionRayServiceSuspending = "Suspending"
	// ConditionRayServiceSuspended is True while a suspended RayService owns nothing.
	ConditionRayServiceSuspended = "Suspended"
	// ConditionConfigApplied is True while Serve reports exactly the applications of the spec's serveConfigV2, on the
	// cluster that is to have them. Its observedGeneration is that of the spec which it speaks of. Heliostat adds this
	// condition.
	ConditionConfigApplied = "ConfigApplied"
	// ConditionApplicationsHealthy is True while Serve reports that every application is RUNNING on the cluster that serves,
	// or is to serve first, and Unknown while Serve does not report. Heliostat adds this condition.
	ConditionApplicationsHealthy = "ApplicationsHealthy"
	// ConditionEndpointsReady is True while the Service that leads to Serve has a ready endpoint. Heliostat adds this
	// condition.
	ConditionEndpointsReady = "EndpointsReady"
)

// Reasons of the conditions of a RayService that KubeRay has too.
const (
	// ReasonInitializing means that the RayService has not served yet.
	ReasonInitializing = "Initializing"
	// ReasonNonZeroServeEndpoints means that Pods take requests.
	ReasonNonZeroServeEndpoints = "NonZeroServeEndpoints"
	// ReasonZeroServeEndpoints means that Pods took requests, and none does now.
	ReasonZeroServeEndpoints = "ZeroServeEndpoints"
	// ReasonInitializingTimeout means that the RayService did not serve in time. It is final.
	ReasonInitializingTimeout = "InitializingTimeout"
	// ReasonValidationFailed means that the spec cannot be acted upon.
	ReasonValidationFailed = "ValidationFailed"
	// ReasonBothActivePendingClustersExist means that one cluster serves and another is prepared.
	ReasonBothActivePendingClustersExist = "BothActivePendingClustersExist"
	// ReasonNoPendingCluster means that one cluster serves and none is prepared.
	ReasonNoPendingCluster = "NoPendingCluster"
	// ReasonNoActiveCluster means that no cluster serves.
	ReasonNoActiveCluster = "NoActiveCluster"
	// ReasonDesiredClusterSpecChanged means that the spec changed during a step by step take-over.
	ReasonDesiredClusterSpecChanged = "DesiredClusterSpecChanged"
	// ReasonSuspendRequested means that suspending was asked for.
	ReasonSuspendRequested = "SuspendRequested"
	// ReasonSuspendInProgress means that owned objects are being deleted.
	ReasonSuspendInProgress = "SuspendInProgress"
	// ReasonSuspendComplete means that all owned objects are gone.
	ReasonSuspendComplete = "SuspendComplete"
	// ReasonRayServiceResumed means that the RayService is no longer suspended.
	ReasonRayServiceResumed = "RayServiceResumed"
)

// Reasons of ConditionConfigApplied, and of ConditionStalled because of it. Heliostat adds them.
const (
	// ReasonConfigApplied means that Serve has the config of the spec.
	ReasonConfigApplied = "ConfigApplied"
	// ReasonConfigPending means that the config has not been sent yet, or not been seen in Serve's report.
	ReasonConfigPending = "ConfigPending"
	// ReasonConfigInvalid means that serveConfigV2 breaks a rule, which the message names. It is not sent; the last good
	// config goes on serving.
	ReasonConfigInvalid = "ConfigInvalid"
	// ReasonConfigRefused means that Serve refused the config; the message is what Serve said. The last good config goes
	// on serving.
	ReasonConfigRefused = "ConfigRefused"
	// ReasonConfigDrifted means that Serve had the config and reports another one now; it is sent again.
	ReasonConfigDrifted = "ConfigDrifted"
)

// Reasons of ConditionApplicationsHealthy. Heliostat adds them.
const (
	// ReasonApplicationsRunning means that all applications are RUNNING.
	ReasonApplicationsRunning = "ApplicationsRunning"
	// ReasonApplicationsNotRunning means that the applications which the message names are not RUNNING.
	ReasonApplicationsNotRunning = "ApplicationsNotRunning"
	// ReasonNoReport means that Serve has not reported, or does not report any more.
	ReasonNoReport = "NoReport"
)

// Reasons of ConditionReconciling and ConditionStalled of a RayService, besides ReasonStalled, ReasonNameCollision,
// ReasonSuspending, ReasonSuspended, ReasonInitializingTimeout, that of the RayCluster in trouble, and those of
// ConditionConfigApplied. Heliostat adds them.
const (
	// ReasonServing means that the service is as the spec wants it.
	ReasonServing = "Serving"
	// ReasonUpgrading means that a second cluster is prepared to take over.
	ReasonUpgrading = "Upgrading"
	// ReasonUpgradeTimeout means that the second cluster was not ready in time and was given up. The active cluster goes on
	// serving; a change of the spec starts the next upgrade.
	ReasonUpgradeTimeout = "UpgradeTimeout"
	// ReasonGatewayAPIMissing means that a step by step take-over needs the Gateway API, which is not installed.
	ReasonGatewayAPIMissing = "GatewayAPIMissing"
	// ReasonGatewayNotReady means that the Gateway or the HTTPRoute has not been accepted in its present generation.
	ReasonGatewayNotReady = "GatewayNotReady"
	// ReasonServiceMissing means that no port of the head leads to Serve, or to the dashboard; the message tells which.
	ReasonServiceMissing = "ServiceMissing"
)

// Values of AnnotationSwitchReason and of the reason of a cut-over.
const (
	// CutOverFirstStart means that no cluster served before.
	CutOverFirstStart = "FirstStart"
	// CutOverUpgrade means that the cluster of another goal was ready to take over.
	CutOverUpgrade = "Upgrade"
	// CutOverRecovery means that the cluster which served before was lost.
	CutOverRecovery = "Recovery"
)
