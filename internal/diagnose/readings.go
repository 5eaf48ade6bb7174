package diagnose

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// reading tells what the words of kubelet, scheduler or container mean. Kubernetes has one reason for many causes, for
// example ImagePullBackOff for a wrong name and for a wrong password.
type reading struct {
	id string
	// reasons are those of the finding, or none for all.
	reasons []string
	// says are words in lower case of which one must stand in the evidence, or none for any evidence.
	says []string
}

func (r reading) fits(reason, evidence string) bool {
	if len(r.reasons) > 0 && !slices.Contains(r.reasons, reason) {
		return false
	}
	return len(r.says) == 0 || slices.ContainsFunc(r.says, func(word string) bool { return strings.Contains(evidence, word) })
}

// identify returns the id of the first reading that fits a Pod's finding. log is the end of the log of the container that
// the finding is about, or empty. Readings with one of the ids in without do not count.
func identify(reason, message, log string, without []string) string {
	evidence := strings.ToLower(message + "\n" + log)
	for _, r := range slices.Concat(imageReadings(), schedulingReadings(), configurationReadings(), containerReadings(), endReadings()) {
		if r.fits(reason, evidence) && !slices.Contains(without, r.id) {
			return r.id
		}
	}
	return idPodTrouble
}

func imageReadings() []reading {
	pull := []string{reasonImagePull, reasonImagePullFirst, "RegistryUnavailable", "ImageInspectError"}
	return []reading{
		{idImageNameInvalid, []string{"InvalidImageName"}, nil},
		{idImageNeverPulled, []string{"ErrImageNeverPull"}, nil},
		{idImageNoBuild, pull, []string{"no match for platform", "no matching manifest"}},
		{idImageNotFound, pull, []string{"not found", "manifest unknown", "notfound", "name unknown", "does not exist"}},
		{idRegistryUnreachable, pull, []string{"timeout", "deadline exceeded", "connection refused", "no such host", "network is unreachable", "server misbehaving", "x509", "no route to host", "unexpected eof"}},
		// A number alone may be part of a digest, a tag or an address.
		{idImageDenied, pull, []string{"401 unauthorized", "403 forbidden", "status: 401", "status: 403", "status 401", "status 403", "unauthorized", "denied",
			"authentication required", "no basic auth", "forbidden"}},
		{idRegistryUnreachable, []string{"RegistryUnavailable"}, nil},
		{idImagePull, pull, nil},
		{idImagePull, []string{"SignatureValidationFailed"}, nil},
	}
}

// selectorWords are the scheduler's about nodes that neither nodeSelector nor nodeAffinity of a Pod fits.
const selectorWords = "didn't match Pod's node affinity/selector"

func schedulingReadings() []reading {
	unschedulable := []string{corev1.PodReasonUnschedulable}
	return []reading{
		{idClaimMissing, unschedulable, []string{`persistentvolumeclaim "`}},
		{idClaimPending, unschedulable, []string{"unbound immediate persistentvolumeclaims"}},
		{idVolumeNodeConflict, unschedulable, []string{"volume node affinity conflict", "didn't find available persistent volumes",
			"didn't match persistentvolume's node affinity", "had no available volume zone"}},
		// A node lacks room only after it has passed the filters for selectors and taints, so this comes first: it is the
		// nearest that the Pod has come to a node.
		{idInsufficientResources, unschedulable, []string{"insufficient", "too many pods"}},
		{idSelectorMismatch, unschedulable, []string{strings.ToLower(selectorWords)}},
		{idUntoleratedTaint, unschedulable, []string{"untolerated taint", "didn't tolerate"}},
		{idTopologyMismatch, unschedulable, []string{"topology spread", "pod affinity", "anti-affinity"}},
		{idPortTakenOnNode, unschedulable, []string{"didn't have free ports"}},
		{idNodeUnschedulable, unschedulable, []string{"were unschedulable"}},
		{idUnschedulable, unschedulable, nil},
		{idNodeLost, []string{reasonNodeLost, reasonNodeNotReady}, nil},
		{idNodeLost, []string{ReasonStuckTerminating}, []string{"does not say that its containers have ended"}},
		{idStuckTerminating, []string{ReasonStuckTerminating}, nil},
		{idPreempted, []string{"PreemptionByScheduler", "Preempting"}, nil},
		{idEvicted, []string{"Evicted", "EvictionByEvictionAPI", "DeletionByTaintManager", "TerminationByKubelet", "NodeShutdown", "Terminated", "DeletionByPodGC"}, nil},
		{idRefusedByNode, []string{"UnexpectedAdmissionError", "OutOfcpu", "OutOfmemory", "OutOfpods", "NodeAffinity", "Taint"}, nil},
	}
}

func configurationReadings() []reading {
	config := []string{"CreateContainerConfigError"}
	return []reading{
		{idKeyMissing, config, []string{"couldn't find key", "could not find key", "non-existent config key", "references non-existent"}},
		{idKeyMissing, []string{ReasonFailedMount}, []string{"references non-existent"}},
		{idSecretMissing, config, []string{`secret "`}},
		{idConfigMapMissing, config, []string{`configmap "`}},
		{idSecretMissing, []string{ReasonFailedMount}, []string{`secret "`}},
		{idConfigMapMissing, []string{ReasonFailedMount}, []string{`configmap "`}},
		{idMultiAttach, []string{ReasonFailedMount}, []string{"multi-attach"}},
		{idVolumeNotMounted, []string{ReasonFailedMount}, nil},
		{idUserRefused, config, []string{"runasnonroot", "run as root", "non-numeric user", "breaks non-root policy", "invalid user id"}},
		{idContainerConfig, config, nil},
	}
}

func containerReadings() []reading {
	ends := []string{reasonCrashLoop, "Error", "ContainerCannotRun", "StartError", "RunContainerError", "CreateContainerError", "Completed", "Failed"}
	return []reading{
		{idOOMKilled, []string{reasonOOMKilled}, nil},
		{idImageNoBuild, ends, []string{"exec format error"}},
		{idRayNotInImage, ends, []string{"ray: command not found", "ray: not found", `exec: "ray": executable file not found`, "no module named 'ray'", "no module named ray"}},
		{idCommandNotInImage, ends, []string{"executable file not found", "exit code 127", "no such file or directory: unknown"}},
		{idPortInUse, ends, []string{"address already in use", "already occupied", "port is already allocated", "errno 98"}},
		{idVersionSkew, ends, []string{"version mismatch", "versions of ray", "different python version", "different versions of"}},
		{idTokenMismatch, ends, []string{"invalidauthtoken", "invalid auth token", "unauthenticated", "authentication token"}},
		{idBadStartParam, ends, []string{"no such option", "invalid value for '--", "usage: ray start", "got unexpected extra argument", "error: option '--"}},
		{idGCSUnreachable, ends, []string{"failed to connect to gcs", "unable to connect to gcs", "timed out while waiting for gcs", "could not connect to gcs", "failed to get gcs"}},
		{idDNS, ends, []string{"name or service not known", "temporary failure in name resolution", "nodename nor servname"}},
		{idRedisUnreachable, ends, []string{"redis"}},
	}
}

func endReadings() []reading {
	return []reading{
		{idSidecarEnded, nil, []string{"with restartpolicy never nothing starts it again"}},
		{idContainerExits, []string{reasonCrashLoop, "Error", "Completed", "ContainerCannotRun", "StartError", "RunContainerError", "CreateContainerError"}, nil},
	}
}

const (
	idImageNameInvalid      = "image-name-invalid"
	idImageNeverPulled      = "image-never-pulled"
	idImageNoBuild          = "image-no-build"
	idImageNotFound         = "image-not-found"
	idImageDenied           = "image-denied"
	idRegistryUnreachable   = "registry-unreachable"
	idImagePull             = "image-pull"
	idClaimMissing          = "claim-missing"
	idClaimPending          = "claim-pending"
	idVolumeNodeConflict    = "volume-node-conflict"
	idInsufficientResources = "insufficient-resources"
	idSelectorMismatch      = "selector-mismatch"
	idUntoleratedTaint      = "untolerated-taint"
	idTopologyMismatch      = "topology-mismatch"
	idPortTakenOnNode       = "host-port-taken"
	idNodeUnschedulable     = "nodes-cordoned"
	idUnschedulable         = "unschedulable"
	idNoScheduler           = "no-scheduler"
	idSchedulingGated       = "scheduling-gated"
	idNodeLost              = "node-lost"
	idStuckTerminating      = "stuck-terminating"
	idPreempted             = "preempted"
	idEvicted               = "evicted"
	idRefusedByNode         = "refused-by-node"

	idKeyMissing       = "key-missing"
	idSecretMissing    = "secret-missing"
	idConfigMapMissing = "configmap-missing"
	idMultiAttach      = "volume-multi-attach"

	idVolumeNotMounted  = "volume-not-mounted"
	idUserRefused       = "user-refused"
	idContainerConfig   = "container-config"
	idOOMKilled         = "oom-killed"
	idRayNotInImage     = "ray-not-in-image"
	idCommandNotInImage = "command-not-in-image"
	idPortInUse         = "port-in-use"
	idVersionSkew       = "version-skew"
	idTokenMismatch     = "token-mismatch"
	idBadStartParam     = "start-params-bad"
	idGCSUnreachable    = "gcs-unreachable"
	idDNS               = "name-not-resolved"
	idRedisUnreachable  = "redis-trouble"
	idSidecarEnded      = "sidecar-ended"
	idContainerExits    = "container-exits"
	idProbeFailing      = "probe-failing"
	idInitWaits         = "init-waits"
	idSlowStart         = "slow-start"
	idPodTrouble        = "pod-trouble"
)
