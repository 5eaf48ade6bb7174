package diagnose

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func aged(d time.Duration) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.CreationTimestamp = ago(d) }
}

func rayPod(edits ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "p-uid", CreationTimestamp: ago(time.Minute),
		Labels: map[string]string{"ray.io/node-type": "worker", "ray.io/group": "g", "ray.io/cluster": "c"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "ray", Image: "img:1", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("64")},
			Limits:   corev1.ResourceList{"memory": resource.MustParse("4Gi")}}}}}}
	for _, edit := range edits {
		edit(pod)
	}
	return pod
}

// TestPodFindings shows how a Pod's trouble is told apart: what stands in its status, its events and its logs.
func TestPodFindings(t *testing.T) {
	pull := func(message string) func(*corev1.Pod) {
		return inPhase(corev1.PodPending, rayIs(waiting("ImagePullBackOff", message)))
	}
	crash := func(message string) func(*corev1.Pod) {
		s := rayIs(waiting("CrashLoopBackOff", ""), terminated(1, "Error", message))
		s.RestartCount = 3
		return inPhase(corev1.PodRunning, s)
	}
	noNode := func(message string) func(*corev1.Pod) {
		return with(corev1.PodScheduled, corev1.ConditionFalse, "Unschedulable", message, time.Minute)
	}
	config := func(message string) func(*corev1.Pod) {
		return inPhase(corev1.PodPending, rayIs(waiting("CreateContainerConfigError", message)))
	}
	onNode := func(pod *corev1.Pod) { pod.Spec.NodeName = "n1" }
	for name, tc := range map[string]struct {
		pod    []func(*corev1.Pod)
		log    string
		events []corev1.Event
		want   string
		cause  string
	}{
		"an image that is not there":              {pod: []func(*corev1.Pod){pull(`failed to resolve reference "img:1": img:1: not found`)}, want: idImageNotFound, cause: `The registry has no image "img:1".`},
		"an image that is refused":                {pod: []func(*corev1.Pod){pull("unexpected status code 401 Unauthorized")}, want: idImageDenied, cause: `The registry does not let the node have image "img:1".`},
		"an image for another processor":          {pod: []func(*corev1.Pod){pull("no match for platform in manifest: not found"), onNode}, want: idImageNoBuild, cause: `Image "img:1" has no build for the processor of node n1.`},
		"a registry that does not answer":         {pod: []func(*corev1.Pod){pull("dial tcp 10.0.0.1:443: i/o timeout"), onNode}, want: idRegistryUnreachable, cause: `Node n1 does not reach the registry of image "img:1".`},
		"a registry without address":              {pod: []func(*corev1.Pod){pull("lookup registry.example: no such host"), onNode}, want: idRegistryUnreachable, cause: `Node n1 does not reach the registry of image "img:1".`},
		"a pull that fails in another way":        {pod: []func(*corev1.Pod){pull("no space left on device")}, want: idImagePull, cause: Explain(idImagePull).Cause},
		"an image name that is none":              {pod: []func(*corev1.Pod){inPhase(corev1.PodPending, rayIs(waiting("InvalidImageName", "couldn't parse")))}, want: idImageNameInvalid, cause: `"img:1" is not the name of an image.`},
		"an image that must not be fetched":       {pod: []func(*corev1.Pod){inPhase(corev1.PodPending, rayIs(waiting("ErrImageNeverPull", "not present"))), onNode}, want: idImageNeverPulled, cause: "Image \"img:1\" is not on node n1, and `imagePullPolicy: Never` forbids to fetch it."},
		"too few resources":                       {pod: []func(*corev1.Pod){noNode("0/2 nodes are available: 2 Insufficient cpu.")}, want: idInsufficientResources, cause: "No node that the Pod may use has enough free: it asks for 64 of cpu, and the largest node (big) has 8 in all."},
		"a selector that no node has":             {pod: []func(*corev1.Pod){noNode("0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."), func(pod *corev1.Pod) { pod.Spec.NodeSelector = map[string]string{"disk": "ssd"} }}, want: idSelectorMismatch, cause: "No node fits `nodeSelector` disk=ssd together with the Pod's other wishes."},
		"a taint of the only node that is wanted": {pod: []func(*corev1.Pod){noNode("0/2 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 1 node(s) had untolerated taint(s)."), func(pod *corev1.Pod) { pod.Spec.NodeSelector = map[string]string{"name": "big"} }}, want: idUntoleratedTaint},
		"a taint":                            {pod: []func(*corev1.Pod){noNode("0/2 nodes are available: 2 node(s) had untolerated taint(s).")}, want: idUntoleratedTaint},
		"a spread that cannot be kept":       {pod: []func(*corev1.Pod){noNode("0/2 nodes are available: 2 node(s) didn't match pod topology spread constraints.")}, want: idTopologyMismatch},
		"a claim that is not bound":          {pod: []func(*corev1.Pod){noNode("0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims.")}, want: idClaimPending},
		"a claim that is not there":          {pod: []func(*corev1.Pod){noNode(`0/2 nodes are available: persistentvolumeclaim "data" not found.`)}, want: idClaimMissing},
		"a volume elsewhere":                 {pod: []func(*corev1.Pod){noNode("0/2 nodes are available: 2 node(s) had volume node affinity conflict.")}, want: idVolumeNodeConflict},
		"nodes that are cordoned":            {pod: []func(*corev1.Pod){noNode("0/2 nodes are available: 2 node(s) were unschedulable.")}, want: idNodeUnschedulable},
		"nothing that we know":               {pod: []func(*corev1.Pod){noNode("a plugin said no")}, want: idUnschedulable},
		"no scheduler":                       {pod: []func(*corev1.Pod){inPhase(corev1.PodPending), aged(2 * time.Minute), func(pod *corev1.Pod) { pod.Spec.SchedulerName = "volcano" }}, want: idNoScheduler, cause: `No scheduler "volcano" runs, or it does not get to the Pod.`},
		"a gate":                             {pod: []func(*corev1.Pod){with(corev1.PodScheduled, corev1.ConditionFalse, "SchedulingGated", "", time.Hour), aged(time.Hour)}, want: idSchedulingGated},
		"a gate, just now":                   {pod: []func(*corev1.Pod){with(corev1.PodScheduled, corev1.ConditionFalse, "SchedulingGated", "", 0), aged(time.Second)}},
		"too little memory":                  {pod: []func(*corev1.Pod){inPhase(corev1.PodRunning, rayIs(terminated(137, "OOMKilled", "")))}, want: idOOMKilled, cause: "Container ray used more memory than its limit of 4Gi."},
		"an image without Ray":               {pod: []func(*corev1.Pod){crash("bash: line 1: ray: command not found")}, want: idRayNotInImage},
		"an image without Ray, by its log":   {pod: []func(*corev1.Pod){crash("")}, log: "/bin/bash: line 1: ray: command not found\n", want: idRayNotInImage},
		"another program that is not there":  {pod: []func(*corev1.Pod){crash(`exec: "foo": executable file not found in $PATH`)}, want: idCommandNotInImage},
		"a port that is taken":               {pod: []func(*corev1.Pod){crash("")}, log: "OSError: [Errno 98] Address already in use\n", want: idPortInUse},
		"another version of Ray":             {pod: []func(*corev1.Pod){crash("")}, log: "RuntimeError: Version mismatch: The cluster was started with:\n", want: idVersionSkew},
		"a parameter that Ray does not know": {pod: []func(*corev1.Pod){crash("")}, log: "Error: No such option: --nonsense\n", want: idBadStartParam},
		"no way to the GCS":                  {pod: []func(*corev1.Pod){crash("")}, log: "Failed to connect to GCS at address 10.0.0.1:6379\n", want: idGCSUnreachable},
		"no name of the head":                {pod: []func(*corev1.Pod){crash("")}, log: "socket.gaierror: [Errno -2] Name or service not known\n", want: idDNS},
		"a wrong token":                      {pod: []func(*corev1.Pod){crash("")}, log: "Unauthenticated: InvalidAuthToken\n", want: idTokenMismatch},
		"a program for another processor":    {pod: []func(*corev1.Pod){crash("exec /bin/bash: exec format error")}, want: idImageNoBuild},
		"a container that ends by itself":    {pod: []func(*corev1.Pod){crash("")}, log: "something\n  boom  \n\n", want: idContainerExits},
		"a Secret that is not there":         {pod: []func(*corev1.Pod){config(`secret "s" not found`)}, want: idSecretMissing},
		"a ConfigMap that is not there":      {pod: []func(*corev1.Pod){config(`configmap "s" not found`)}, want: idConfigMapMissing},
		"a key that is not there":            {pod: []func(*corev1.Pod){config("couldn't find key k in Secret ns/s")}, want: idKeyMissing},
		"a user that the kubelet refuses":    {pod: []func(*corev1.Pod){config("container has runAsNonRoot and image will run as root")}, want: idUserRefused},
		"a user that the Pod forbids":        {pod: []func(*corev1.Pod){config(`container's runAsUser breaks non-root policy (pod: "p_ns(x)", container: ray)`)}, want: idUserRefused},
		"a user that is no number":           {pod: []func(*corev1.Pod){config(`invalid user id "ray"`)}, want: idUserRefused},
		"a configuration that is wrong":      {pod: []func(*corev1.Pod){config("host IP unknown")}, want: idContainerConfig},
		"a node that is silent":              {pod: []func(*corev1.Pod){inPhase(corev1.PodRunning, rayIs(runningSince(time.Hour))), with("Ready", "False", "", "", 0), with("ContainersReady", "True", "", "", 0)}, want: idNodeLost},
		"a Pod that was preempted":           {pod: []func(*corev1.Pod){inPhase(corev1.PodFailed), with("DisruptionTarget", "True", "PreemptionByScheduler", "", 0)}, want: idPreempted},
		"a Pod that was evicted":             {pod: []func(*corev1.Pod){inPhase(corev1.PodFailed), func(pod *corev1.Pod) { pod.Status.Reason = "Evicted" }}, want: idEvicted},
		"a Pod that its node did not take":   {pod: []func(*corev1.Pod){inPhase(corev1.PodFailed), func(pod *corev1.Pod) { pod.Status.Reason = "UnexpectedAdmissionError" }}, want: idRefusedByNode},
		"a probe that fails":                 {pod: []func(*corev1.Pod){inPhase(corev1.PodRunning, rayIs(runningSince(time.Hour)))}, events: []corev1.Event{podEvent("Unhealthy", "Readiness probe failed: 503")}, want: idProbeFailing},
		"a container that starts, not ready": {pod: []func(*corev1.Pod){inPhase(corev1.PodRunning, rayIs(runningSince(time.Minute)))}},
		"an init container that waits": {pod: []func(*corev1.Pod){func(pod *corev1.Pod) {
			pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "prepare", State: runningSince(time.Hour)}}
		}}, want: idInitWaits},
		"a worker that waits for a head of which nothing is known": {pod: []func(*corev1.Pod){func(pod *corev1.Pod) {
			pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "wait-gcs-ready", State: runningSince(time.Hour)}}
		}}},
		"a tag that looks like a refusal": {pod: []func(*corev1.Pod){pull("pulling img:401: no space left on device")}, want: idImagePull},
		"a proxy that times out":          {pod: []func(*corev1.Pod){pull("403 Forbidden after i/o timeout")}, want: idRegistryUnreachable},
		"a volume on another node": {pod: []func(*corev1.Pod){inPhase(corev1.PodPending, rayIs(waiting("ContainerCreating", ""))), onNode}, events: []corev1.Event{
			podEvent("FailedAttachVolume", `Multi-Attach error for volume "pv" Volume is already used by pod(s) q`),
			podEvent("FailedMount", "Unable to attach or mount volumes: timed out")}, want: idMultiAttach},
		"a volume of another node":        {pod: []func(*corev1.Pod){noNode("0/2 nodes are available: 2 node(s) didn't match PersistentVolume's node affinity.")}, want: idVolumeNodeConflict},
		"a volume of another zone":        {pod: []func(*corev1.Pod){noNode("0/2 nodes are available: 2 node(s) had no available volume zone.")}, want: idVolumeNodeConflict},
		"a node that takes long":          {pod: []func(*corev1.Pod){inPhase(corev1.PodPending, rayIs(waiting("ContainerCreating", ""))), onNode, aged(time.Hour), with(corev1.PodScheduled, corev1.ConditionTrue, "", "", 0)}, want: idSlowStart},
		"a volume that cannot be mounted": {pod: []func(*corev1.Pod){inPhase(corev1.PodPending, rayIs(waiting("ContainerCreating", ""))), onNode}, events: []corev1.Event{podEvent("FailedMount", "MountVolume.SetUp failed: exit status 32")}, want: idVolumeNotMounted},
		"a Secret that is to be mounted":  {pod: []func(*corev1.Pod){inPhase(corev1.PodPending, rayIs(waiting("ContainerCreating", ""))), onNode}, events: []corev1.Event{podEvent("FailedMount", `MountVolume.SetUp failed for volume "v" : secret "s" not found`)}, want: idSecretMissing},
		"a Pod that runs":                 {pod: []func(*corev1.Pod){inPhase(corev1.PodRunning, corev1.ContainerStatus{Name: "ray", Ready: true, State: runningSince(time.Hour)})}},
	} {
		t.Run(name, func(t *testing.T) {
			pod := rayPod(tc.pod...)
			s := &Snapshot{Now: now, Pods: []*corev1.Pod{pod}, Events: tc.events, Logs: map[string]string{LogKey("p", "ray"): tc.log},
				Nodes: []*corev1.Node{node("small", "4"), node("big", "8")}}
			got := Findings(s)
			if tc.want == "" {
				if len(got) > 0 {
					t.Fatalf("found %v where nothing is wrong", got)
				}
				return
			}
			if len(got) != 1 || got[0].ID != tc.want {
				t.Fatalf("found %+v, want %s", got, tc.want)
			}
			entry := got[0].Explained()
			if tc.cause != "" && entry.Cause != tc.cause {
				t.Error(cmp.Diff(tc.cause, entry.Cause))
			}
		})
	}
}

func podEvent(reason, message string) corev1.Event {
	return event("Pod", "p", reason, message, time.Second)
}

func node(name, cpu string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"name": name}}, Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}}
}

func TestTheLogOfAContainerIsEvidence(t *testing.T) {
	s := rayIs(waiting("CrashLoopBackOff", ""), terminated(1, "Error", ""))
	s.RestartCount = 3
	snapshot := &Snapshot{Now: now, Pods: []*corev1.Pod{rayPod(inPhase(corev1.PodRunning, s))},
		Logs: map[string]string{LogKey("p", "ray"): "first\nboom  at 7\n\n"}}
	got := Findings(snapshot)
	want := `container ray: exit code 1; its log ends with "boom at 7"`
	if len(got) != 1 || got[0].Message != want {
		t.Errorf("found %+v, want the evidence %q", got, want)
	}
}

// TestAlikeIsToldAlike has two workers that end in the same way, and the log of one.
func TestAlikeIsToldAlike(t *testing.T) {
	ends := rayIs(waiting("CrashLoopBackOff", ""), terminated(1, "Error", ""))
	ends.RestartCount = 3
	first, second := rayPod(inPhase(corev1.PodRunning, ends)), rayPod(inPhase(corev1.PodRunning, ends))
	second.Name = "q"
	s := &Snapshot{Now: now, Pods: []*corev1.Pod{first, second}, Logs: map[string]string{LogKey("p", "ray"): "Version mismatch: 3.10 and 3.11"}}
	if diff := cmp.Diff([]string{"version-skew Pod p", "version-skew Pod q"}, told(Findings(s))); diff != "" {
		t.Error(diff)
	}
	if folded := Fold(Findings(s)); len(folded) != 1 {
		t.Errorf("told in %d findings", len(folded))
	}
}

// TestTheCatalogueIsWhole guards the guide: an id stands there once, with words for every column.
func TestTheCatalogueIsWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, entry := range Catalogue() {
		if seen[entry.ID] {
			t.Errorf("%s stands in the catalogue twice", entry.ID)
		}
		seen[entry.ID] = true
		if entry.ID == "" || entry.Family == "" || entry.Symptom == "" || entry.Cause == "" || entry.Next == "" {
			t.Errorf("%+v has a hole", entry)
		}
	}
	for _, r := range slices.Concat(imageReadings(), schedulingReadings(), configurationReadings(), containerReadings(), endReadings()) {
		if !seen[r.id] {
			t.Errorf("%s has no entry in the catalogue", r.id)
		}
	}
}

func TestFold(t *testing.T) {
	a, b := Finding{ID: "x", Object: "Pod a", Cause: "same"}, Finding{ID: "x", Object: "Pod b", Cause: "same"}
	other := Finding{ID: "x", Object: "Pod c", Cause: "another"}
	got := Fold([]Finding{a, other, b})
	want := []Folded{{Finding: a, Others: []string{"Pod b"}}, {Finding: other}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Finding{})); diff != "" {
		t.Error(diff)
	}
}
