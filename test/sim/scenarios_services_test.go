package sim

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/rayservice"
)

// shop is a RayService alone.
func shop(edits ...func(*rayv1.RayService)) func() []object {
	return func() []object {
		spec := demoSpec()
		spec.WorkerGroupSpecs[0].Replicas = ptr.To[int32](1)
		service := &rayv1.RayService{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shop"},
			Spec: rayv1.RayServiceSpec{RayClusterConfig: spec, ServeConfigV2: shopConfig(1), RayClusterDeletionDelaySeconds: ptr.To[int32](20)}}
		for _, edit := range edits {
			edit(service)
		}
		return []object{service}
	}
}

func editShop(what string, change func(*rayv1.RayService)) scenarioChange {
	return scenarioChange{what: what, make: func(w *world) {
		if live := w.shop(); live != nil {
			w.must(w.server.Change("user", live, "", func(o object) { change(o.(*rayv1.RayService)) }))
		}
	}}
}

// shop is the RayService, nil when it is gone.
func (w *world) shop() *rayv1.RayService {
	service, _ := w.server.Get("RayService", named("shop")).(*rayv1.RayService)
	return service
}

// The edits of a RayService.
func image(number int) func(*rayv1.RayService) {
	return func(s *rayv1.RayService) {
		s.Spec.RayClusterConfig.HeadGroupSpec.Template.Spec.Containers[0].Image = fmt.Sprintf("img:%d", number)
	}
}

func config(text string) func(*rayv1.RayService) {
	return func(s *rayv1.RayService) { s.Spec.ServeConfigV2 = text }
}

func delay(seconds int32) func(*rayv1.RayService) {
	return func(s *rayv1.RayService) { s.Spec.RayClusterDeletionDelaySeconds = &seconds }
}

func strategy(kind rayv1.RayServiceUpgradeType) func(*rayv1.RayService) {
	return func(s *rayv1.RayService) { s.Spec.UpgradeStrategy = &rayv1.RayServiceUpgradeStrategy{Type: &kind} }
}

func annotated(key, value string) func(*rayv1.RayService) {
	return func(s *rayv1.RayService) { metav1.SetMetaDataAnnotation(&s.ObjectMeta, key, value) }
}

// changeShop makes one change of several edits.
func changeShop(what string, edits ...func(*rayv1.RayService)) change {
	return editShop(what, func(s *rayv1.RayService) {
		for _, edit := range edits {
			edit(s)
		}
	})
}

// goal changes the cluster to that of an image.
func goal(number int) change { return changeShop(fmt.Sprintf("goal %d", number), image(number)) }

func (c change) during(midway func(*world) bool) change {
	c.midway = midway
	return c
}

func (c change) harmful() change {
	c.harms = true
	return c
}

// pair returns the cluster that the Service of Serve leads to and another one of the RayService that is not leaving.
func (w *world) pair() (serving, other *rayv1.RayCluster) {
	service := w.shop()
	if service == nil {
		return nil, nil
	}
	for _, cluster := range w.clustersOf(service) {
		switch {
		case w.led(service) == cluster.Name:
			serving = cluster
		case cluster.DeletionTimestamp == nil:
			other = cluster
		}
	}
	return serving, other
}

// led is the cluster that the Service of Serve leads to, or empty.
func (w *world) led(service *rayv1.RayService) string {
	for _, serving := range w.serveServices(service) {
		return serving.Spec.Selector[rayv1.LabelCluster]
	}
	return ""
}

// The moments of an upgrade.

// prepares is while a second cluster is there.
func prepares(w *world) bool {
	serving, other := w.pair()
	return serving != nil && other != nil && other.Annotations[rayv1.AnnotationRetiredAt] == "" && !w.switched()
}

// deploys is while Serve brings the applications up on it.
func deploys(w *world) bool {
	_, other := w.pair()
	return prepares(w) && w.serveOn(other.Name) != nil
}

// switched is when the Service of Serve leads to the cluster that the spec asks for.
func (w *world) switched() bool {
	serving, _ := w.pair()
	return serving != nil && goalOf(serving) == rayservice.Goal(&w.shop().Spec.RayClusterConfig)
}

// cutOver is just after the cut-over.
func cutOver(w *world) bool {
	_, other := w.pair()
	return w.switched() && other != nil
}

// retires is while the old cluster is kept.
func retires(w *world) bool {
	_, other := w.pair()
	return cutOver(w) && other.Annotations[rayv1.AnnotationRetiredAt] != ""
}

// abandons is when the old cluster was given up.
func abandons(w *world) bool {
	_, other := w.pair()
	return cutOver(w) && other.Annotations[rayv1.AnnotationAbandoned] != ""
}

// suspends is while the service is being taken down.
func suspends(w *world) bool {
	service := w.shop()
	return service != nil && meta.IsStatusConditionTrue(service.Status.Conditions, rayv1.ConditionRayServiceSuspending)
}

func serviceScenarios() []scenario {
	scenarios := append(upgradeScenarios(), configScenarios()...)
	scenarios = append(scenarios, lostServiceScenarios()...)
	scenarios = append(scenarios, endOfServiceScenarios()...)
	for i := range scenarios {
		s := &scenarios[i]
		s.ofServices, s.usesHTTP, s.timed = true, true, true
		// While a cache shows a cluster that is gone, it is given its Service again.
		s.chance = append(s.chance, "create Service shop~-head-svc", "create Service shop~-serve-svc")
	}
	return scenarios
}

// Scenarios that are meant by name. In the first two every incident is tried.
const (
	startScenario   = "a service starts"
	upgradeScenario = "a new cluster takes over"
	lateProxies     = "proxies come up late"
)

// upgradeScenarios are those in which one cluster takes over from another.
func upgradeScenarios() []scenario {
	return []scenario{
		{name: startScenario, objects: shop()},
		{name: upgradeScenario, anyTime: true, objects: shop(), changes: []change{goal(2)}},
		{name: lateProxies, anyTime: true, objects: shop(), proxyTime: 2 * deployTime, changes: []change{goal(2)}},
		{name: "several clusters take over one after the other", anyTime: true, objects: shop(delay(0)), changes: []change{goal(2), goal(3), goal(4)}},
		{name: "the old cluster is kept for long", objects: shop(delay(130)), changes: []change{goal(2)}},
		{name: "cluster and config change together", anyTime: true, objects: shop(),
			changes: []change{changeShop("another cluster and config", image(2), config(shopConfig(2)))}},
		{name: "the goal goes back during an upgrade", objects: shop(), changes: []change{goal(2), goal(1).during(deploys)}},
		{name: "the goal goes back and forth during an upgrade", objects: shop(delay(60)),
			changes: []change{goal(2), goal(1).during(prepares), goal(2).during(retires)}},
		{name: "the goal goes back after the cut-over", objects: shop(delay(60)), changes: []change{goal(2), goal(1).during(cutOver)}},
		{name: "the goal goes back while the old cluster is kept", objects: shop(delay(60)), changes: []change{goal(2), goal(1).during(retires)}},
		{name: "the goal goes back when the old cluster was given up", objects: shop(), changes: []change{goal(2), goal(1).during(abandons)}},
		{name: "a third goal comes during an upgrade", objects: shop(), changes: []change{goal(2), goal(3).during(prepares)}},
		{name: "a third goal comes while applications start", objects: shop(), changes: []change{goal(2), goal(3).during(deploys)}},
		{name: "a third goal comes right after the cut-over", objects: shop(), changes: []change{goal(2), goal(3).during(cutOver)}},
		{name: "goals come and go", rush: true, objects: shop(), changes: []change{goal(2), goal(1), goal(3), goal(1), goal(2),
			changeShop("config 2", config(shopConfig(2))), goal(1), goal(3)}},
		{name: "requests take long", objects: shop(delay(0)), requests: 50 * time.Second, changes: []change{goal(2)}},
		{name: "requests take too long", objects: shop(delay(0), annotated(rayv1.AnnotationDrainTimeout, "40")), requests: 140 * time.Second,
			changes: []change{goal(2)}},
		{name: "the Service gets another name", objects: shop(), changes: []change{
			changeShop("another name", func(s *rayv1.RayService) {
				s.Spec.ServeService = &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "front"}}
			}), goal(2)}},
		{name: "the head is kept out of the Service", objects: shop(func(s *rayv1.RayService) { s.Spec.ExcludeHeadPodFromServeSvc = true }),
			changes: []change{goal(2)}},
	}
}

// configScenarios are those in which the config of Serve changes.
func configScenarios() []scenario {
	bad := appConfig(failing, 2)
	return []scenario{
		{name: "only the config changes", anyTime: true, objects: shop(), changes: []change{changeShop("config 2", config(shopConfig(2)))}},
		{name: "the config changes during an upgrade", objects: shop(), changes: []change{goal(2), changeShop("config 2", config(shopConfig(2))).during(deploys)}},
		{name: "the config changes right after a cut-over", objects: shop(), changes: []change{goal(2), changeShop("config 2", config(shopConfig(2))).during(cutOver)}},
		{name: "a config is refused, and mended", objects: shop(), stuck: true, insists: true,
			changes: []change{changeShop("refused config", config(appConfig(refused, 2))), changeShop("config 3", config(shopConfig(3)))}},
		{name: "a config is nonsense, and mended", objects: shop(), stuck: true,
			changes: []change{changeShop("nonsense", config("applications: 7")), changeShop("config 3", config(shopConfig(3)))}},
		{name: "the applications of a new cluster fail, and the goal goes back", objects: shop(), stuck: true,
			changes: []change{changeShop("failing applications", image(2), config(bad)), changeShop("back", image(1), config(shopConfig(1)))}},
		{name: "the applications of a new cluster fail, and are mended", objects: shop(), stuck: true,
			changes: []change{changeShop("failing applications", image(2), config(bad)), changeShop("config 3", config(shopConfig(3)))}},
		{name: "an upgrade takes too long", objects: shop(annotated(rayv1.AnnotationUpgradeTimeout, "60s")), stuck: true,
			changes: []change{changeShop("failing applications", image(2), config(bad)), changeShop("another cluster", image(3), config(shopConfig(3)))}},
		{name: "without an upgrade strategy the config changes and the cluster does not", inPlace: true, objects: shop(strategy(rayv1.RayServiceUpgradeNone)),
			changes: []change{changeShop("cluster and config", image(2), config(shopConfig(2)))}},
	}
}

// lostServiceScenarios are those in which something is lost that serves, or is to serve.
func lostServiceScenarios() []scenario {
	deleteServing := func(w *world) {
		if serving, _ := w.pair(); serving != nil {
			w.must(w.server.Remove("user", serving, false))
		}
	}
	deleteOther := func(w *world) {
		if _, other := w.pair(); other != nil {
			w.must(w.server.Remove("user", other, false))
		}
	}
	lost := change{what: "the cluster that serves is deleted", make: deleteServing, harms: true}
	lostOther := change{what: "the cluster that does not serve is deleted", make: deleteOther}
	return []scenario{
		{name: "the cluster that serves is deleted", objects: shop(), changes: []change{lost}},
		{name: "the cluster that serves is deleted during an upgrade", objects: shop(), changes: []change{goal(2), lost.during(deploys)}},
		{name: "the cluster that is prepared is deleted", objects: shop(), changes: []change{goal(2), lostOther.during(deploys)}},
		{name: "the cluster that is kept is deleted", objects: shop(), changes: []change{goal(2), lostOther.during(retires)}},
		{name: "the head is restarted", objects: shop(), changes: []change{restartHeads().harmful()}},
		{name: "the head is lost", objects: shop(), changes: []change{lose(rayv1.HeadGroupName).harmful()}},
		{name: "the heads are restarted during an upgrade", objects: shop(), changes: []change{goal(2), restartHeads().harmful().during(deploys)}},
		{name: "the heads are lost during an upgrade with another config", objects: shop(), changes: []change{
			changeShop("another cluster and config", image(2), config(shopConfig(2))), lose(rayv1.HeadGroupName).harmful().during(deploys)}},
		{name: "the workers are lost", objects: shop(), changes: []change{lose("a").harmful()}},
		{name: "the Services are deleted", objects: shop(), changes: []change{
			{what: "delete the Services", harms: true, make: func(w *world) { w.removeAll("Service", isServeService) }}, goal(2)}},
	}
}

// endOfServiceScenarios are those in which a service is taken down.
func endOfServiceScenarios() []scenario {
	suspend := editShop("suspend", func(s *rayv1.RayService) { s.Spec.Suspend = true })
	resume := editShop("resume", func(s *rayv1.RayService) { s.Spec.Suspend = false })
	never := func(s *rayv1.RayService) {
		s.Spec.RayClusterConfig.HeadGroupSpec.Template.Spec.Containers[0].Env = missingSecret()
	}
	return []scenario{
		{name: "a service is suspended and resumed", anyTime: true, objects: shop(), changes: []change{suspend, resume}},
		{name: "a service is suspended during an upgrade, and resumed", objects: shop(), changes: []change{goal(2), suspend.during(deploys), resume}},
		{name: "a service is suspended and resumed at once", objects: shop(), changes: []change{suspend, resume.during(suspends)}},
		{name: "a service is deleted", anyTime: true, objects: shop(), changes: []change{deleteAll("RayService")}},
		{name: "a service is deleted during an upgrade", objects: shop(), changes: []change{goal(2), deleteAll("RayService").during(deploys)}},
		{name: "a service is deleted with its namespace", objects: shop(), changes: []change{{what: "the namespace is deleted", make: deleteNamespace}}},
		{name: "a service never starts", race: true, objects: shop(never, annotated(rayv1.AnnotationInitializingTimeout, "60")), stuck: true},
		{name: "a service never starts, and is resumed", calm: true, objects: shop(never, annotated(rayv1.AnnotationInitializingTimeout, "60")), stuck: true,
			changes: []change{suspend, changeShop("mend and resume", func(s *rayv1.RayService) {
				s.Spec.RayClusterConfig.HeadGroupSpec.Template.Spec.Containers[0].Env, s.Spec.Suspend = nil, false
			})}},
	}
}
