package rayservice

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
)

// headPorts gives the head's container ports: names and numbers in turn.
func headPorts(ports ...corev1.ContainerPort) func(*Snapshot) {
	return spec(func(s *rayv1.RayServiceSpec) {
		s.RayClusterConfig.HeadGroupSpec.Template.Spec.Containers[0].Ports = ports
	})
}

// custom is a template of the Service of Serve.
func custom(service corev1.Service) func(*Snapshot) {
	return spec(func(s *rayv1.RayServiceSpec) { s.ServeService = &service })
}

func ports(list ...corev1.ServicePort) func(*Snapshot) {
	return custom(corev1.Service{Spec: corev1.ServiceSpec{Ports: list}})
}

func TestTheServiceOfServeHasThePortsOfServe(t *testing.T) {
	serve := corev1.ServicePort{Name: "serve", Port: 8000, Protocol: corev1.ProtocolTCP}
	grpc := corev1.ServicePort{Name: "serve-grpc", Port: 9000, Protocol: corev1.ProtocolTCP}
	mine := corev1.ServicePort{Name: "serve", Port: 80, TargetPort: intstr.FromInt32(8000), AppProtocol: ptr.To("kubernetes.io/h2c")}
	extra := corev1.ServicePort{Name: "metrics", Port: 8080}
	for name, c := range map[string]struct {
		given Snapshot
		want  []corev1.ServicePort
	}{
		"the usual one":                               {given(), []corev1.ServicePort{serve}},
		"all that begin with serve (RS-032)":          {given(headPorts(corev1.ContainerPort{Name: "serve", ContainerPort: 8000}, corev1.ContainerPort{Name: "serve-grpc", ContainerPort: 9000}, corev1.ContainerPort{Name: "served", ContainerPort: 1})), []corev1.ServicePort{serve, grpc}},
		"the user's in its place (RS-034)":            {given(ports(mine)), []corev1.ServicePort{mine}},
		"the user's besides (RS-092)":                 {given(ports(extra)), []corev1.ServicePort{extra, serve}},
		"only the user's where the head names none":   {given(headPorts(corev1.ContainerPort{Name: "gcs", ContainerPort: 6379}), ports(extra)), []corev1.ServicePort{extra}},
		"none, which is an error (RS-035)":            {given(headPorts(corev1.ContainerPort{Name: "gcs", ContainerPort: 6379})), nil},
		"none, where the user's template has no port": {given(headPorts(corev1.ContainerPort{Name: "gcs", ContainerPort: 6379}), ports()), nil},
	} {
		t.Run(name, func(t *testing.T) {
			service, err := ServeService(c.given.Service, rayCluster(c.given.Service, fresh, "", ""))
			if (err != nil) != (c.want == nil) {
				t.Fatalf("error %v", err)
			}
			if err != nil {
				if !strings.Contains(err.Error(), "add a port named \"serve\"") {
					t.Errorf("the error does not say what to do: %v", err)
				}
				return
			}
			if diff := cmp.Diff(c.want, service.Spec.Ports); diff != "" {
				t.Errorf("ports (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheServiceOfServeIsTheUsersWhereItCan(t *testing.T) {
	s := given(custom(corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "mine", Namespace: "elsewhere", Labels: map[string]string{"team": "a", rayv1.LabelServe: "a lie"}, Annotations: map[string]string{"lb": "internal"}},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Selector: map[string]string{"app": "other"}},
	}))
	got, err := ServeService(s.Service, rayCluster(s.Service, fresh, "", ""))
	if err != nil {
		t.Fatal(err)
	}
	want := &corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Name: "mine", Namespace: "ml", OwnerReferences: []metav1.OwnerReference{ownerReference(s.Service)}, Annotations: map[string]string{"lb": "internal"},
			Labels: map[string]string{"team": "a", rayv1.LabelServe: "shop-serve", rayv1.LabelOriginatedFromName: "shop", rayv1.LabelOriginatedFromKind: "RayService"}},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Selector: map[string]string{rayv1.LabelCluster: fresh, rayv1.LabelServe: "true"}, Ports: got.Spec.Ports},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Service (-want +got):\n%s", diff)
	}
}

func TestPlanKeepsTheServices(t *testing.T) {
	foreign := func(name string) func(*Snapshot) {
		return func(s *Snapshot) {
			s.remove(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}})
			s.Services = append(s.Services, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, UID: "foreign"}})
		}
	}
	gone := func(names ...string) func(*Snapshot) {
		return func(s *Snapshot) {
			for _, name := range names {
				s.remove(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}})
			}
		}
	}
	edited := func(name string, edit func(*corev1.Service)) func(*Snapshot) {
		return func(s *Snapshot) { edit(s.service(name)) }
	}
	annotation := custom(corev1.Service{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"a": "b"}}})
	renamed := custom(corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "mine"}})
	for name, c := range map[string]struct {
		given Snapshot
		want  []string
		// wantObstacle is the reason that somebody must do something, or empty.
		wantObstacle string
	}{
		"all is well":                                  {given: serving()},
		"a head Service that is missing":               {given: serving(gone("shop-head-svc")), want: []string{"apply shop-head-svc"}},
		"a cluster's Service that is missing":          {given: serving(gone(old + "-serve-svc")), want: []string{"apply " + old + "-serve-svc"}},
		"an annotation of the template (RS-091)":       {given: serving(annotation), want: []string{"apply shop-serve-svc"}},
		"a selector that somebody has narrowed":        {given: serving(edited(serveService, func(s *corev1.Service) { delete(s.Spec.Selector, rayv1.LabelServe) })), want: []string{"apply shop-serve-svc"}},
		"what somebody else has added stays":           {given: serving(edited(serveService, func(s *corev1.Service) { s.Annotations["cloud"] = "1" }))},
		"a head Service that leads elsewhere":          {given: serving(edited("shop-head-svc", func(s *corev1.Service) { s.Spec.Selector[rayv1.LabelCluster] = "gone" })), want: []string{"apply shop-head-svc"}},
		"a head Service of somebody else":              {given: serving(foreign("shop-head-svc")), wantObstacle: rayv1.ReasonNameCollision},
		"a Service of Serve of somebody else (RS-090)": {given: upgrading(foreign(serveService), proved, of(fresh, lastGood(fruit))), wantObstacle: rayv1.ReasonNameCollision},
		"a cluster's Service of somebody else":         {given: serving(foreign(old + "-serve-svc")), wantObstacle: rayv1.ReasonNameCollision},
		"a Service that is being deleted":              {given: serving(edited("shop-head-svc", func(s *corev1.Service) { s.DeletionTimestamp = ptr.To(metav1.NewTime(now)); s.Spec.Ports = nil }))},
		"another name: the new one comes first":        {given: serving(renamed), want: []string{"create mine"}},
		"then the old one goes":                        {given: serving(renamed, func(s *Snapshot) { settleOnce(s); leadsTo("mine", old)(s) }), want: []string{"delete shop-serve-svc"}},
		"but not before the new one has endpoints":     {given: serving(renamed, func(s *Snapshot) { settleOnce(s); withoutReady("mine")(s) })},
		"a write that was refused waits": {given: serving(annotation, func(s *Snapshot) {
			s.Holds = map[string]action.Hold{serviceKey(serveService): {Reason: "Forbidden", Message: "quota", Until: now.Add(1)}}
		}), wantObstacle: "Forbidden"},
		"no port for Serve": {given: given(headPorts(corev1.ContainerPort{Name: "gcs", ContainerPort: 6379}), func(s *Snapshot) {
			s.Clusters = append(s.Clusters, Cluster{Object: rayCluster(s.Service, fresh, "", "1.0")})
		}, pendingIs(fresh)), wantObstacle: rayv1.ReasonServiceMissing},
	} {
		t.Run(name, func(t *testing.T) {
			decision := Plan(c.given, settings(), now)
			if diff := cmp.Diff(c.want, verbs(decision.Actions)); diff != "" {
				t.Errorf("actions (-want +got):\n%s", diff)
			}
			stalled := conditionOf(statusOf(c.given, decision), rayv1.ConditionStalled)
			reason := ""
			if stalled.Status == metav1.ConditionTrue {
				reason = stalled.Reason
			}
			if reason != c.wantObstacle {
				t.Errorf("Stalled has the reason %q, want %q: %s", reason, c.wantObstacle, stalled.Message)
			}
			if c.wantObstacle != "" && decision.LookAgain <= 0 {
				t.Error("nobody looks again")
			}
		})
	}
}

// settleOnce does what one plan asks for.
func settleOnce(s *Snapshot) { perform(s, Plan(*s, settings(), now)) }

// An address cannot be changed; a head Service that has one from another operator keeps it (L58).
func TestTheHeadServiceKeepsItsAddress(t *testing.T) {
	s := serving(func(s *Snapshot) {
		service := s.service("shop-head-svc")
		service.Spec.ClusterIP = "10.96.0.7"
		delete(service.Annotations, rayv1.AnnotationApplied)
	})
	decision := Plan(s, settings(), now)
	if len(decision.Actions) != 1 {
		t.Fatalf("the plan wants %v, want one write", verbs(decision.Actions))
	}
	if got := decision.Actions[0].(action.Apply).Object.(*corev1.Service).Spec.ClusterIP; got != "10.96.0.7" {
		t.Errorf("the address becomes %q", got)
	}
}

// A pass that only brings the Service up to date must never take back a cut-over that it did not see.
func TestKeepingTheServiceOfServeIsRefusedAfterACutOver(t *testing.T) {
	s := serving(custom(corev1.Service{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"a": "b"}}}))
	version := s.service(serveService).ResourceVersion
	decision := Plan(s, settings(), now)
	apply, ok := decision.Actions[0].(action.Apply)
	if !ok || apply.Object.GetResourceVersion() != version || version == "" {
		t.Fatalf("the write is %+v, want an apply for version %q only", decision.Actions[0], version)
	}
	if diff := cmp.Diff(switchAnnotations(s.service(serveService)), switchAnnotations(apply.Object.(*corev1.Service))); diff != "" {
		t.Errorf("what tells of the last cut-over must stay (-want +got):\n%s", diff)
	}
}

func TestTheServiceOfAClusterBelongsToIt(t *testing.T) {
	cluster := rayCluster(given().Service, fresh, "", "")
	cluster.UID = "cluster-uid"
	service, err := ClusterServeService(cluster)
	if err != nil {
		t.Fatal(err)
	}
	if !metav1.IsControlledBy(service, cluster) || service.Name != fresh+"-serve-svc" || service.Namespace != "ml" {
		t.Errorf("it is %s/%s of %v", service.Namespace, service.Name, service.OwnerReferences)
	}
	if diff := cmp.Diff(map[string]string{rayv1.LabelCluster: fresh, rayv1.LabelServe: "true"}, service.Spec.Selector); diff != "" {
		t.Errorf("selector (-want +got):\n%s", diff)
	}
}
