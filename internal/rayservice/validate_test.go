package rayservice

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// incrementally asks for a step by step take-over with good options, changed by an edit.
func incrementally(change func(*rayv1.ClusterUpgradeOptions)) func(*Snapshot) {
	return spec(func(s *rayv1.RayServiceSpec) {
		options := &rayv1.ClusterUpgradeOptions{MaxSurgePercent: ptr.To[int32](50), StepSizePercent: ptr.To[int32](25), IntervalSeconds: ptr.To[int32](5), GatewayClassName: "traefik"}
		if change != nil {
			change(options)
		}
		s.RayClusterConfig.EnableInTreeAutoscaling = ptr.To(true)
		s.UpgradeStrategy = &rayv1.RayServiceUpgradeStrategy{Type: ptr.To(rayv1.RayServiceNewClusterWithIncrementalUpgrade), ClusterUpgradeOptions: options}
	})
}

func named(name string) func(*Snapshot) { return func(s *Snapshot) { s.Service.Name = name } }

// TestValidate has every row of the table in spec/rayservice.md section 10, and ours.
func TestValidate(t *testing.T) {
	type options = rayv1.ClusterUpgradeOptions
	for name, c := range map[string]struct {
		given func(*Snapshot)
		// want are parts of the message: the field and the rule. None means that all is well.
		want []string
	}{
		"nothing is wrong":           {given: func(*Snapshot) {}},
		"the longest name":           {given: named(strings.Repeat("a", 47))},
		"a name that is too long":    {named(strings.Repeat("a", 48)), []string{"metadata.name", "48 characters", "at most 47"}},
		"a name with a dot":          {named("demo.one"), []string{"metadata.name", "demo.one"}},
		"a name that begins wrongly": {named("1demo"), []string{"metadata.name"}},
		"a duration":                 {given: annotated(rayv1.AnnotationInitializingTimeout, "10m")},
		"seconds":                    {given: annotated(rayv1.AnnotationInitializingTimeout, "600")},
		"no number":                  {annotated(rayv1.AnnotationInitializingTimeout, "abc"), []string{"metadata.annotations[ray.io/initializing-timeout]", "abc", "positive"}},
		"a negative number":          {annotated(rayv1.AnnotationInitializingTimeout, "-5"), []string{"initializing-timeout", "-5"}},
		"no time at all":             {annotated(rayv1.AnnotationInitializingTimeout, "0"), []string{"initializing-timeout"}},
		"a limit of upgrades":        {given: annotated(rayv1.AnnotationUpgradeTimeout, "1h")},
		"a wrong limit of upgrades":  {annotated(rayv1.AnnotationUpgradeTimeout, "soon"), []string{"heliostat.io/upgrade-timeout", "soon"}},
		"a limit of draining":        {given: annotated(rayv1.AnnotationDrainTimeout, "0")},
		"a wrong limit of draining":  {annotated(rayv1.AnnotationDrainTimeout, "1m"), []string{"heliostat.io/drain-timeout-seconds", "1m", "seconds"}},
		"a delay of nothing":         {given: delay(0)},
		"a negative delay":           {delay(-1), []string{"spec.rayClusterDeletionDelaySeconds", "negative"}},
		"a Service with a fixed name": {spec(func(s *rayv1.RayServiceSpec) {
			s.RayClusterConfig.HeadGroupSpec.HeadService = &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "head"}}
		}), []string{"spec.rayClusterConfig.headGroupSpec.headService.metadata.name", "absent"}},
		"a Service with labels": {given: spec(func(s *rayv1.RayServiceSpec) {
			s.RayClusterConfig.HeadGroupSpec.HeadService = &corev1.Service{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}}
		})},
		"a rule of RayClusters": {spec(func(s *rayv1.RayServiceSpec) {
			appendGroup(s)
			s.RayClusterConfig.WorkerGroupSpecs[1].GroupName = "small"
		}),
			[]string{"spec.rayClusterConfig.workerGroupSpecs[1]", "small"}},
		"a known strategy":    {given: strategy(rayv1.RayServiceUpgradeNone)},
		"an empty strategy":   {given: strategy("")},
		"an unknown strategy": {strategy("BlueGreen"), []string{"spec.upgradeStrategy.type", "BlueGreen", "NewCluster"}},
		"steps":               {given: incrementally(nil)},
		"steps without autoscaling": {func(s *Snapshot) {
			incrementally(nil)(s)
			s.Service.Spec.RayClusterConfig.EnableInTreeAutoscaling = nil
		}, []string{"spec.rayClusterConfig.enableInTreeAutoscaling", "true"}},
		"steps without options": {func(s *Snapshot) {
			incrementally(nil)(s)
			s.Service.Spec.UpgradeStrategy.ClusterUpgradeOptions = nil
		}, []string{"spec.upgradeStrategy.clusterUpgradeOptions"}},
		"steps without a surge":        {given: incrementally(func(o *options) { o.MaxSurgePercent = nil })},
		"steps with a surge of 0":      {incrementally(func(o *options) { o.MaxSurgePercent, o.StepSizePercent = ptr.To[int32](0), ptr.To[int32](0) }), []string{"maxSurgePercent", "1 to 100"}},
		"steps with a surge of 101":    {incrementally(func(o *options) { o.MaxSurgePercent = ptr.To[int32](101) }), []string{"maxSurgePercent", "101"}},
		"steps without a size":         {incrementally(func(o *options) { o.StepSizePercent = nil }), []string{"stepSizePercent"}},
		"steps of 0":                   {incrementally(func(o *options) { o.StepSizePercent = ptr.To[int32](0) }), []string{"stepSizePercent", "1 to maxSurgePercent"}},
		"steps larger than the surge":  {incrementally(func(o *options) { o.StepSizePercent = ptr.To[int32](51) }), []string{"stepSizePercent", "51", "which is 50"}},
		"steps without an interval":    {incrementally(func(o *options) { o.IntervalSeconds = nil }), []string{"intervalSeconds"}},
		"steps with an interval of 0":  {incrementally(func(o *options) { o.IntervalSeconds = ptr.To[int32](0) }), []string{"intervalSeconds", "1 or more"}},
		"steps without a GatewayClass": {incrementally(func(o *options) { o.GatewayClassName = "" }), []string{"gatewayClassName"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := given()
			c.given(&s)
			err := Validate(s.Service, settings())
			if (err == nil) != (c.want == nil) {
				t.Fatalf("error %v, want one with %q", err, c.want)
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q, want %q in it", err, part)
				}
			}
		})
	}
}

func TestTheEventOfAWrongSpecHasKubeRaysReason(t *testing.T) {
	for name, c := range map[string]struct {
		given Snapshot
		want  string
	}{
		"metadata": {given(annotated(rayv1.AnnotationInitializingTimeout, "abc")), "InvalidRayServiceMetadata"},
		"spec":     {given(delay(-1)), "InvalidRayServiceSpec"},
		"both":     {given(delay(-1), annotated(rayv1.AnnotationInitializingTimeout, "abc")), "InvalidRayServiceMetadata"},
	} {
		t.Run(name, func(t *testing.T) {
			decision := Plan(c.given, settings(), now)
			if len(decision.Events) != 1 || decision.Events[0].Reason != c.want || decision.Events[0].Type != "Warning" {
				t.Errorf("events %v, want one Warning %s", decision.Events, c.want)
			}
			if reason := conditionOf(statusOf(c.given, decision), rayv1.ConditionRayServiceReady).Reason; reason != rayv1.ReasonValidationFailed {
				t.Errorf("Ready has the reason %q", reason)
			}
			perform(&c.given, decision)
			if again := Plan(c.given, settings(), now); len(again.Events)+len(again.Actions) > 0 || again.Status != nil {
				t.Errorf("it is told again: %v", again.Events)
			}
		})
	}
}
