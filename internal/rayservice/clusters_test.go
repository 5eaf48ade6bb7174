package rayservice

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
)

// chosen stands for a name that was not used before.
const chosen = "a new name"

func TestPlanChoosesTheClusters(t *testing.T) {
	const running = "RUNNING"
	leaving := func(c *Cluster) { c.Object.DeletionTimestamp = ptr.To(metav1.NewTime(now)) }
	abandoned := clusterAnnotated(rayv1.AnnotationAbandoned, now.Format(time.RFC3339))
	none := strategy(rayv1.RayServiceUpgradeNone)
	with := func(s Snapshot, edits ...func(*Snapshot)) Snapshot {
		for _, edit := range edits {
			edit(&s)
		}
		return s
	}
	for name, c := range map[string]struct {
		given                   Snapshot
		wantActive, wantPending string
	}{
		"a new service chooses a name":                       {given(), "", chosen},
		"a name that was chosen stays":                       {given(pendingIs(fresh)), "", fresh},
		"a first cluster that starts is waited for":          {given(made(fresh), pendingIs(fresh)), "", fresh},
		"a first cluster of another spec is replaced":        {given(made(fresh), pendingIs(fresh), image("ray:2")), "", chosen},
		"so it is without a second cluster (RS-W15)":         {given(none, made(fresh), pendingIs(fresh), image("ray:2")), "", chosen},
		"a service that serves needs none":                   {serving(), old, ""},
		"another image needs another cluster":                {serving(image("ray:2")), old, chosen},
		"another config does not":                            {serving(config(fruit2)), old, ""},
		"another number of workers does not":                 {serving(spec(func(s *rayv1.RayServiceSpec) { s.RayClusterConfig.WorkerGroupSpecs[0].MaxReplicas = ptr.To[int32](9) })), old, ""},
		"a group at the end does not":                        {serving(spec(appendGroup)), old, ""},
		"without a second cluster another image is ignored":  {serving(none, image("ray:2")), old, ""},
		"an upgrade goes on":                                 {upgrading(), old, fresh},
		"an upgrade to what serves already is dropped (W18)": {upgrading(image("ray:1")), old, ""},
		"a third spec replaces the pending cluster":          {upgrading(image("ray:3")), old, chosen},
		"a spec that comes back finds its cluster":           {with(upgrading(image("ray:3"), made("shop-ccccc"), pendingIs("shop-ccccc")), image("ray:2")), old, fresh},
		"even when that is retired":                          {upgrading(pendingIs(""), of(fresh, retired(time.Minute))), old, fresh},
		"but not when that is given up":                      {upgrading(of(fresh, abandoned)), old, chosen},
		"nor when that is being deleted":                     {upgrading(of(fresh, leaving)), old, chosen},
		"a service that lost its cluster gets another":       {serving(without(old)), old, chosen},
		"also without a second cluster (RS-026)":             {serving(none, without(old)), old, chosen},
		"a cluster on its way out is replaced at once":       {serving(of(old, leaving)), old, chosen},
		"what was pending takes the place of what is lost":   {upgrading(without(old)), old, fresh},
		"the Service tells who serves, not the status (W3)":  {serving(made(fresh), serves(fresh), reports(fresh, fruit, running), status(func(st *rayv1.RayServiceStatuses) { st.ActiveServiceStatus.RayClusterName = old })), fresh, ""},
		"a Service that was deleted is made again":           {serving(func(s *Snapshot) { s.Services = nil }), old, ""},
		"a Service of somebody else tells nothing": {serving(func(s *Snapshot) {
			s.service("shop-serve-svc").OwnerReferences = nil
			s.service("shop-serve-svc").Spec.Selector[rayv1.LabelCluster] = "foreign"
		}), old, ""},
		"nothing changes while the spec is wrong":             {upgrading(spec(func(s *rayv1.RayServiceSpec) { s.RayClusterDeletionDelaySeconds = ptr.To[int32](-1) })), old, fresh},
		"nothing changes while the config is wrong":           {serving(image("ray:2"), config("applications: 7")), old, ""},
		"a collision of the name leads to the next one":       {given(pendingIs(fresh), func(s *Snapshot) { s.Holds = map[string]action.Hold{clusterKey(fresh): {Collision: true}} }), "", chosen},
		"a refusal does not":                                  {given(pendingIs(fresh), func(s *Snapshot) { s.Holds = map[string]action.Hold{clusterKey(fresh): {}} }), "", fresh},
		"an upgrade that takes too long is given up":          {upgrading(annotated(rayv1.AnnotationUpgradeTimeout, "60")), old, ""},
		"one that has time left is not":                       {upgrading(annotated(rayv1.AnnotationUpgradeTimeout, "3600")), old, fresh},
		"one that was given up is not begun again":            {upgrading(pendingIs(""), givenUp(image("ray:2"))), old, ""},
		"another one is":                                      {upgrading(pendingIs(""), givenUp(image("ray:2")), image("ray:3")), old, chosen},
		"a second cluster that the strategy forbids is left":  {upgrading(none), old, ""},
		"a name that the status has and nobody made is made":  {serving(image("ray:2"), pendingIs(fresh)), old, fresh},
		"a retired cluster of the goal replaces a lost one":   {serving(without(old), made(fresh), of(fresh, retired(time.Minute))), old, fresh},
		"a rotten status does not make one cluster both":      {serving(pendingIs(old)), old, ""},
		"an operator of another version changes nothing (W8)": {serving(of(old, clusterAnnotated(rayv1.AnnotationOperatorVersion, "0.1"))), old, ""},
	} {
		t.Run(name, func(t *testing.T) {
			before := c.given.Service.Status.ClusterIncarnations
			p := newPlanner(c.given, settings(), now)
			p.roles()
			p.chooseClusters()
			if p.active != c.wantActive {
				t.Errorf("active is %q, want %q", p.active, c.wantActive)
			}
			if c.wantPending == chosen {
				if c.given.cluster(p.pending) != nil || p.pending == "" || p.st.ClusterIncarnations != before+1 {
					t.Errorf("pending is %q and %d names were chosen before, want a new name, and that counted", p.pending, p.st.ClusterIncarnations)
				}
				return
			}
			if p.pending != c.wantPending {
				t.Errorf("pending is %q, want %q", p.pending, c.wantPending)
			}
		})
	}
}

func appendGroup(spec *rayv1.RayServiceSpec) {
	group := spec.RayClusterConfig.WorkerGroupSpecs[0].DeepCopy()
	group.GroupName = "big"
	spec.RayClusterConfig.WorkerGroupSpecs = append(spec.RayClusterConfig.WorkerGroupSpecs, *group)
}

// givenUp means that the upgrade to a spec was given up.
func givenUp(change func(*Snapshot)) func(*Snapshot) {
	goal := Goal(&given(change).Service.Spec.RayClusterConfig)
	return status(func(st *rayv1.RayServiceStatuses) {
		st.AbandonedUpgrade = &rayv1.RayServiceAbandonedUpgrade{Goal: goal, Reason: rayv1.ReasonUpgradeTimeout, Message: "too slow"}
	})
}

func TestTheNameOfAClusterIsRecordedBeforeItIsMade(t *testing.T) {
	s := given()
	first := Plan(s, settings(), now)
	name := statusOf(s, first).PendingServiceStatus.RayClusterName
	if diff := cmp.Diff([]string(nil), verbs(first.Actions)); diff != "" || name == "" {
		t.Fatalf("the first pass must only record a name, which is %q:\n%s", name, diff)
	}
	perform(&s, first)
	second := Plan(s, settings(), now)
	if diff := cmp.Diff([]string{"create " + name}, verbs(second.Actions)); diff != "" {
		t.Errorf("actions of the second pass (-want +got):\n%s", diff)
	}
	perform(&s, second)
	image("ray:2")(&s)
	third := Plan(s, settings(), now)
	if next := statusOf(s, third).PendingServiceStatus.RayClusterName; next == name || next == "" {
		t.Errorf("the cluster of another spec is called %q after %q, want another name", next, name)
	}
}

// Without the status nobody knows which names were used. The active cluster must not be taken for a new one of its name, and be
// given another spec.
func TestANameThatAClusterHasIsPassedOver(t *testing.T) {
	first := given(status(func(st *rayv1.RayServiceStatuses) { st.ClusterIncarnations = 1 }))
	name := clusterName(first.Service)
	s := given(made(name), serves(name), reports(name, fruit, "RUNNING"), image("ray:2"))
	s.Service.Status = rayv1.RayServiceStatuses{}
	for range 3 {
		decision := Plan(s, settings(), now)
		st := statusOf(s, decision)
		if st.ActiveServiceStatus.RayClusterName != name || st.PendingServiceStatus.RayClusterName == name {
			t.Fatalf("active is %q and pending %q", st.ActiveServiceStatus.RayClusterName, st.PendingServiceStatus.RayClusterName)
		}
		perform(&s, decision)
	}
	if got := s.cluster(name).Object.Spec.HeadGroupSpec.Template.Spec.Containers[0].Image; got != "ray:1" {
		t.Errorf("the active cluster was given image %s", got)
	}
	if len(s.Clusters) != 2 {
		t.Errorf("there are %d clusters, want a second one", len(s.Clusters))
	}
}

func TestAClusterIsWhatTheServiceAsksFor(t *testing.T) {
	s := given(annotated("team", "a"), annotated(rayv1.AnnotationEnableServeService, "true"), annotated(corev1.LastAppliedConfigAnnotation, "{}"),
		annotated(rayv1.AnnotationInitializingTimeout, "10m"), annotated(rayv1.AnnotationDrainTimeout, "10"),
		func(s *Snapshot) {
			s.Service.Labels = map[string]string{"app": "shop", rayv1.LabelOriginatedFromName: "a lie"}
		})
	for location, want := range map[string]string{"": "", "EveryNode": "", "HeadOnly": "HeadOnly", "Disabled": "Disabled"} {
		cluster := rayCluster(s.Service, fresh, location, "1.2")
		wantAnnotations := map[string]string{
			"team":                          "a",
			rayv1.AnnotationSpecHash:        Goal(&s.Service.Spec.RayClusterConfig),
			rayv1.AnnotationNumWorkerGroups: "1",
			rayv1.AnnotationOperatorVersion: "1.2",
		}
		if want != "" {
			wantAnnotations[rayv1.AnnotationServeProxyLocation] = want
		}
		if diff := cmp.Diff(wantAnnotations, cluster.Annotations); diff != "" {
			t.Errorf("annotations with proxies %q (-want +got):\n%s", location, diff)
		}
		wantLabels := map[string]string{"app": "shop", rayv1.LabelOriginatedFromName: "shop", rayv1.LabelOriginatedFromKind: "RayService"}
		if diff := cmp.Diff(wantLabels, cluster.Labels); diff != "" {
			t.Errorf("labels (-want +got):\n%s", diff)
		}
		if !metav1.IsControlledBy(cluster, s.Service) {
			t.Error("the cluster does not belong to the service")
		}
	}
}

func TestAClusterIsChangedInPlaceOnlyInWhatItsOwnersDoNotChange(t *testing.T) {
	type edit = func(*rayv1.RayCluster)
	group := func(change func(*rayv1.WorkerGroupSpec)) edit {
		return func(c *rayv1.RayCluster) { change(&c.Spec.WorkerGroupSpecs[0]) }
	}
	replicas := func(n int32) edit {
		return group(func(g *rayv1.WorkerGroupSpec) { g.Replicas = &n })
	}
	autoscaled := func(c *rayv1.RayCluster) { c.Spec.EnableInTreeAutoscaling = ptr.To(true) }
	tolerations := group(func(g *rayv1.WorkerGroupSpec) { g.Template.Spec.Tolerations = []corev1.Toleration{{Key: "spot"}} })
	for name, c := range map[string]struct {
		both, live, wanted edit
		// change is what becomes of the live one; nil when it stays as it is.
		change edit
	}{
		"nothing differs":                                {},
		"the autoscaler's number stays (RS-021)":         {both: autoscaled, live: replicas(17)},
		"without an autoscaler the user's number counts": {live: replicas(17), change: replicas(1)},
		"a number that the user does not give stays":     {live: replicas(17), wanted: group(func(g *rayv1.WorkerGroupSpec) { g.Replicas = nil })},
		"limits follow the user, also of an autoscaler (RS-083)": {both: autoscaled, live: replicas(17),
			wanted: group(func(g *rayv1.WorkerGroupSpec) { g.MaxReplicas = ptr.To[int32](20) }),
			change: group(func(g *rayv1.WorkerGroupSpec) { g.MaxReplicas = ptr.To[int32](20) })},
		"victims stay":                          {live: group(func(g *rayv1.WorkerGroupSpec) { g.ScaleStrategy.WorkersToDelete = []string{"w"} })},
		"tolerations of a queue stay (RS-025)":  {live: tolerations},
		"annotations and labels of others stay": {live: func(c *rayv1.RayCluster) { c.Labels["a"], c.Annotations["b"] = "1", "2" }},
		"another version of the operator is noted (RS-070)": {
			live:   func(c *rayv1.RayCluster) { c.Annotations[rayv1.AnnotationOperatorVersion] = "0.1" },
			change: func(c *rayv1.RayCluster) { c.Annotations[rayv1.AnnotationOperatorVersion] = "1.0" }},
		"a group that is appended comes, the first keeps its number (RS-084)": {both: autoscaled, live: replicas(17),
			wanted: func(c *rayv1.RayCluster) {
				c.Spec.WorkerGroupSpecs = append(c.Spec.WorkerGroupSpecs, rayv1.WorkerGroupSpec{GroupName: "big"})
			},
			change: func(c *rayv1.RayCluster) {
				c.Spec.WorkerGroupSpecs = append(c.Spec.WorkerGroupSpecs, rayv1.WorkerGroupSpec{GroupName: "big"})
			}},
		"a queue's suspension stays": {live: func(c *rayv1.RayCluster) { c.Spec.Suspend = ptr.To(true) }},
		"the user's suspension is ended (L52)": {
			live:   func(c *rayv1.RayCluster) { c.Spec.Suspend = ptr.To(true) },
			wanted: func(c *rayv1.RayCluster) { c.Spec.Suspend = ptr.To(false) },
			change: func(c *rayv1.RayCluster) { c.Spec.Suspend = ptr.To(false) }},
	} {
		t.Run(name, func(t *testing.T) {
			build := func(edits ...edit) *rayv1.RayCluster {
				cluster := rayCluster(given().Service, old, "", "1.0")
				for _, edit := range edits {
					if edit != nil {
						edit(cluster)
					}
				}
				return cluster
			}
			got := updated(build(c.both, c.live), build(c.both, c.wanted))
			var want *rayv1.RayCluster
			if c.change != nil {
				want = build(c.both, c.live, c.change)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("update (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPlanKeepsTheClusters(t *testing.T) {
	for name, c := range map[string]struct {
		given Snapshot
		want  []string
	}{
		"a pending cluster is changed in place (RS-023)":       {upgrading(spec(appendGroup)), []string{"update " + fresh}},
		"the active one is not while another takes over":       {upgrading(of(old, clusterAnnotated(rayv1.AnnotationOperatorVersion, "0.1"))), nil},
		"the active one is otherwise (RS-022)":                 {serving(spec(appendGroup)), []string{"update " + old}},
		"one that the strategy keeps as it is, is not":         {serving(strategy(rayv1.RayServiceUpgradeNone), image("ray:2"), of(old, clusterAnnotated(rayv1.AnnotationOperatorVersion, "0.1"))), nil},
		"one that is wanted again is retired no more":          {upgrading(of(fresh, retired(time.Minute))), []string{"update " + fresh}},
		"nothing is changed while the spec is wrong":           {serving(spec(appendGroup), annotated(rayv1.AnnotationUpgradeTimeout, "soon")), nil},
		"a cluster is not made while the spec is wrong":        {given(pendingIs(fresh), annotated(rayv1.AnnotationUpgradeTimeout, "soon")), nil},
		"a first cluster is made although the config is wrong": {given(pendingIs(fresh), config("applications: 7")), []string{"create " + fresh}},
		"a cluster that was refused is waited for": {given(pendingIs(fresh), func(s *Snapshot) {
			s.Holds = map[string]action.Hold{clusterKey(fresh): {Until: now.Add(time.Minute), Message: "quota"}}
		}), nil},
	} {
		t.Run(name, func(t *testing.T) {
			settled := Plan(c.given, settings(), now)
			if diff := cmp.Diff(c.want, verbs(settled.Actions)); diff != "" {
				t.Errorf("actions (-want +got):\n%s", diff)
			}
		})
	}
}
