package raycluster

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/ray/census"
)

const (
	// maxRecoveries is how many losses the status remembers, maxLostNames how many actors each names, and maxLostName with how
	// many bytes of their names, which are the user's.
	maxRecoveries = 10
	maxLostNames  = 10
	maxLostName   = 100
	// maxFormer is how many nodes of Ray that were lost on a Pod are remembered.
	maxFormer = 10
	// recoveryLimit is how long after a loss Ray is asked what became of it.
	recoveryLimit = 10 * time.Minute
	// rejoinTime is how long a new head is given to hear of the workers of the old one.
	rejoinTime = 10 * time.Second
	// watchPause is the time between two looks at what Ray says while a loss is open.
	watchPause = 5 * time.Second
	// leaveTime is how long a Pod that was to be taken away may be seen unharmed before it is taken for one that stays.
	leaveTime = time.Minute
	// answerAge is how old the last answer of Ray may be that tells of a Pod which has just come up.
	answerAge = 10 * time.Second
)

// Losses remembers the Pods of each RayCluster, so that one that is lost is noticed even when it is gone, and what is still to
// be found out. What it knows is lost with the process; the next one begins with what the status has kept of it (Census).
type Losses struct {
	mu     sync.Mutex
	byName map[types.NamespacedName]*lossesOfOne
}

type lossesOfOne struct {
	uid types.UID
	// pods are those in which Ray has been seen to run.
	pods map[types.UID]member
	// open are the losses that the status does not tell the end of yet.
	open []openLoss
	// recalled is true in the first pass: the Pods are those that the status names, and what is missing was lost while
	// this process did not watch.
	recalled bool
}

// member is what is remembered of a Pod.
type member struct {
	name, group, ip string
	incarnation     int64
	restarts        int32
	// since is from when on Ray's nodes at the address are those of the Pod, but for former ones, which were lost there before.
	since  time.Time
	former []string
	// leaving is when the operator itself last wanted it away, zero if it never did.
	leaving time.Time
}

// openLoss is one of which it is not known yet what it took.
type openLoss struct {
	rayv1.RayClusterRecovery
	uid types.UID
	// noticed is the time of the loss on the clock that is never set, like all times that are compared with it.
	noticed time.Time
	// nodes are those of Ray that were on the Pod.
	nodes []string
	// since is the beginning of what was known of the actors by then, zero if that was nothing.
	since time.Time
	// headSince is since when the head that follows has been seen ready, zero while it is not.
	headSince time.Time
	// before is what the status kept of the last answer before the loss, where this process has heard none itself.
	before *rayv1.RayClusterCensus
}

// NewLosses returns an empty memory.
func NewLosses() *Losses { return &Losses{byName: map[types.NamespacedName]*lossesOfOne{}} }

// Note takes in the Pods of a cluster and what Ray says of it, which may be nothing, and returns the losses as the status is to
// tell of them.
func (l *Losses) Note(cluster *rayv1.RayCluster, pods []*corev1.Pod, ledger *census.Ledger, now time.Time) []rayv1.RayClusterRecovery {
	l.mu.Lock()
	defer l.mu.Unlock()
	name := types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Name}
	known := l.byName[name]
	if known == nil || known.uid != cluster.UID {
		known = recall(cluster, pods, now)
		l.byName[name] = known
	}
	known.notice(pods, ledger, cluster.Status.LastCensus, now)
	known.remember(pods, now)
	return known.report(cluster.Status.Recoveries, pods, ledger, now)
}

// Leaving takes in which Pods a plan takes away: those are not lost.
func (l *Losses) Leaving(cluster *rayv1.RayCluster, actions []action.Action, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.byName[types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Name}]
	if known == nil || known.uid != cluster.UID {
		return
	}
	for _, a := range actions {
		if deleted, is := a.(action.Delete); is {
			if m, watched := known.pods[deleted.Object.GetUID()]; watched {
				m.leaving = now
				known.pods[deleted.Object.GetUID()] = m
			}
		}
	}
}

// Forget drops what is known about a cluster that is gone.
func (l *Losses) Forget(name types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byName, name)
}

// ForgetAll drops everything: in another term somebody else has watched.
func (l *Losses) ForgetAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.byName)
}

// notice finds the Pods that are lost since the last time.
func (k *lossesOfOne) notice(pods []*corev1.Pod, ledger *census.Ledger, last *rayv1.RayClusterCensus, now time.Time) {
	there := map[types.UID]*corev1.Pod{}
	for _, pod := range pods {
		there[pod.UID] = pod
	}
	var lost []openLoss
	for uid, m := range k.pods {
		pod := there[uid]
		cause, whole := lossOf(m, pod)
		if cause == "" {
			if pod == nil {
				delete(k.pods, uid)
			}
			continue
		}
		loss := m.loss(cause, whole, ledger, now)
		loss.uid = uid
		if k.recalled || ledger == nil {
			loss.before, loss.since = counted(last), time.Time{}
		}
		if m.group == rayv1.HeadGroupName || !byItself(pod) || ledger == nil || !ledger.Outlived(loss.nodes) {
			lost = append(lost, loss)
		}
		if whole {
			delete(k.pods, uid)
			continue
		}
		m.former = slices.Concat(m.former, loss.nodes)
		m.former = m.former[max(0, len(m.former)-maxFormer):]
		k.pods[uid] = m
	}
	slices.SortFunc(lost, func(a, b openLoss) int { return cmp.Compare(a.Pod, b.Pod) })
	headless := slices.ContainsFunc(slices.Concat(k.open, lost), func(o openLoss) bool {
		return o.Group == rayv1.HeadGroupName && o.State == rayv1.RecoveryObserving
	})
	for i := range lost {
		if lost[i].Group == rayv1.HeadGroupName || !headless || !byItself(there[lost[i].uid]) {
			k.open = append(k.open, lost[i])
		}
	}
	k.recalled = false
}

// byItself tells whether Ray has ended in a Pod without anybody taking the Pod away. On a worker that is what follows the loss of
// the head, and the report about the head counts what was lost by it.
func byItself(pod *corev1.Pod) bool {
	return pod != nil && pod.DeletionTimestamp == nil && pod.Status.Reason == "" && !slices.ContainsFunc(pod.Status.Conditions,
		func(c corev1.PodCondition) bool {
			return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue
		})
}

// lossOf says why a Pod, or Ray in it, was lost, and whether the whole Pod is; it is empty when nothing is lost.
func lossOf(m member, pod *corev1.Pod) (cause string, whole bool) {
	switch {
	case !m.leaving.IsZero():
		return "", false
	case pod == nil:
		return "Deleted", true
	case pod.DeletionTimestamp != nil || beyondRepair(pod):
		return causeOf(pod), true
	case restartsOf(pod) > m.restarts:
		return causeOf(pod), false
	default:
		return "", false
	}
}

// causeOf is Kubernetes' word for why a Pod goes, or for why Ray ended in it.
func causeOf(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue && c.Reason != "" {
			return c.Reason
		}
	}
	if pod.Status.Reason != "" {
		return pod.Status.Reason
	}
	if status := rayStatus(pod); status != nil {
		for _, ended := range []*corev1.ContainerStateTerminated{status.State.Terminated, status.LastTerminationState.Terminated} {
			if ended != nil && pod.DeletionTimestamp == nil {
				return fmt.Sprintf("%s (exit code %d)", cmp.Or(ended.Reason, "Ended"), ended.ExitCode)
			}
		}
	}
	return "Deleted"
}

func rayStatus(pod *corev1.Pod) *corev1.ContainerStatus {
	if len(pod.Spec.Containers) == 0 {
		return nil
	}
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].Name == pod.Spec.Containers[0].Name {
			return &pod.Status.ContainerStatuses[i]
		}
	}
	return nil
}

func restartsOf(pod *corev1.Pod) int32 {
	if status := rayStatus(pod); status != nil {
		return status.RestartCount
	}
	return 0
}

func (m member) loss(cause string, whole bool, ledger *census.Ledger, now time.Time) openLoss {
	part := map[bool]map[bool]rayv1.LostPart{
		true:  {true: rayv1.LostHead, false: rayv1.LostHeadContainer},
		false: {true: rayv1.LostWorker, false: rayv1.LostWorkerContainer},
	}[m.group == rayv1.HeadGroupName][whole]
	loss := openLoss{noticed: now, RayClusterRecovery: rayv1.RayClusterRecovery{Time: metav1.NewTime(now.Truncate(timeGrain)), Part: part, Group: m.group,
		Pod: m.name, Incarnation: m.incarnation, Cause: cause, State: rayv1.RecoveryObserving}}
	if ledger != nil {
		loss.since = ledger.Since
		loss.nodes = slices.DeleteFunc(ledger.NodesOf(m.ip, m.since), func(id string) bool { return slices.Contains(m.former, id) })
	}
	return loss
}

// remember keeps what is to be known of the Pods in which Ray runs.
func (k *lossesOfOne) remember(pods []*corev1.Pod, now time.Time) {
	for _, pod := range pods {
		m, watched := k.pods[pod.UID]
		if pod.DeletionTimestamp != nil || beyondRepair(pod) || !watched && !podReady(pod) {
			continue
		}
		if !watched || restartsOf(pod) != m.restarts {
			m.since = now.Add(-answerAge)
		}
		m.name, m.group, m.ip = pod.Name, groupOf(pod), pod.Status.PodIP
		m.incarnation, m.restarts = incarnationOf(pod), restartsOf(pod)
		if now.Sub(m.leaving) > leaveTime {
			m.leaving = time.Time{}
		}
		k.pods[pod.UID] = m
	}
}
