package diagnose

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// serveRules are about the applications of a RayService and the ways to them.
func serveRules() []objectRule {
	return []objectRule{
		{"serve-config-refused", Blocking, serveConfigRefused},
		{"serve-app-unhealthy", Blocking, serveAppUnhealthy},
		{"serve-start-timeout", Blocking, serveStartTimeout},
		{"serve-gateway", Blocking, serveGateway},
		{"upgrade-abandoned", Blocking, upgradeAbandoned},
		{"serve-app-starting", Passing, serveAppStarting},
		{"serve-no-endpoints", Passing, serveNoEndpoints},
		{"upgrade-waiting", Passing, upgradeWaiting},
	}
}

// serving is the RayService if it is meant to serve, or nil.
func (s *Snapshot) serving() *rayv1.RayService {
	if s.Service == nil || s.Service.Spec.Suspend || s.Service.DeletionTimestamp != nil || !serviceObject(s.Service).ours() {
		return nil
	}
	return s.Service
}

func serveConfigRefused(s *Snapshot) []Finding {
	service := s.serving()
	if service == nil {
		return nil
	}
	o := serviceObject(service)
	c := o.condition(rayv1.ConditionConfigApplied, metav1.ConditionFalse)
	if c == nil || c.Reason != rayv1.ReasonConfigInvalid && c.Reason != rayv1.ReasonConfigRefused {
		return nil
	}
	return []Finding{{Reason: c.Reason, Object: o.String(), Message: shortened(c.Message),
		Cause: fmt.Sprintf("Ray Serve does not take spec.serveConfigV2 of %s; the last good config goes on serving.", o),
		Next: fmt.Sprintf("Correct in spec.serveConfigV2 of %s what the message complains of and apply the "+
			"manifest again.", o)}}
}

func serveAppUnhealthy(s *Snapshot) []Finding {
	service := s.serving()
	if service == nil {
		return nil
	}
	var findings []Finding
	for _, part := range []rayv1.RayServiceStatus{service.Status.ActiveServiceStatus, service.Status.PendingServiceStatus} {
		for _, name := range slices.Sorted(maps.Keys(part.ApplicationStatuses)) {
			app := part.ApplicationStatuses[name]
			if app.Status != rayv1.AppStatusUnhealthy && app.Status != rayv1.AppStatusDeployFailed {
				continue
			}
			message := fmt.Sprintf("application %s on RayCluster %s is %s", name, part.RayClusterName, app.Status)
			if said := appSays(app); said != "" {
				message += ": " + said
			}
			findings = append(findings, Finding{Reason: "ApplicationNotHealthy", Object: "RayService " + service.Name, Message: message,
				Cause: fmt.Sprintf("Ray Serve cannot run application %s of RayService %s.", name, service.Name),
				Next: fmt.Sprintf("Read /tmp/ray/session_latest/logs/serve in the head Pod of RayCluster %s, and correct "+
					"import_path, runtime_env or the code of application %s in "+
					"spec.serveConfigV2 of RayService %s.", part.RayClusterName, name, service.Name)})
		}
	}
	return findings
}

// serveAppStarting is about applications that Serve goes on starting although something failed, or for a long time. Where their
// cluster is in trouble, that is the reason.
func serveAppStarting(s *Snapshot) []Finding {
	service := s.serving()
	if service == nil {
		return nil
	}
	unready := serviceObject(service).condition(rayv1.ConditionRayServiceReady, metav1.ConditionFalse)
	var findings []Finding
	for _, part := range []rayv1.RayServiceStatus{service.Status.ActiveServiceStatus, service.Status.PendingServiceStatus} {
		cluster := s.cluster(part.RayClusterName)
		if cluster == nil || s.clusterTroubled(cluster) {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(part.ApplicationStatuses)) {
			app := part.ApplicationStatuses[name]
			if app.Status != rayv1.AppStatusDeploying {
				continue
			}
			said := appSays(app)
			long := unready != nil && !s.youngerThan(unready.LastTransitionTime, waitingLong)
			if long || tellsOfFailure(said) {
				findings = append(findings, startingApp(service.Name, cluster.Name, name, said))
			}
		}
	}
	return findings
}

func startingApp(service, cluster, app, said string) Finding {
	next := fmt.Sprintf("Read /tmp/ray/session_latest/logs/serve in the head Pod of RayCluster %s; Serve goes on trying.", cluster)
	if aboutRuntimeEnv(said) {
		next = fmt.Sprintf("Correct runtime_env of application %s in spec.serveConfigV2 of RayService %s; packages and URLs must be reachable "+
			"from the Pods. Ray tries an environment that failed again after ten minutes, or after as many seconds as "+
			"BAD_RUNTIME_ENV_CACHE_TTL_SECONDS says in the environment of the Ray containers.", app, service)
	}
	message := fmt.Sprintf("application %s on RayCluster %s is %s", app, cluster, rayv1.AppStatusDeploying)
	if said != "" {
		message += ": " + said
	}
	return Finding{Reason: "ApplicationStarting", Object: "RayService " + service, Message: message,
		Cause: fmt.Sprintf("Ray Serve has not been able to start application %s of RayService %s so far.", app, service), Next: next}
}

// tellsOfFailure tells whether Serve, which also says what it only waits for, speaks of an error.
func tellsOfFailure(said string) bool {
	said = strings.ToLower(said)
	return slices.ContainsFunc([]string{"exception", "failed", "error"}, func(word string) bool { return strings.Contains(said, word) })
}

func aboutRuntimeEnv(said string) bool {
	said = strings.ToLower(said)
	return strings.Contains(said, "runtime environment") || strings.Contains(said, "runtime env") || strings.Contains(said, "runtime_env")
}

// appSays is what Serve says about an application, else about the first of its deployments that is not healthy.
func appSays(app rayv1.AppStatus) string {
	if app.Message != "" {
		return shortened(app.Message)
	}
	for _, name := range slices.Sorted(maps.Keys(app.ServeDeploymentStatuses)) {
		if d := app.ServeDeploymentStatuses[name]; d.Status != rayv1.DeploymentStatusHealthy && d.Message != "" {
			return fmt.Sprintf("deployment %s: %s", name, shortened(d.Message))
		}
	}
	return ""
}

func serveStartTimeout(s *Snapshot) []Finding {
	service := s.serving()
	if service == nil {
		return nil
	}
	o := serviceObject(service)
	c := o.condition(rayv1.ConditionRayServiceReady, metav1.ConditionFalse)
	if c == nil || c.Reason != rayv1.ReasonInitializingTimeout {
		return nil
	}
	return []Finding{{Reason: c.Reason, Object: o.String(), Message: cmp.Or(shortened(c.Message), "it did not serve in time"),
		Cause: fmt.Sprintf("%s did not serve within the time in its annotation %s and was given up "+
			"for good.", o, rayv1.AnnotationInitializingTimeout),
		Next: fmt.Sprintf("Find out what it waited for, then create %s anew, with a longer time in the "+
			"annotation %s.", o, rayv1.AnnotationInitializingTimeout)}}
}

func serveGateway(s *Snapshot) []Finding {
	service := s.serving()
	if service == nil {
		return nil
	}
	o := serviceObject(service)
	c := o.condition(rayv1.ConditionStalled, metav1.ConditionTrue)
	if c == nil || !slices.Contains([]string{rayv1.ReasonGatewayAPIMissing, rayv1.ReasonGatewayNotReady, rayv1.ReasonServiceMissing}, c.Reason) {
		return nil
	}
	next := fmt.Sprintf("Run \"kubectl describe gateway,httproute\" for those of %s and correct "+
		"spec.upgradeStrategy.clusterUpgradeOptions.gatewayClassName if no controller takes them.", o)
	switch c.Reason {
	case rayv1.ReasonGatewayAPIMissing:
		next = fmt.Sprintf("Install the Gateway API and a controller for it, or set spec.upgradeStrategy.type of %s to "+
			"NewCluster.", o)
	case rayv1.ReasonServiceMissing:
		next = fmt.Sprintf("Declare a port named serve (containerPort 8000) and one named dashboard (8265) on the first "+
			"container of spec.rayClusterConfig.headGroupSpec.template of %s.", o)
	}
	return []Finding{{Reason: c.Reason, Object: o.String(), Message: shortened(c.Message),
		Cause: fmt.Sprintf("The way by which traffic reaches the clusters of %s cannot be set up.", o), Next: next}}
}

// upgradeAbandoned holds until another goal is asked for, which takes the record away.
func upgradeAbandoned(s *Snapshot) []Finding {
	service := s.serving()
	if service == nil || service.Status.AbandonedUpgrade == nil {
		return nil
	}
	given := service.Status.AbandonedUpgrade
	return []Finding{{Reason: cmp.Or(given.Reason, rayv1.ReasonUpgradeTimeout), Object: "RayService " + service.Name,
		Message: cmp.Or(shortened(given.Message), "the upgrade was given up"),
		Cause: fmt.Sprintf("RayCluster %s, which was to take over for RayService %s, was not ready in time and was given "+
			"up; the old cluster goes on serving.", given.RayClusterName, service.Name),
		Next: fmt.Sprintf("Correct what the message names in spec.rayClusterConfig of RayService %s; a change of the spec "+
			"starts the next upgrade.", service.Name)}}
}

// serveNoEndpoints is silent where an application or a cluster is in trouble: then that is the reason. Without a word of
// the operator it goes by the EndpointSlices.
func serveNoEndpoints(s *Snapshot) []Finding {
	service := s.serving()
	if service == nil || len(serveAppUnhealthy(s)) > 0 {
		return nil
	}
	o := serviceObject(service)
	active := s.cluster(service.Status.ActiveServiceStatus.RayClusterName)
	apps := service.Status.ActiveServiceStatus.ApplicationStatuses
	if active == nil || s.clusterTroubled(active) || len(apps) == 0 || !allRun(apps) {
		return nil
	}
	c := o.condition(rayv1.ConditionRayServiceReady, metav1.ConditionFalse)
	lost := c != nil && c.Reason == rayv1.ReasonZeroServeEndpoints && !s.youngerThan(c.LastTransitionTime, settling)
	if !lost && !s.leadsNowhere(serveServiceName(service), active) {
		return nil
	}
	return []Finding{{Reason: rayv1.ReasonZeroServeEndpoints, Object: "Service " + serveServiceName(service),
		Message: "no Pod takes requests, although the applications run",
		Cause: fmt.Sprintf("No Pod of RayCluster %s has the label %s=true and is ready: the proxies of Ray Serve do not "+
			"answer /-/healthz.", active.Name, rayv1.LabelServe),
		Next: fmt.Sprintf("Run \"kubectl get pods -l %s=%s,%s=true\"; read /tmp/ray/session_latest/logs/serve/proxy*.log "+
			"in those that are not ready, and check that Serve listens on "+
			"the port named serve of the head.", rayv1.LabelCluster, active.Name, rayv1.LabelServe)}}
}

// leadsNowhere tells whether a Service has had no endpoint for long, although the head of its cluster has been ready for long.
func (s *Snapshot) leadsNowhere(name string, cluster *rayv1.RayCluster) bool {
	service, head := named(s.Services, name), s.head(cluster)
	if s.Slices == nil || service == nil || head == nil || s.youngerThan(service.CreationTimestamp, joining) {
		return false
	}
	return s.readyFor(head) >= joining && !s.hasEndpoint(service)
}

func allRun(apps map[string]rayv1.AppStatus) bool {
	for _, app := range apps {
		if app.Status != rayv1.AppStatusRunning {
			return false
		}
	}
	return true
}

func serveServiceName(service *rayv1.RayService) string {
	if custom := service.Spec.ServeService; custom != nil && custom.Name != "" {
		return custom.Name
	}
	return service.Name + "-serve-svc"
}

// upgradeWaiting is silent where the new cluster or its applications are in trouble.
func upgradeWaiting(s *Snapshot) []Finding {
	service := s.serving()
	if service == nil || len(serveAppUnhealthy(s))+len(serveAppStarting(s))+len(serveConfigRefused(s))+len(serveGateway(s)) > 0 {
		return nil
	}
	o := serviceObject(service)
	c := o.condition(rayv1.ConditionUpgradeInProgress, metav1.ConditionTrue)
	pending := s.cluster(service.Status.PendingServiceStatus.RayClusterName)
	if c == nil || s.youngerThan(c.LastTransitionTime, waitingLong) || pending == nil || s.clusterTroubled(pending) {
		return nil
	}
	message := cmp.Or(shortened(c.Message), pendingText(&service.Status.PendingServiceStatus))
	return []Finding{{Reason: rayv1.ReasonUpgrading, Object: o.String(), Message: message,
		Cause: fmt.Sprintf("RayCluster %s is to take over for %s and is not "+
			"ready to: %s.", pending.Name, o, strings.TrimSuffix(message, ".")),
		Next: fmt.Sprintf("See what RayCluster %s waits for with \"kubectl ray diagnose raycluster %s\"; the old cluster "+
			"goes on serving meanwhile.", pending.Name, pending.Name)}}
}

// pendingText is what a new cluster lacks, as far as the status tells.
func pendingText(pending *rayv1.RayServiceStatus) string {
	for _, name := range slices.Sorted(maps.Keys(pending.ApplicationStatuses)) {
		if app := pending.ApplicationStatuses[name]; app.Status != rayv1.AppStatusRunning {
			return fmt.Sprintf("application %s is %s", name, cmp.Or(app.Status, rayv1.AppStatusNotStarted))
		}
	}
	return "the new cluster is not ready"
}
