package rayservice

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
	"github.com/heliostat-io/heliostat/internal/ray/poll"
	"github.com/heliostat-io/heliostat/internal/ray/serve"
	"github.com/heliostat-io/heliostat/internal/raycluster"
)

// now is when plans are made.
var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// settings are those of an operator that was told nothing.
func settings() Settings {
	clusters := raycluster.DefaultSettings()
	clusters.OperatorVersion = "1.0"
	return Settings{Clusters: clusters, ZeroDowntime: true, Incremental: true, GatewayAPI: true}
}

// fruit and fruit2 are Serve configs with one application each, which differ in what is imported.
const (
	fruit  = "applications: [{name: fruit, import_path: 'fruit:app', route_prefix: /fruit}]"
	fruit2 = "applications: [{name: fruit, import_path: 'fruit:app2', route_prefix: /fruit}]"
)

// old and fresh are the names of clusters in most tests: the one that serves, and one that is to take over.
const (
	old   = "shop-aaaaa"
	fresh = "shop-bbbbb"
)

// given returns a snapshot of a RayService for which nothing has been done yet but its finalizer, changed by edits one after
// the other. A cluster is made for the spec as it is by then.
func given(edits ...func(*Snapshot)) Snapshot {
	container := func(name string) corev1.PodTemplateSpec {
		return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: name, Image: "ray:1"}}}}
	}
	s := Snapshot{GatewayAPI: true, Endpoints: map[string][]Endpoint{}, Service: &rayv1.RayService{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "shop", UID: "shop-uid", Generation: 1, ResourceVersion: "1",
			Finalizers: []string{rayv1.FinalizerRayService}},
		Spec: rayv1.RayServiceSpec{ServeConfigV2: fruit, RayClusterConfig: rayv1.RayClusterSpec{
			HeadGroupSpec: rayv1.HeadGroupSpec{Template: container("ray-head")},
			WorkerGroupSpecs: []rayv1.WorkerGroupSpec{{GroupName: "small", Replicas: ptr.To[int32](1), MinReplicas: ptr.To[int32](0), MaxReplicas: ptr.To[int32](5),
				Template: container("ray-worker")}},
		}},
	}}
	for _, edit := range edits {
		edit(&s)
	}
	return s
}

// serving is a service of which one cluster serves as the spec asks, and which has come to rest.
func serving(edits ...func(*Snapshot)) Snapshot {
	s := given(made(old), serves(old), reports(old, fruit, dashboard.ApplicationRunning))
	s.Service.Status.ClusterIncarnations = 1
	s.Service.Status.Conditions = []metav1.Condition{{Type: rayv1.ConditionRayServiceReady, Status: metav1.ConditionTrue,
		Reason: rayv1.ReasonNonZeroServeEndpoints, LastTransitionTime: metav1.NewTime(now.Add(-time.Hour))}}
	settle(&s)
	for _, edit := range edits {
		edit(&s)
	}
	return s
}

// upgrading is a service of which one cluster serves, while another with a newer image is there and has not reported yet.
func upgrading(edits ...func(*Snapshot)) Snapshot {
	s := serving(image("ray:2"), made(fresh), pendingIs(fresh))
	for _, edit := range edits {
		edit(&s)
	}
	return s
}

// proved makes a pending cluster ready to take over.
func proved(s *Snapshot) { reports(fresh, fruit, dashboard.ApplicationRunning)(s) }

// spec changes the spec, which makes another generation.
func spec(edit func(*rayv1.RayServiceSpec)) func(*Snapshot) {
	return func(s *Snapshot) {
		edit(&s.Service.Spec)
		s.Service.Generation++
	}
}

func image(name string) func(*Snapshot) {
	return spec(func(spec *rayv1.RayServiceSpec) {
		spec.RayClusterConfig.HeadGroupSpec.Template.Spec.Containers[0].Image = name
	})
}

func config(text string) func(*Snapshot) {
	return spec(func(spec *rayv1.RayServiceSpec) { spec.ServeConfigV2 = text })
}

func strategy(kind rayv1.RayServiceUpgradeType) func(*Snapshot) {
	return spec(func(spec *rayv1.RayServiceSpec) { spec.UpgradeStrategy = &rayv1.RayServiceUpgradeStrategy{Type: &kind} })
}

func delay(seconds int32) func(*Snapshot) {
	return spec(func(spec *rayv1.RayServiceSpec) { spec.RayClusterDeletionDelaySeconds = &seconds })
}

func annotated(key, value string) func(*Snapshot) {
	return func(s *Snapshot) {
		s.Service.Annotations = overlay(s.Service.Annotations, map[string]string{key: value})
	}
}

// status changes what the status said before.
func status(edit func(*rayv1.RayServiceStatuses)) func(*Snapshot) {
	return func(s *Snapshot) { edit(&s.Service.Status) }
}

func pendingIs(name string) func(*Snapshot) {
	return status(func(st *rayv1.RayServiceStatuses) { st.PendingServiceStatus.RayClusterName = name })
}

// condition is what a condition said before.
func conditionWas(kind string, is metav1.ConditionStatus, reason string, ago time.Duration) func(*Snapshot) {
	return status(func(st *rayv1.RayServiceStatuses) {
		st.Conditions = append(st.Conditions, metav1.Condition{Type: kind, Status: is, Reason: reason, LastTransitionTime: metav1.NewTime(now.Add(-ago))})
	})
}

// made adds a cluster that was made for the spec ten minutes ago. Its head and worker run, their proxies answer, and its own
// Service leads to both.
func made(name string) func(*Snapshot) {
	return func(s *Snapshot) {
		object := rayCluster(s.Service, name, "", settings().Clusters.OperatorVersion)
		object.UID, object.ResourceVersion = types.UID(name+"-uid"), "1"
		object.CreationTimestamp = metav1.NewTime(now.Add(-10 * time.Minute))
		number := len(s.Clusters)
		s.Clusters = append(s.Clusters, Cluster{
			Object:      object,
			HeadService: raycluster.HeadService(object, settings().Clusters),
			Pods: []Pod{
				node(name, rayv1.NodeTypeHead, "10.0."+string(rune('0'+number))+".1"),
				node(name, rayv1.NodeTypeWorker, "10.0."+string(rune('0'+number))+".2"),
			},
		})
		own, err := ClusterServeService(object)
		if err != nil {
			panic(err)
		}
		s.store(own)
		leadsTo(own.Name, name)(s)
	}
}

// node is a Pod of a cluster that runs and whose proxy answers.
func node(cluster, kind, ip string) Pod {
	name := cluster + "-" + kind
	return Pod{
		Pod: &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, UID: types.UID(name + "-uid"), ResourceVersion: "1",
				Labels: map[string]string{rayv1.LabelCluster: cluster, rayv1.LabelNodeType: kind, rayv1.LabelServe: "true"}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "ray-" + kind}}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: ip,
				Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
		},
		Health: &poll.Observation{Asked: now.Add(-time.Second), Answered: now.Add(-time.Second)},
	}
}

// store puts a Service into the snapshot as an apply would.
func (s *Snapshot) store(service *corev1.Service) {
	stored := action.Stamp(service).(*corev1.Service)
	if stored.UID == "" {
		stored.UID = types.UID(service.Name + "-uid")
	}
	stored.ResourceVersion += "1"
	for i := range s.Services {
		if s.Services[i].Name == stored.Name {
			s.Services[i] = stored
			return
		}
	}
	s.Services = append(s.Services, stored)
}

// serves makes a cluster the one that the Services lead to.
func serves(name string) func(*Snapshot) {
	return func(s *Snapshot) {
		cluster := s.cluster(name)
		service, err := ServeService(s.Service, cluster.Object)
		if err != nil {
			panic(err)
		}
		service.Annotations = overlay(service.Annotations, map[string]string{
			rayv1.AnnotationServesCluster: name, rayv1.AnnotationServesGoal: goalOf(cluster.Object),
			rayv1.AnnotationSwitchedAt: now.Add(-time.Hour).Format(time.RFC3339), rayv1.AnnotationSwitchReason: rayv1.CutOverFirstStart,
		})
		s.store(service)
		s.store(HeadService(s.Service, cluster.Object, settings().Clusters))
		leadsTo(service.Name, name)(s)
		s.Service.Status.ActiveServiceStatus.RayClusterName = name
	}
}

// leadsTo makes all Pods of a cluster the ready endpoints of a Service.
func leadsTo(service, cluster string) func(*Snapshot) {
	return func(s *Snapshot) {
		s.Endpoints[service] = nil
		for _, pod := range s.cluster(cluster).Pods {
			s.Endpoints[service] = append(s.Endpoints[service], Endpoint{Pod: pod.UID, Ready: true})
		}
	}
}

// withoutReady takes all endpoints from a Service.
func withoutReady(service string) func(*Snapshot) {
	return func(s *Snapshot) { delete(s.Endpoints, service) }
}

// of changes one cluster.
func of(name string, edits ...func(*Cluster)) func(*Snapshot) {
	return func(s *Snapshot) {
		for _, edit := range edits {
			edit(s.cluster(name))
		}
	}
}

// without removes a cluster.
func without(name string) func(*Snapshot) {
	return func(s *Snapshot) {
		for i := range s.Clusters {
			if s.Clusters[i].name() == name {
				s.Clusters = append(s.Clusters[:i:i], s.Clusters[i+1:]...)
				return
			}
		}
	}
}

func clusterAnnotated(key, value string) func(*Cluster) {
	return func(c *Cluster) { c.Object.Annotations = overlay(c.Object.Annotations, map[string]string{key: value}) }
}

// retired means that a cluster has had no part in the service for so long.
func retired(ago time.Duration) func(*Cluster) {
	return clusterAnnotated(rayv1.AnnotationRetiredAt, now.Add(-ago).Format(time.RFC3339))
}

// reports makes Serve on a cluster tell that it has a config, all applications of it with one status. An empty config
// stands for a Serve that knows nothing.
func reports(name, text, status string) func(*Snapshot) {
	return func(s *Snapshot) {
		details := &dashboard.ServeDetails{ProxyLocation: "EveryNode", Applications: applications(text, status), Proxies: map[string]dashboard.ServeProxy{}}
		for _, pod := range s.cluster(name).Pods {
			details.Proxies[pod.Name] = dashboard.ServeProxy{NodeID: pod.Name, NodeIP: pod.Status.PodIP, Status: healthyProxy}
		}
		s.cluster(name).Report = &poll.Observation{Asked: now.Add(-time.Second), Answered: now.Add(-time.Second), SessionName: "session_" + name, Serve: details}
	}
}

// deploymentSays gives each application a deployment that is well and one that is not.
func deploymentSays(name, message string) func(*Snapshot) {
	return func(s *Snapshot) {
		for _, application := range s.cluster(name).Report.Serve.Applications {
			application.Deployments["press"] = dashboard.ServeDeployment{Name: "press", Status: "HEALTHY", Message: "well"}
			application.Deployments["stand"] = dashboard.ServeDeployment{Name: "stand", Status: "UPDATING", Message: message}
		}
	}
}

// applications are what Serve makes of a config.
func applications(text, status string) map[string]dashboard.ServeApplication {
	if text == "" {
		return nil
	}
	config, err := serve.Parse(text)
	if err != nil {
		panic(err)
	}
	body, err := config.Body(nil)
	if err != nil {
		panic(err)
	}
	var sent struct{ Applications []map[string]any }
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if err := decoder.Decode(&sent); err != nil {
		panic(err)
	}
	known := map[string]dashboard.ServeApplication{}
	for i, name := range config.ApplicationNames() {
		known[name] = dashboard.ServeApplication{Name: name, Status: status, DeployedConfig: sent.Applications[i],
			Deployments: map[string]dashboard.ServeDeployment{"D": {Name: "D", Status: "HEALTHY"}}}
	}
	return known
}

// silent means that Serve on a cluster did not answer the last questions.
func silent(c *Cluster) {
	if c.Report == nil {
		c.Report = &poll.Observation{Asked: now}
	}
	c.Report.Err, c.Report.Failures = errors.New("refused"), leastFailures
}

// put is what became of a config that was sent so long ago.
func put(text string, err error, ago time.Duration) func(*Cluster) {
	return func(c *Cluster) {
		config, parseErr := serve.Parse(text)
		if parseErr != nil {
			panic(parseErr)
		}
		c.Put = &action.Outcome{ID: config.Hash(), At: now.Add(-ago), Err: err}
	}
}

// verbs names the actions of a plan in the form "create shop-abcde".
func verbs(actions []action.Action) []string {
	var names []string
	for _, a := range actions {
		switch a := a.(type) {
		case action.Create:
			names = append(names, "create "+a.Object.GetName())
		case action.Apply:
			names = append(names, "apply "+a.Object.GetName())
		case action.Delete:
			names = append(names, "delete "+a.Object.GetName())
		case action.Update:
			names = append(names, "update "+a.Object.GetName())
		case action.Finalizers:
			names = append(names, "finalizers "+strings.Join(a.Want, ","))
		case action.PutServe:
			names = append(names, "put "+a.Cluster.GetName())
		}
	}
	return names
}

// statusOf is the status after a plan.
func statusOf(s Snapshot, decision Decision) rayv1.RayServiceStatuses {
	if decision.Status == nil {
		return s.Service.Status
	}
	return decision.Status.Object.(*rayv1.RayService).Status
}

func TestPlanIsSilentWhenNothingChanges(t *testing.T) {
	for name, s := range map[string]Snapshot{
		"a service that serves":      serving(),
		"an upgrade under way":       upgrading(),
		"a service that is starting": given(made(old), pendingIs(old), reports(old, fruit, "DEPLOYING")),
	} {
		t.Run(name, func(t *testing.T) {
			settle(&s)
			again := Plan(s, settings(), now.Add(time.Second))
			if again.Status != nil || len(again.Actions) > 0 || len(again.Events) > 0 {
				t.Errorf("another pass over the same facts wants writes: %v, status %v", verbs(again.Actions), again.Status)
			}
			if len(again.Reports) == 0 || len(again.Pods) == 0 {
				t.Error("Serve and the proxies must go on being asked")
			}
		})
	}
}
