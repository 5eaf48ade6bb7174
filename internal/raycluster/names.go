package raycluster

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

const (
	// suffixAlphabet are the characters that the API server draws from for generated names: without vowels and
	// without what looks alike.
	suffixAlphabet = "bcdfghjklmnpqrstvwxz2456789"
	// suffixLength is the length of the ending of a generated name. Limits of other names count on it.
	suffixLength = 5
	// shortLength is the length at which the part of a name that comes from the user is cut.
	shortLength = 50
)

// PodSlot is the place of a Pod within its RayCluster, and the number of its life there.
type PodSlot struct {
	// Group is the name of the worker group, or rayv1.HeadGroupName.
	Group string
	// Replica is the index of the replica within the group, from 0.
	Replica int
	// Host is the index of the Pod within its replica, from 0.
	Host int
	// Incarnation counts the lives within the group. A number is never given out twice.
	Incarnation int64
}

// NameSuffix returns five characters that follow from the parts, in the alphabet of generated names. There are some
// 14 million endings, so different parts can have the same one: who creates objects must be ready for that.
func NameSuffix(parts ...string) string {
	hash := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(hash, "%d:%s", len(part), part)
	}
	number := binary.BigEndian.Uint64(hash.Sum(nil))
	suffix := make([]byte, suffixLength)
	for i := range suffix {
		suffix[i] = suffixAlphabet[number%uint64(len(suffixAlphabet))]
		number /= uint64(len(suffixAlphabet))
	}
	return string(suffix)
}

// PodName returns the name of the Pod in a slot: a prefix and an ending that follows from the owner's UID and the slot.
func PodName(prefix string, owner types.UID, slot PodSlot) string {
	return prefix + NameSuffix(string(owner), slot.Group, strconv.Itoa(slot.Replica), strconv.Itoa(slot.Host),
		strconv.FormatInt(slot.Incarnation, 10))
}

// HeadPodName returns the name of a RayCluster's head Pod: "<cluster>-head-" and a computed ending, or just
// "<cluster>-head" with the setting DeterministicHeadPodName.
func HeadPodName(cluster *rayv1.RayCluster, settings Settings, incarnation int64) string {
	prefix := podPrefix(cluster.Name, "-head-")
	if settings.DeterministicHeadPodName {
		return strings.TrimSuffix(prefix, "-")
	}
	return PodName(prefix, cluster.UID, PodSlot{Group: rayv1.HeadGroupName, Incarnation: incarnation})
}

// WorkerPodName returns the name of a worker Pod: "<cluster>-<group>-worker-" and a computed ending.
func WorkerPodName(cluster *rayv1.RayCluster, slot PodSlot) string {
	return PodName(podPrefix(cluster.Name+"-"+slot.Group, "-worker-"), cluster.UID, slot)
}

// podPrefix keeps the first 50 characters of the base, in lower case. A base may hold a group's name, which may
// have characters that a Pod's name may not; they become dashes.
func podPrefix(base, ending string) string {
	base = strings.ToLower(base)
	if len(base) > shortLength {
		base = base[:shortLength]
	}
	return withoutStrayDots(notInPodNames.ReplaceAllString(base+ending, "-"))
}

var (
	notInPodNames = regexp.MustCompile(`[^a-z0-9.-]`)
	// separators finds dots that could have no letter or digit on one of their sides, which names of Pods forbid.
	separators = regexp.MustCompile(`[.-]{2,}`)
)

func withoutStrayDots(name string) string {
	return separators.ReplaceAllStringFunc(name, func(run string) string { return strings.Repeat("-", len(run)) })
}

// ReplicaName returns what the Pods of one replica of several hosts have in common. It follows from the replica's
// index, so that a host which is made again joins the hosts that are still there.
func ReplicaName(owner types.UID, group string, replica int) string {
	suffix := "-" + NameSuffix(string(owner), group, strconv.Itoa(replica))
	if limit := validation.LabelValueMaxLength - len(suffix); len(group) > limit {
		group = strings.TrimRight(group[:limit], "-_.")
	}
	return group + suffix
}

// HeadServiceName returns the name of a RayCluster's head Service: that of headGroupSpec.headService, if it has one,
// else "<cluster>-head-svc".
func HeadServiceName(cluster *rayv1.RayCluster) string {
	if custom := cluster.Spec.HeadGroupSpec.HeadService; custom != nil && custom.Name != "" {
		return custom.Name
	}
	return cluster.Name + "-head-svc"
}

// ServeServiceName returns the name of the Service that leads to Ray Serve, given the name of its RayCluster or
// RayService.
func ServeServiceName(owner string) string {
	return owner + "-serve-svc"
}

// HeadlessServiceName returns the name of the Service that gives the workers of a RayCluster DNS names.
func HeadlessServiceName(cluster string) string {
	return cluster + "-headless"
}

// ServiceHost returns the full DNS name of a Service. An empty domain stands for "cluster.local".
func ServiceHost(service, namespace, domain string) string {
	if domain == "" {
		domain = "cluster.local"
	}
	return service + "." + namespace + ".svc." + domain
}

// HeadIdentifier returns the value of the label rayv1.LabelIdentifier on a head Pod and on Services that lead to it,
// given the name of their owner.
func HeadIdentifier(owner string) string {
	return labelValue(owner + "-head")
}

// WorkerIdentifier returns the value of the label rayv1.LabelIdentifier on the worker Pods of a RayCluster.
func WorkerIdentifier(cluster string) string {
	return labelValue(cluster + "-worker")
}

// labelValue keeps the last 63 characters.
func labelValue(value string) string {
	if excess := len(value) - validation.LabelValueMaxLength; excess > 0 {
		value = value[excess:]
	}
	if value != "" && isPunctuation(value[0]) {
		value = "r" + value[1:]
	}
	return value
}

// ShortName returns a name of at most 50 characters for an object that belongs to a RayCluster, such as its Secret or
// its service account. A longer name keeps its last 44 characters and gets an ending that follows from all of it, so
// that names with a common end stay apart. A first character that is no letter becomes "r".
func ShortName(name string) string {
	if len(name) > shortLength {
		suffix := "-" + NameSuffix(name)
		name = name[len(name)+len(suffix)-shortLength:] + suffix
	}
	if name != "" && (isPunctuation(name[0]) || name[0] >= '0' && name[0] <= '9') {
		name = "r" + name[1:]
	}
	return name
}

func isPunctuation(c byte) bool {
	return strings.IndexByte("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", c) >= 0
}
