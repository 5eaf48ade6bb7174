package sim

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/sim/kube"
)

// result is what a history came to.
type result struct {
	// state is what is there in the end, without what may differ from run to run.
	state string
	// counts are the operators' creates and deletes by kind and role, and the submissions.
	counts map[string]int
	// sent is how many requests the operators sent that change something.
	sent int
	// spots are the numbers of those for what the scenario is about.
	spots []int
	// heard is how many answers of Ray were news.
	heard int
	// begun and begunHeard are what sent and heard were when something was changed for the first time.
	begun, begunHeard int
	failures          []string
}

// watchdog looks at every accepted write.
type watchdog struct {
	counts map[string]int
	// term is the highest of which a write was accepted.
	term int64
	// podNames are all names that Pods ever had.
	podNames map[string]bool
	// aliases replace generated names by what they stand for.
	aliases map[string]string
	// madeFor are the RayJobs for which clusters, submitters and Pods were made.
	madeFor map[types.UID]types.UID
	// counted are the attempts that were counted, submitted how often Ray was given what.
	counted   map[string]bool
	submitted map[string]int
	services  serviceWatch
	losses    lossWatch
}

func newWatchdog() watchdog {
	return watchdog{counts: map[string]int{}, podNames: map[string]bool{}, aliases: map[string]string{},
		madeFor: map[types.UID]types.UID{}, counted: map[string]bool{}, submitted: map[string]int{}, services: newServiceWatch(), losses: newLossWatch()}
}

func (w *world) count(what string) { w.watch.counts[what]++ }

// accepted judges a write when it is accepted.
func (w *world) accepted(write kube.Write) {
	if cluster, isCluster := write.After.(*rayv1.RayCluster); isCluster && write.Verb == kube.Create {
		if owner := metav1.GetControllerOf(cluster); owner != nil {
			w.watch.aliases[cluster.Name] = owner.Name + "~"
		}
	}
	if write.Verb == kube.Create {
		w.remember(write.After)
	}
	if w.scenario.ofServices {
		w.route(write)
		w.judgeServices(write)
	}
	w.judgeLoss(write)
	if !isOperator(write.Sender) {
		return
	}
	w.judgeJobs(write)
	if write.Sender.Term < w.watch.term {
		w.fail("%s: accepted in term %d after a write of term %d", write.Request, write.Sender.Term, w.watch.term)
	}
	w.watch.term = max(w.watch.term, write.Sender.Term)
	switch write.Verb {
	case kube.Create:
		w.count("create " + w.role(write.After))
		if pod, isPod := write.After.(*corev1.Pod); isPod {
			w.judgePod(pod)
		}
	case kube.Delete:
		w.count("delete " + w.role(write.Before))
	}
}

// judgePod checks that a new Pod takes nobody's name, and nobody's place.
func (w *world) judgePod(pod *corev1.Pod) {
	if w.watch.podNames[pod.Name] {
		w.fail("Pod %s is made under a name that was used before", pod.Name)
	}
	w.watch.podNames[pod.Name] = true
	owner := metav1.GetControllerOf(pod)
	for _, stored := range w.server.List("Pod") {
		other := stored.(*corev1.Pod)
		of := metav1.GetControllerOf(other)
		if other.UID == pod.UID || of == nil || owner == nil || of.UID != owner.UID {
			continue
		}
		if pod.Labels[rayv1.LabelNodeType] == rayv1.NodeTypeHead && other.Labels[rayv1.LabelNodeType] == rayv1.NodeTypeHead {
			w.fail("head Pod %s is made while head Pod %s is there", pod.Name, other.Name)
		}
		if other.DeletionTimestamp == nil && slot(other) == slot(pod) && pod.Labels[rayv1.LabelNodeType] == rayv1.NodeTypeWorker {
			w.fail("worker Pod %s is made in the place of Pod %s, which is there", pod.Name, other.Name)
		}
	}
}

func slot(pod *corev1.Pod) string {
	return strings.Join([]string{pod.Labels[rayv1.LabelGroup], pod.Labels[rayv1.LabelWorkerGroupReplicaIndex], pod.Labels[rayv1.LabelReplicaHostIndex]}, "/")
}

// submitterPods is how the roles of the Pods of submitters begin.
const submitterPods = "Pod of submitter "

// role names an object by kind and by what it is there for.
func (w *world) role(o object) string {
	kind := w.lab.schema.KindOf(o)
	if owner := metav1.GetControllerOf(o); owner != nil && owner.Kind == "Job" {
		return submitterPods + w.alias(owner.Name)
	}
	if pod, isPod := o.(*corev1.Pod); isPod {
		return fmt.Sprintf("%s %s/%s", kind, w.alias(pod.Labels[rayv1.LabelCluster]), pod.Labels[rayv1.LabelGroup])
	}
	if slice, isSlice := o.(*discoveryv1.EndpointSlice); isSlice {
		return kind + " " + w.alias(slice.Labels[discoveryv1.LabelServiceName])
	}
	return kind + " " + w.alias(o.GetName())
}

func (w *world) alias(text string) string {
	for name, alias := range w.watch.aliases {
		text = strings.ReplaceAll(text, name, alias)
	}
	return text
}

// state describes everything that is there, without what may differ: names and times that are drawn, UIDs, versions.
func (w *world) state() string {
	lines := map[string]int{}
	for _, kind := range w.lab.kinds {
		for _, stored := range w.server.List(kind) {
			lines[w.role(stored)+": "+w.alias(describe(stored))]++
		}
	}
	var text strings.Builder
	for _, line := range slices.Sorted(maps.Keys(lines)) {
		fmt.Fprintf(&text, "%d x %s\n", lines[line], line)
	}
	return text.String()
}

func describe(stored object) string {
	switch o := stored.(type) {
	case *rayv1.RayCluster:
		s := o.Status
		return fmt.Sprintf("state %q, observed %t, workers %d/%d/%d, head %t, %s%s", s.State, s.ObservedGeneration == o.Generation,
			s.DesiredWorkerReplicas, s.AvailableWorkerReplicas, s.ReadyWorkerReplicas, s.Head.PodName != "", verdicts(s.Conditions), describeRole(o))
	case *rayv1.RayService:
		return describeService(o)
	case *discoveryv1.EndpointSlice:
		return fmt.Sprintf("%d of %d ready", len(readyPods(o)), len(o.Endpoints))
	case *rayv1.RayJob:
		s := o.Status
		if s.Reason == rayv1.DeadlineExceeded || s.Reason == rayv1.PreRunningDeadlineExceeded {
			s.JobStatus = "" // how far it came
		}
		if s.Reason == rayv1.JobDeploymentStatusTransitionGracePeriodExceeded {
			s.Reason = "" // whether the submitter took long
		}
		return fmt.Sprintf("%s, %s, %q, failed %s, succeeded %s, observed %t, finalizers %v", s.JobDeploymentStatus, s.JobStatus, s.Reason,
			number(s.Failed), number(s.Succeeded), s.ObservedGeneration == o.Generation, o.Finalizers)
	case *corev1.Pod:
		made := o.Annotations[rayv1.AnnotationRecreateHash]
		if o.Labels[rayv1.LabelCluster] != "demo" {
			made = "" // it may differ from attempt to attempt
		}
		return fmt.Sprintf("%s, ready %t, made from %s%s", o.Status.Phase, podReady(o), made, o.Labels[rayv1.LabelServe])
	case *corev1.Service:
		spec := o.Spec.DeepCopy()
		if spec.ClusterIP != corev1.ClusterIPNone {
			spec.ClusterIP = ""
		}
		return text(spec)
	case *batchv1.Job:
		return fmt.Sprintf("%d conditions", len(o.Status.Conditions))
	case *rbacv1.Role:
		return text(o.Rules)
	case *rbacv1.RoleBinding:
		return text(o.Subjects)
	case *networkingv1.Ingress:
		return text(o.Spec)
	case *corev1.Secret:
		return fmt.Sprint(slices.Sorted(maps.Keys(o.Data)))
	default:
		return ""
	}
}

func number(n *int32) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprint(*n)
}

func verdicts(conditions []metav1.Condition) string {
	words := make([]string, 0, len(conditions))
	for _, c := range conditions {
		words = append(words, fmt.Sprintf("%s=%s/%s", c.Type, c.Status, c.Reason))
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

func text(v any) string {
	encoded, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(encoded)
}

// compare says how a history differs from the undisturbed one.
func (s *scenario) compare(want, got result, hasty bool) []string {
	if len(want.failures) > 0 {
		return append([]string{"without a fault:"}, want.failures...)
	}
	failures := slices.Clone(got.failures)
	if len(failures) > 0 || s.anyEnd {
		return failures
	}
	want.state, got.state = s.comparableState(want.state), s.comparableState(got.state)
	if want.state != got.state {
		failures = append(failures, fmt.Sprintf("the end differs from that of the undisturbed run; want\n%sgot\n%s", want.state, got.state))
	}
	if hasty || s.race || s.isMidway() {
		return failures // what was never finished needed not be made
	}
	want.counts, got.counts = s.comparable(want.counts), s.comparable(got.counts)
	for _, what := range slices.Sorted(maps.Keys(union(want.counts, got.counts))) {
		if want.counts[what] != got.counts[what] {
			failures = append(failures, fmt.Sprintf("%s: %d times, and %d times in the undisturbed run", what, got.counts[what], want.counts[what]))
		}
	}
	return failures
}

// comparableState leaves out of a state what is chance.
func (s *scenario) comparableState(state string) string {
	var kept []string
	for line := range strings.Lines(state) {
		_, what, _ := strings.Cut(line, " x ")
		is := func(kind string) bool { return strings.HasPrefix(what, kind) }
		submitter := is("Job ") || is(submitterPods)
		killed := len(s.submitters) == 0 && is(submitterPods) && strings.Contains(what, ": Failed")
		missed := is("Service ") && slices.Contains(s.chance, "create "+strings.SplitN(what, ":", 2)[0])
		switch {
		case missed, killed, submitter && s.lingers, s.race && !is("RayJob ") && !is("RayService "):
		case s.race:
			kept = append(kept, failedAttempts().ReplaceAllString(line, ""))
		default:
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

func failedAttempts() *regexp.Regexp { return regexp.MustCompile("failed [0-9]+, ") }

// comparable puts the differences in the place of creates and deletes where only those count.
func (s *scenario) comparable(counts map[string]int) map[string]int {
	counts = maps.Clone(counts)
	for _, role := range s.balanced {
		created, deleted := "create "+role, "delete "+role
		counts["remaining "+role] = counts[created] - counts[deleted]
		delete(counts, created)
		delete(counts, deleted)
	}
	maps.DeleteFunc(counts, func(what string, _ int) bool {
		return slices.Contains(s.chance, what) || s.lingers && strings.HasPrefix(what, "delete Job ")
	})
	return counts
}

func union(a, b map[string]int) map[string]int {
	both := maps.Clone(a)
	maps.Copy(both, b)
	return both
}
