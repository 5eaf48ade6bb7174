package diagnose

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// logTrouble is a kind of trouble that shows only in what a container wrote.
type logTrouble struct {
	reason string
	// marks are parts of lines, in lower case.
	marks []string
	// cause and next get the name of the Pod and of the container.
	cause, next string
}

const (
	reasonToken = "TokenMismatch"
	reasonTLS   = "TLSMismatch"
)

// nameTrouble is what a log says about: that a name was not found.
func nameTrouble() logTrouble {
	return logTrouble{"NameNotResolved",
		[]string{"name or service not known", "temporary failure in name resolution", "nodename nor servname", "no address associated with hostname"},
		"Pod %[1]s cannot turn a name into an address: the name server does not answer it, or the cluster's domain is " +
			"another one than the operator believes.",
		"Run \"kubectl exec %[1]s -c %[2]s -- getent hosts kubernetes.default\"; if that fails, look at the Pods of the " +
			"name server in namespace kube-system, else " +
			"compare the domain at the end of \"search\" in the Pod's /etc/resolv.conf with the environment variable " +
			"CLUSTER_DOMAIN of the operator."}
}

// tokenTrouble is what a log says about: that a token was not taken.
func tokenTrouble() logTrouble {
	return logTrouble{reasonToken,
		[]string{"invalidtoken", "invalidauthtoken", "invalid authentication token", "unauthenticated", "authentication failed",
			"authentication token is missing", "missing authentication token", "token authentication is enabled but"},
		"Container %[2]s of Pod %[1]s shows Ray no token, or another one than the head has.",
		"Make spec.authOptions the same for all that connect and delete Pod %[1]s, so that it reads the token anew; a " +
			"client needs RAY_AUTH_MODE=token and the key " +
			"auth_token of the cluster's Secret in RAY_AUTH_TOKEN."}
}

// tlsTrouble is what a log says about: that two sides do not agree about TLS.
func tlsTrouble() logTrouble {
	return logTrouble{reasonTLS,
		[]string{"certificate_verify_failed", "certificate verify failed", "ssl handshake", "tls handshake", "ssl_error", "wrong_version_number"},
		"Container %[2]s of Pod %[1]s and the other side do not agree about TLS: one speaks it and the other does not, or " +
			"a certificate is not trusted.",
		"Check that RAY_USE_TLS and the mounted certificates are the same in all Pod templates of the cluster, that the " +
			"certificates name the head Service, and " +
			"that they have not expired; then delete Pod %[1]s."}
}

// possible tells whether words in the log of a Ray node can mean this trouble. A name, and the GCS behind it, may well be missing for a
// worker that waits until the head is ready; tokens and certificates are of others where the cluster asks for none.
func (t logTrouble) possible(s *Snapshot, log podLog) bool {
	cluster := s.clusterOf(log.pod)
	if cluster == nil {
		return false
	}
	switch t.reason {
	case reasonToken:
		return asksForToken(cluster)
	case reasonTLS:
		return s.usesTLS(cluster)
	default:
		return !log.init || log.pod.Labels[rayv1.LabelNodeType] != rayv1.NodeTypeWorker || s.headReadyFor(log.pod, joining)
	}
}

// usesTLS tells whether a node of a cluster is told to speak TLS.
func (s *Snapshot) usesTLS(cluster *rayv1.RayCluster) bool {
	const variable = "RAY_USE_TLS"
	if options := cluster.Spec.TLSOptions; options != nil && isTrue(options.Enabled) || sets(&cluster.Spec.HeadGroupSpec.Template.Spec, variable) {
		return true
	}
	byGroup := func(group rayv1.WorkerGroupSpec) bool { return sets(&group.Template.Spec, variable) }
	byPod := func(pod *corev1.Pod) bool {
		return pod.Labels[rayv1.LabelCluster] == cluster.Name && sets(&pod.Spec, variable)
	}
	return slices.ContainsFunc(cluster.Spec.WorkerGroupSpecs, byGroup) || slices.ContainsFunc(s.Pods, byPod)
}

// logRule returns a rule that finds a kind of trouble in the logs. It tells of one Pod for each trouble and cluster.
func logRule(trouble logTrouble) func(*Snapshot) []Finding {
	return func(s *Snapshot) []Finding {
		var findings []Finding
		told := map[string]bool{}
		for _, log := range s.logs() {
			line := lastLine(log.text, trouble.marks)
			cluster := log.pod.Labels[rayv1.LabelCluster]
			if line == "" || told[cluster] || !trouble.possible(s, log) {
				continue
			}
			told[cluster] = true
			findings = append(findings, Finding{Reason: trouble.reason, Object: "Pod " + log.pod.Name,
				Message: fmt.Sprintf("container %s reports in its log: %s", log.container, trouble.marksIn(line)),
				Cause:   fmt.Sprintf(trouble.cause, log.pod.Name, log.container),
				Next:    fmt.Sprintf(trouble.next, log.pod.Name, log.container)})
		}
		return findings
	}
}

// podLog is what a container wrote last.
type podLog struct {
	pod       *corev1.Pod
	container string
	init      bool
	text      string
}

// logs are those of Pods that live, by the name of the Pod.
func (s *Snapshot) logs() []podLog {
	var all []podLog
	pods := slices.SortedFunc(slices.Values(s.Pods), func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	for _, pod := range pods {
		if stageOf(pod) == terminating {
			continue
		}
		for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			if text := s.Logs[LogKey(pod.Name, c.Name)]; text != "" {
				all = append(all, podLog{pod, c.Name, slices.ContainsFunc(pod.Spec.InitContainers, func(i corev1.Container) bool { return i.Name == c.Name }), text})
			}
		}
	}
	return all
}

// lastLine is the last line in which one of the marks stands, or empty.
func lastLine(text string, marks []string) string {
	lines := strings.Split(text, "\n")
	slices.Reverse(lines)
	for _, line := range lines {
		lower := strings.ToLower(line)
		if slices.ContainsFunc(marks, func(mark string) bool { return strings.Contains(lower, mark) }) {
			return line
		}
	}
	return ""
}

// marksIn is the mark in a line, as it is written there. The rest of the line may hold the time, which changes.
func (t logTrouble) marksIn(line string) string {
	lower := strings.ToLower(line)
	for _, mark := range t.marks {
		if at := strings.Index(lower, mark); at >= 0 && len(lower) == len(line) {
			return quoted(strings.TrimSpace(line[at : at+len(mark)]))
		}
	}
	return t.reason
}
