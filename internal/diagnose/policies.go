package diagnose

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/ray"
)

// dnsPort is the port of the cluster's name server.
const dnsPort = 53

// waiters are the workers that wait for the head of a cluster for long, although it is ready for as long.
func (s *Snapshot) waiters(cluster *rayv1.RayCluster) []*corev1.Pod {
	head := s.head(cluster)
	if head == nil || s.readyFor(head) < joining {
		return nil
	}
	return slices.DeleteFunc(s.nodes(cluster, rayv1.NodeTypeWorker), func(pod *corev1.Pod) bool {
		return !slices.ContainsFunc(pod.Status.InitContainerStatuses, func(c corev1.ContainerStatus) bool {
			return c.Name == ray.WaitForGCSContainer && c.State.Running != nil && !s.youngerThan(c.State.Running.StartedAt, joining)
		})
	})
}

// waiting is one worker that waits, and what it waits for.
type waitingWorker struct {
	cluster      *rayv1.RayCluster
	head, worker *corev1.Pod
}

// firstWaiters are one waiting worker of each cluster, the first by name: the others wait for the same reason.
func (s *Snapshot) firstWaiters() []waitingWorker {
	var all []waitingWorker
	for _, cluster := range s.living() {
		if workers := s.waiters(cluster); len(workers) > 0 {
			first := slices.MinFunc(workers, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
			all = append(all, waitingWorker{cluster, s.head(cluster), first})
		}
	}
	return all
}

func (w waitingWorker) gcsPort() int32 {
	port, err := strconv.ParseInt(ray.GCSPort(w.cluster.Spec.HeadGroupSpec.RayStartParams), 10, 32)
	if err != nil {
		return ray.DefaultGCSPort
	}
	return int32(port)
}

func policyBlocksGCS(s *Snapshot) []Finding {
	var findings []Finding
	for _, w := range s.firstWaiters() {
		policies, side := s.blocking(w)
		if len(policies) == 0 {
			continue
		}
		findings = append(findings, Finding{Reason: "NetworkPolicyBlocksGCS", Object: "NetworkPolicy " + policies[0],
			Message: fmt.Sprintf("%s port %d between Pod %s and head Pod %s is allowed by "+
				"none of: %s", side, w.gcsPort(), w.worker.Name, w.head.Name, list(policies)),
			Cause: fmt.Sprintf("NetworkPolicy %s keeps the workers of RayCluster %s from port %d of "+
				"their head.", list(policies), w.cluster.Name, w.gcsPort()),
			Next: fmt.Sprintf("Add a rule to NetworkPolicy %s that allows %s on all ports between Pods with the label "+
				"%s=%s: Ray uses more ports than %d.",
				policies[0], side, rayv1.LabelCluster, w.cluster.Name, w.gcsPort())})
	}
	return findings
}

// blocking are the policies that keep a worker from its head, and the side on which they do.
func (s *Snapshot) blocking(w waitingWorker) (policies []string, side string) {
	if names, allowed := s.allowed(w.head, networkingv1.PolicyTypeIngress, traffic{w.worker, w.head, w.gcsPort()}); !allowed {
		return names, "ingress"
	}
	if names, allowed := s.allowed(w.worker, networkingv1.PolicyTypeEgress, traffic{w.head, w.head, w.gcsPort()}); !allowed {
		return names, "egress"
	}
	return nil, ""
}

func policyBlocksDNS(s *Snapshot) []Finding {
	var findings []Finding
	for _, w := range s.firstWaiters() {
		if blocked, _ := s.blocking(w); len(blocked) > 0 {
			continue
		}
		names, allowed := s.allowed(w.worker, networkingv1.PolicyTypeEgress, traffic{nil, nil, dnsPort})
		if allowed {
			continue
		}
		findings = append(findings, Finding{Reason: "NetworkPolicyBlocksDNS", Object: "NetworkPolicy " + names[0],
			Message: fmt.Sprintf("egress to port %d from Pod %s is allowed by "+
				"none of: %s", dnsPort, w.worker.Name, list(names)),
			Cause: fmt.Sprintf("NetworkPolicy %s keeps the workers of RayCluster %s from the name server, so they do not "+
				"find their head.", list(names), w.cluster.Name),
			Next: fmt.Sprintf("Add an egress rule to NetworkPolicy %s that allows UDP and TCP port %d to the Pods of "+
				"the name server in namespace kube-system.", names[0], dnsPort)})
	}
	return findings
}

// traffic is a connection as one side sees it.
type traffic struct {
	// peer is the other side. It is nil for a Pod of another namespace of which nothing is known.
	peer *corev1.Pod
	// server is the Pod whose names of ports count, or nil.
	server *corev1.Pod
	port   int32
}

// allowed tells whether the policies that select a Pod allow some traffic. Policies add up; a Pod that none selects may do
// all. What cannot be judged, for example labels of namespaces, counts as allowed.
func (s *Snapshot) allowed(pod *corev1.Pod, direction networkingv1.PolicyType, t traffic) (policies []string, allowed bool) {
	for _, policy := range s.Policies {
		if !selects(&policy.Spec.PodSelector, pod.Labels) || !slices.Contains(directions(policy), direction) {
			continue
		}
		policies = append(policies, policy.Name)
		if direction == networkingv1.PolicyTypeIngress {
			for _, rule := range policy.Spec.Ingress {
				allowed = allowed || t.passes(rule.From, rule.Ports)
			}
			continue
		}
		for _, rule := range policy.Spec.Egress {
			allowed = allowed || t.passes(rule.To, rule.Ports)
		}
	}
	slices.Sort(policies)
	return policies, allowed || len(policies) == 0
}

// directions are those that a policy is about. Kubernetes fills them in; this is its default.
func directions(policy *networkingv1.NetworkPolicy) []networkingv1.PolicyType {
	if len(policy.Spec.PolicyTypes) > 0 {
		return policy.Spec.PolicyTypes
	}
	types := []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
	if len(policy.Spec.Egress) > 0 {
		types = append(types, networkingv1.PolicyTypeEgress)
	}
	return types
}

func (t traffic) passes(peers []networkingv1.NetworkPolicyPeer, ports []networkingv1.NetworkPolicyPort) bool {
	return (len(peers) == 0 || slices.ContainsFunc(peers, t.from)) && (len(ports) == 0 || slices.ContainsFunc(ports, t.at))
}

func (t traffic) from(peer networkingv1.NetworkPolicyPeer) bool {
	switch {
	case peer.IPBlock != nil:
		return t.peer == nil || inBlock(peer.IPBlock, t.peer.Status.PodIP)
	case peer.NamespaceSelector == nil:
		return t.peer != nil && selects(peer.PodSelector, t.peer.Labels)
	case t.peer == nil, !ownNamespace(peer.NamespaceSelector, t.peer.Namespace):
		return t.peer == nil
	default:
		return peer.PodSelector == nil || selects(peer.PodSelector, t.peer.Labels)
	}
}

// ownNamespace tells whether a selector of namespaces may select one of which only the name is known.
func ownNamespace(selector *metav1.LabelSelector, namespace string) bool {
	name, named := selector.MatchLabels[corev1.LabelMetadataName]
	return !named || name == namespace
}

func inBlock(block *networkingv1.IPBlock, address string) bool {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return true
	}
	in := func(cidr string) bool {
		prefix, err := netip.ParsePrefix(cidr)
		return err == nil && prefix.Contains(ip)
	}
	return in(block.CIDR) && !slices.ContainsFunc(block.Except, in)
}

func (t traffic) at(port networkingv1.NetworkPolicyPort) bool {
	// DNS uses both protocols, and one is enough; everything else here is TCP.
	if port.Protocol != nil && *port.Protocol != corev1.ProtocolTCP && (*port.Protocol != corev1.ProtocolUDP || t.port != dnsPort) {
		return false
	}
	switch {
	case port.Port == nil:
		return true
	case port.Port.Type == intstr.String && t.server == nil:
		return true
	case port.Port.Type == intstr.String:
		number, ok := declared(t.server, port.Port.StrVal)
		return ok && number == t.port
	case port.EndPort != nil:
		return port.Port.IntVal <= t.port && t.port <= *port.EndPort
	default:
		return port.Port.IntVal == t.port
	}
}

func selects(selector *metav1.LabelSelector, of map[string]string) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && s.Matches(labels.Set(of))
}
