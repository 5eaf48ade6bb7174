package diagnose

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// meshProxies are the containers by which service meshes take over the traffic of a Pod.
func meshProxies() []string { return []string{"istio-proxy", "linkerd-proxy"} }

// meshMarks are parts of lines, in lower case, that tell of connections which a proxy has cut.
func meshMarks() []string {
	return []string{"connection reset by peer", "upstream connect error", "connection reset"}
}

func hasContainer(pod *corev1.Pod, names ...string) bool {
	return slices.ContainsFunc(slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers), func(c corev1.Container) bool {
		return slices.Contains(names, c.Name)
	})
}

// meshBlocks looks only at workers that wait: with a mesh that lets Ray through there are none.
func meshBlocks(s *Snapshot) []Finding {
	var findings []Finding
	for _, w := range s.firstWaiters() {
		why := s.meshTrouble(w)
		if why == "" {
			continue
		}
		findings = append(findings, Finding{Reason: "ServiceMesh", Object: "Pod " + w.worker.Name, Message: why,
			Cause: fmt.Sprintf("The proxy of a service mesh stands between worker Pod %s and head Pod %s and cuts their "+
				"connection.", w.worker.Name, w.head.Name),
			Next: fmt.Sprintf("Give all Pod templates of RayCluster %s the same setting of the mesh: none of them "+
				"(annotation sidecar.istio.io/inject: \"false\" or "+
				"linkerd.io/inject: disabled), or all of them with the peer authentication of the namespace not in "+
				"mode STRICT.", w.cluster.Name)})
	}
	return findings
}

func (s *Snapshot) meshTrouble(w waitingWorker) string {
	onHead, onWorker := hasContainer(w.head, meshProxies()...), hasContainer(w.worker, meshProxies()...)
	switch {
	case onHead != onWorker:
		in, out := w.head.Name, w.worker.Name
		if onWorker {
			in, out = out, in
		}
		return fmt.Sprintf("Pod %s has a proxy of the mesh and Pod %s has none", in, out)
	case !onHead:
		return ""
	}
	for _, log := range s.logs() {
		about := log.pod.Name == w.worker.Name || log.pod.Name == w.head.Name
		if about && lastLine(log.text, meshMarks()) != "" {
			return fmt.Sprintf("Pod %s has a proxy of the mesh, and its container %s reports connections that "+
				"were reset", log.pod.Name, log.container)
		}
	}
	return ""
}

// workerNotConnected tells of workers that wait and for which no other rule has a reason.
func workerNotConnected(s *Snapshot) []Finding {
	var findings []Finding
	for _, w := range s.firstWaiters() {
		if s.waitExplained(w) {
			continue
		}
		findings = append(findings, Finding{Reason: "WaitsForGCS", Object: "Pod " + w.worker.Name,
			Message: fmt.Sprintf("its init container waits for the GCS, although head Pod %s is ready", w.head.Name),
			Cause: fmt.Sprintf("Worker Pod %s does not reach the GCS on port %d of "+
				"head Pod %s.", w.worker.Name, w.gcsPort(), w.head.Name),
			Next: fmt.Sprintf("Read \"kubectl logs %s -c wait-gcs-ready\"; if it names a host that is not found, check the "+
				"name server, else check that traffic between the nodes "+
				"%s and %s is allowed and that both images have the same "+
				"version of Ray.", w.worker.Name, w.worker.Spec.NodeName, w.head.Spec.NodeName)})
	}
	return findings
}

// waitExplained tells whether another rule says why a worker waits.
func (s *Snapshot) waitExplained(w waitingWorker) bool {
	if names, _ := s.blocking(w); len(names) > 0 || s.meshTrouble(w) != "" {
		return true
	}
	if len(policyBlocksDNS(s)) > 0 {
		return true
	}
	service := s.headService(w.cluster)
	broken := s.Services != nil && (service == nil || len(differing(service.Spec.Selector, w.head.Labels)) > 0 || portTrouble(w.cluster, service, w.head) != "")
	if broken || service != nil && s.Slices != nil && !s.hasEndpoint(service) {
		return true
	}
	for _, log := range s.logs() {
		if log.pod.Labels[rayv1.LabelCluster] != w.cluster.Name {
			continue
		}
		for _, trouble := range []logTrouble{nameTrouble(), tokenTrouble(), tlsTrouble()} {
			if lastLine(log.text, trouble.marks) != "" && trouble.possible(s, log) {
				return true
			}
		}
	}
	return false
}
