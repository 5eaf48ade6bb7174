package conformance

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// badInput is one thing that is wrong with an otherwise right object, and part of what the user is told.
type badInput struct {
	kind, path, value string
	// want are texts that the refusal contains: the field, the value and the rule.
	want []string
}

// badClusters are wrong RayClusters. Those under spec are wrong RayJobs, RayServices and RayCronJobs as well, since the
// schema of the cluster is the same there.
func badClusters() map[string]badInput {
	const (
		kind   = rayv1.KindRayCluster
		head   = "spec.headGroupSpec.template"
		worker = "spec.workerGroupSpecs.0"
	)
	oneContainer := "template: {spec: {containers: [{name: a, image: b}]}}"
	return map[string]badInput{
		"a head without containers": {kind, head + ".spec.containers", "[]", []string{
			"spec.headGroupSpec.template", "must hold at least one container",
		}},
		"a head whose containers are not given": {kind, head + ".spec", "{restartPolicy: Never}", []string{"spec.headGroupSpec.template.spec.containers", "Required value"}},
		"a head with an empty template":         {kind, head, "{}", []string{"spec.headGroupSpec.template", "must hold at least one container"}},
		"a worker without containers":           {kind, worker + ".template.spec.containers", "[]", []string{"spec.workerGroupSpecs[0].template", "must hold at least one container"}},
		"a quantity that is none": {kind, head + ".spec.containers.0.resources", "{limits: {cpu: 4 cores}}", []string{
			"spec.headGroupSpec.template.spec.containers[0].resources.limits.cpu", `"4 cores"`,
		}},
		"a negative minimum":        {kind, worker + ".minReplicas", "-1", []string{"spec.workerGroupSpecs[0].minReplicas", "-1", "greater than or equal to 0"}},
		"a negative maximum":        {kind, worker + ".maxReplicas", "-3", []string{"spec.workerGroupSpecs[0].maxReplicas", "-3", "greater than or equal to 0"}},
		"no host in a replica":      {kind, worker + ".numOfHosts", "0", []string{"spec.workerGroupSpecs[0].numOfHosts", "greater than or equal to 1"}},
		"fewer than no hosts":       {kind, worker + ".numOfHosts", "-1", []string{"spec.workerGroupSpecs[0].numOfHosts", "-1", "greater than or equal to 1"}},
		"a minimum above a maximum": {kind, worker, "{groupName: a, minReplicas: 5, maxReplicas: 2, " + oneContainer + "}", []string{"spec.workerGroupSpecs[0]", "minReplicas is 5 and must not be greater than maxReplicas, which is 2"}},
		"a count that is no number": {kind, worker + ".replicas", "two", []string{"spec.workerGroupSpecs[0].replicas", "integer"}},
		"an unknown field":          {kind, "spec.headGroupSpec.rayStartParam", "{}", []string{`unknown field "spec.headGroupSpec.rayStartParam"`}},
		"an unknown field of a Pod": {kind, head + ".spec.restartpolicy", "Never", []string{`unknown field "spec.headGroupSpec.template.spec.restartpolicy"`}},
		"start parameters of the wrong type": {kind, "spec.headGroupSpec.rayStartParams", "{num-cpus: 2}", []string{
			"spec.headGroupSpec.rayStartParams.num-cpus", "string",
		}},
		"two groups of one name": {kind, "spec.workerGroupSpecs", "[{groupName: a, " + oneContainer + "}, {groupName: a, " + oneContainer + "}]", []string{
			"spec.workerGroupSpecs", `every groupName must be different from those of the other groups, and is not: ["a", "a"]`,
		}},
		"a group named as the head's": {kind, worker + ".groupName", "headgroup", []string{"spec.workerGroupSpecs[0].groupName", "headgroup", "name of the head's own group"}},
		"a group with an empty name":  {kind, worker + ".groupName", `""`, []string{"spec.workerGroupSpecs[0].groupName", "at least 1 char"}},
		"a group without a name":      {kind, worker + ".groupName", "-", []string{"spec.workerGroupSpecs[0].groupName", "Required value"}},
		"a group with a space":        {kind, worker + ".groupName", "my group", []string{"spec.workerGroupSpecs[0].groupName", "my group"}},
		"no head":                     {kind, "spec.headGroupSpec", "-", []string{"spec.headGroupSpec", "Required value"}},
		"no spec":                     {kind, "spec", "-", []string{"spec must be given"}},
		"a controller that is unknown": {kind, "spec.managedBy", "me", []string{
			"spec.managedBy", "managedBy is me and must be ray.io/kuberay-operator or kueue.x-k8s.io/multikueue",
		}},
		"an unknown pace of scaling": {kind, "spec.autoscalerOptions", "{upscalingMode: Fast}", []string{"spec.autoscalerOptions.upscalingMode", `"Fast"`, `"Conservative"`}},
		"a negative idle time":       {kind, "spec.autoscalerOptions", "{idleTimeoutSeconds: -1}", []string{"spec.autoscalerOptions.idleTimeoutSeconds", "-1"}},
		"a name of 54 characters": {kind, "metadata.name", strings.Repeat("a", 54), []string{
			"metadata.name " + strings.Repeat("a", 54) + " has 54 characters; a RayCluster may have at most 53",
		}},
		"a name that starts with a digit": {kind, "metadata.name", "2nd", []string{"metadata.name 2nd must consist of lower-case letters, digits and -, start with a letter"}},
		"a name with a dot":               {kind, "metadata.name", "a.b", []string{"metadata.name a.b must consist of lower-case letters"}},
	}
}

func badOthers() map[string]badInput {
	const job, service, cron = rayv1.KindRayJob, rayv1.KindRayService, rayv1.KindRayCronJob
	rules := "spec.deletionStrategy"
	strategy, options := "spec.upgradeStrategy", "spec.upgradeStrategy.clusterUpgradeOptions"
	return map[string]badInput{
		"a job's name of 48 characters": {job, "metadata.name", strings.Repeat("a", 48), []string{"has 48 characters; a RayJob may have at most 47"}},
		"a job without a cluster":       {job, "spec.rayClusterSpec", "-", []string{"spec", "give rayClusterSpec to have a cluster made for the job, or clusterSelector"}},
		"a job whose head has no containers": {job, "spec.rayClusterSpec.headGroupSpec.template.spec.containers", "[]", []string{
			"spec.rayClusterSpec.headGroupSpec.template", "must hold at least one container",
		}},
		"a way of submitting that is unknown": {job, "spec.submissionMode", "Foo", []string{"spec.submissionMode", `"Foo"`, `"SidecarMode"`}},
		"a negative number of retries":        {job, "spec.backoffLimit", "-1", []string{"spec.backoffLimit", "-1"}},
		"a negative delay":                    {job, "spec.ttlSecondsAfterFinished", "-1", []string{"spec.ttlSecondsAfterFinished", "-1"}},
		"a deadline of no seconds":            {job, "spec.activeDeadlineSeconds", "0", []string{"spec.activeDeadlineSeconds", "greater than or equal to 1"}},
		"an early deadline of no seconds":     {job, "spec.preRunningDeadlineSeconds", "0", []string{"spec.preRunningDeadlineSeconds", "greater than or equal to 1"}},
		"a strategy of both styles": {
			job, rules, "{onSuccess: {policy: DeleteNone}, deletionRules: [{policy: DeleteSelf, condition: {jobStatus: FAILED}}]}",
			[]string{rules, "deletionRules cannot be combined with onSuccess or onFailure"},
		},
		"half a strategy": {job, rules, "{onSuccess: {policy: DeleteNone}}", []string{rules, "give deletionRules, or both onSuccess and onFailure"}},
		"a rule for two outcomes": {
			job, rules, "{deletionRules: [{policy: DeleteSelf, condition: {jobStatus: FAILED, jobDeploymentStatus: Failed}}]}",
			[]string{rules + ".deletionRules[0].condition", "give jobStatus or jobDeploymentStatus, not both"},
		},
		"a rule for no outcome": {
			job, rules, "{deletionRules: [{policy: DeleteSelf, condition: {ttlSeconds: 1}}]}",
			[]string{rules + ".deletionRules[0].condition", "give one of jobStatus and jobDeploymentStatus"},
		},
		"a service's name of 48 characters": {service, "metadata.name", strings.Repeat("a", 48), []string{"has 48 characters; a RayService may have at most 47"}},
		"a service without a cluster":       {service, "spec", "{}", []string{"spec.rayClusterConfig", "Required value"}},
		"a negative delay of a service":     {service, "spec.rayClusterDeletionDelaySeconds", "-1", []string{"spec.rayClusterDeletionDelaySeconds", "-1"}},
		"a surge of nothing":                {service, strategy, stepByStep(0, 1, 1, "a"), []string{options + ".maxSurgePercent", "maxSurgePercent is 0 and must be from 1 to 100"}},
		"a surge beyond everything":         {service, strategy, stepByStep(101, 1, 1, "a"), []string{options + ".maxSurgePercent", "maxSurgePercent is 101 and must be"}},
		"a step of nothing":                 {service, strategy, stepByStep(50, 0, 1, "a"), []string{options + ".stepSizePercent", "stepSizePercent is 0 and must be from 1"}},
		"a step larger than the surge": {
			service, strategy, stepByStep(50, 51, 1, "a"),
			[]string{options + ".stepSizePercent", "stepSizePercent is 51 and must be from 1 to maxSurgePercent, which is 50"},
		},
		"no time between steps":     {service, strategy, stepByStep(50, 25, 0, "a"), []string{options + ".intervalSeconds", "intervalSeconds is 0 and must be 1 or more"}},
		"a Gateway without a class": {service, strategy, stepByStep(50, 25, 1, `""`), []string{options + ".gatewayClassName", "must name a GatewayClass"}},
		"a schedule's name of 37 characters": {cron, "metadata.name", strings.Repeat("a", 37), []string{
			"has 37 characters; a RayCronJob may have at most 36",
		}},
		"no schedule":                   {cron, "spec.schedule", "-", []string{"spec.schedule", "Required value"}},
		"a time zone without a name":    {cron, "spec.timeZone", `""`, []string{"spec.timeZone", "at least 1 char"}},
		"a template without a cluster":  {cron, "spec.jobTemplate", "{entrypoint: a}", []string{"spec.jobTemplate", "give rayClusterSpec"}},
		"a template's mode is unknown":  {cron, "spec.jobTemplate.submissionMode", "Foo", []string{"spec.jobTemplate.submissionMode", `"Foo"`}},
		"a template's unknown manager":  {cron, "spec.jobTemplate.managedBy", "me", []string{"spec.jobTemplate.managedBy", "managedBy is me"}},
		"an unknown policy":             {cron, "spec.concurrencyPolicy", "Never", []string{"spec.concurrencyPolicy", `"Never"`, `"Replace"`}},
		"a deadline in the past":        {cron, "spec.startingDeadlineSeconds", "0", []string{"spec.startingDeadlineSeconds", "greater than or equal to 1"}},
		"a negative history":            {cron, "spec.failedJobsHistoryLimit", "-1", []string{"spec.failedJobsHistoryLimit", "-1"}},
		"a template with a wrong field": {cron, "spec.jobTemplate.spec", "{}", []string{`unknown field "spec.jobTemplate.spec"`}},
	}
}

// stepByStep is an upgrade strategy with these options.
func stepByStep(surge, step, interval int, class string) string {
	return fmt.Sprintf("{type: NewClusterWithIncrementalUpgrade, clusterUpgradeOptions: {maxSurgePercent: %d, stepSizePercent: %d, intervalSeconds: %d, gatewayClassName: %s}}",
		surge, step, interval, class)
}

// Given an object with one mistake, when it is created, then the API server refuses it and the text names the field,
// the value and the rule.
func (c *cluster) refusesBadInput(t *testing.T) {
	namespace := c.newNamespace(t)
	for _, table := range []map[string]badInput{badClusters(), badOthers()} {
		for name, input := range table {
			t.Run(name, func(t *testing.T) {
				object := build(t, input.kind, input.path, input.value)
				_, err := c.create(t.Context(), object, namespace)
				if err == nil {
					t.Fatalf("the object was taken")
				}
				if !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
					t.Fatalf("refused with an unexpected kind of error: %v", err)
				}
				for _, want := range input.want {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("the refusal does not say %q:\n%v", want, err)
					}
				}
			})
		}
	}
}

// Given input that is unusual and works, when it is created, then it is taken: our rules refuse only what never ran.
func (c *cluster) takesUnusualInput(t *testing.T) {
	tests := map[string]struct{ kind, path, value string }{
		"the smallest RayCluster":                {rayv1.KindRayCluster, "", ""},
		"the smallest RayJob":                    {rayv1.KindRayJob, "", ""},
		"the smallest RayService":                {rayv1.KindRayService, "", ""},
		"the smallest RayCronJob":                {rayv1.KindRayCronJob, "", ""},
		"a name of 53 characters":                {rayv1.KindRayCluster, "metadata.name", strings.Repeat("a", 53)},
		"a job's name of 47 characters":          {rayv1.KindRayJob, "metadata.name", strings.Repeat("a", 47)},
		"a service's name of 47 characters":      {rayv1.KindRayService, "metadata.name", strings.Repeat("a", 47)},
		"a schedule's name of 36 characters":     {rayv1.KindRayCronJob, "metadata.name", strings.Repeat("a", 36)},
		"a desired count below zero":             {rayv1.KindRayCluster, "spec.workerGroupSpecs.0.replicas", "-1"},
		"a desired count above the maximum":      {rayv1.KindRayCluster, "spec.workerGroupSpecs.0", "{groupName: a, replicas: 9, maxReplicas: 2, template: {spec: {containers: [{name: a}]}}}"},
		"start parameters that are null":         {rayv1.KindRayCluster, "spec.headGroupSpec.rayStartParams", "null"},
		"bounds that are null":                   {rayv1.KindRayCluster, "spec.workerGroupSpecs.0.minReplicas", "null"},
		"no worker groups":                       {rayv1.KindRayCluster, "spec.workerGroupSpecs", "[]"},
		"a group named with capitals and dots":   {rayv1.KindRayCluster, "spec.workerGroupSpecs.0.groupName", "GPU_Group.A100"},
		"logical resources that are no quantity": {rayv1.KindRayCluster, "spec.headGroupSpec.resources", "{CPU: many}"},
		"a job on an existing cluster":           {rayv1.KindRayJob, "spec", "{entrypoint: a, clusterSelector: {ray.io/cluster: demo}}"},
		"a job without an entry point":           {rayv1.KindRayJob, "spec.entrypoint", "-"},
		"an upgrade type of the future":          {rayv1.KindRayService, "spec.upgradeStrategy", "{type: SomethingNew}"},
		"a traffic that moves step by step": {
			rayv1.KindRayService, "spec.upgradeStrategy",
			"{type: NewClusterWithIncrementalUpgrade, clusterUpgradeOptions: {stepSizePercent: 100, intervalSeconds: 1, gatewayClassName: a}}",
		},
		"options that another type does not use":  {rayv1.KindRayService, "spec.upgradeStrategy", strings.Replace(stepByStep(0, 0, 0, `""`), "WithIncrementalUpgrade", "", 1)},
		"a managing controller that is the usual": {rayv1.KindRayCluster, "spec.managedBy", rayv1.ManagedByOperator},
		"200 groups":  {rayv1.KindRayCluster, "spec.workerGroupSpecs", manyGroups(200)},
		"1000 groups": {rayv1.KindRayCluster, "spec.workerGroupSpecs", manyGroups(1000)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := c.create(t.Context(), build(t, test.kind, test.path, test.value), c.newNamespace(t)); err != nil {
				t.Errorf("refused: %v", err)
			}
		})
	}
}

// manyGroups returns a list of worker groups whose names are as long as a name can be, which is the worst case for the
// rule that compares them.
func manyGroups(count int) string {
	var groups []string
	for i := range count {
		name := fmt.Sprintf("g%04d", i) + strings.Repeat("x", 58)
		groups = append(groups, fmt.Sprintf("{groupName: %s, template: {spec: {containers: [{name: a}]}}}", name))
	}
	return "[" + strings.Join(groups, ", ") + "]"
}
