package rayservice

import (
	"errors"
	"fmt"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/raycluster"
)

// maxNameLength leaves room for the endings of derived names.
const maxNameLength = 47

// Validate checks what the schema cannot, apart from serveConfigV2, and returns all that is wrong, or nil. Each message
// names the field, its value and the rule.
func Validate(service *rayv1.RayService, settings Settings) error {
	v := &validator{service: service, spec: &service.Spec, path: field.NewPath("spec")}
	v.metadata()
	v.cluster(settings)
	v.upgradeStrategy()
	if delay := ptr.Deref(v.spec.RayClusterDeletionDelaySeconds, 0); delay < 0 {
		v.invalid(v.path.Child("rayClusterDeletionDelaySeconds"), delay, "must not be negative")
	}
	return v.errs.ToAggregate()
}

type validator struct {
	service *rayv1.RayService
	spec    *rayv1.RayServiceSpec
	path    *field.Path
	errs    field.ErrorList
}

func (v *validator) invalid(path *field.Path, value any, rule string) {
	v.errs = append(v.errs, field.Invalid(path, value, rule))
}

func (v *validator) metadata() {
	metadata := field.NewPath("metadata")
	name := v.service.Name
	if len(name) > maxNameLength {
		v.invalid(metadata.Child("name"), name, fmt.Sprintf("has %d characters; a RayService may have at most %d", len(name), maxNameLength))
	}
	for _, rule := range validation.IsDNS1035Label(name) {
		v.invalid(metadata.Child("name"), name, rule)
	}
	annotations := metadata.Child("annotations")
	for _, key := range []string{rayv1.AnnotationInitializingTimeout, rayv1.AnnotationUpgradeTimeout} {
		if _, err := timeout(v.service.Annotations[key]); err != nil {
			v.invalid(annotations.Key(key), v.service.Annotations[key], err.Error())
		}
	}
	if _, err := drainTimeout(v.service); err != nil {
		v.invalid(annotations.Key(rayv1.AnnotationDrainTimeout), v.service.Annotations[rayv1.AnnotationDrainTimeout], err.Error())
	}
}

func (v *validator) cluster(settings Settings) {
	path := v.path.Child("rayClusterConfig")
	if custom := v.spec.RayClusterConfig.HeadGroupSpec.HeadService; custom != nil && custom.Name != "" {
		v.invalid(path.Child("headGroupSpec", "headService", "metadata", "name"), custom.Name,
			"must be absent: two clusters of one RayService cannot have a Service of the same name")
	}
	// With the labels that it will carry: some rules look at them.
	cluster := rayCluster(v.service, v.service.Name+"-xxxxx", "", settings.Clusters.OperatorVersion)
	v.errs = append(v.errs, raycluster.ValidateSpec(cluster, path)...)
}

func (v *validator) upgradeStrategy() {
	strategy := v.spec.UpgradeStrategy
	if strategy == nil || ptr.Deref(strategy.Type, "") == "" {
		return
	}
	path := v.path.Child("upgradeStrategy")
	known := []rayv1.RayServiceUpgradeType{rayv1.RayServiceNewCluster, rayv1.RayServiceNewClusterWithIncrementalUpgrade, rayv1.RayServiceUpgradeNone}
	switch *strategy.Type {
	case rayv1.RayServiceNewCluster, rayv1.RayServiceUpgradeNone:
	case rayv1.RayServiceNewClusterWithIncrementalUpgrade:
		v.incremental(path)
	default:
		v.errs = append(v.errs, field.NotSupported(path.Child("type"), *strategy.Type, known))
	}
}

func (v *validator) incremental(path *field.Path) {
	if !ptr.Deref(v.spec.RayClusterConfig.EnableInTreeAutoscaling, false) {
		v.invalid(v.path.Child("rayClusterConfig", "enableInTreeAutoscaling"), false,
			"must be true with upgradeStrategy.type NewClusterWithIncrementalUpgrade: the new cluster grows with the traffic")
	}
	path = path.Child("clusterUpgradeOptions")
	options := v.spec.UpgradeStrategy.ClusterUpgradeOptions
	if options == nil {
		v.errs = append(v.errs, field.Required(path, "needed with type NewClusterWithIncrementalUpgrade"))
		return
	}
	surge := ptr.Deref(options.MaxSurgePercent, 100)
	if surge < 1 || surge > 100 {
		v.invalid(path.Child("maxSurgePercent"), surge, "must be from 1 to 100; with 0 the upgrade would never end")
	}
	switch step := options.StepSizePercent; {
	case step == nil:
		v.errs = append(v.errs, field.Required(path.Child("stepSizePercent"), "says how much traffic moves with each step"))
	case *step < 1 || *step > surge:
		v.invalid(path.Child("stepSizePercent"), *step, fmt.Sprintf("must be from 1 to maxSurgePercent, which is %d", surge))
	}
	switch interval := options.IntervalSeconds; {
	case interval == nil:
		v.errs = append(v.errs, field.Required(path.Child("intervalSeconds"), "says how long to wait between two steps"))
	case *interval < 1:
		v.invalid(path.Child("intervalSeconds"), *interval, "must be 1 or more")
	}
	if options.GatewayClassName == "" {
		v.errs = append(v.errs, field.Required(path.Child("gatewayClassName"), "names the GatewayClass of the Gateway"))
	}
}

// invalidReason is the reason of the event about what is wrong, in KubeRay's words.
func invalidReason(err error) string {
	var all utilerrors.Aggregate
	if errors.As(err, &all) {
		for _, one := range all.Errors() {
			var wrong *field.Error
			if errors.As(one, &wrong) && len(wrong.Field) >= len("metadata") && wrong.Field[:len("metadata")] == "metadata" {
				return "InvalidRayServiceMetadata"
			}
		}
	}
	return "InvalidRayServiceSpec"
}
