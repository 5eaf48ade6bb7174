package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// environment reads variables and collects what could not be used.
type environment struct {
	getenv   func(string) string
	warnings []string
}

// parseEnvironment reads every variable of the operator. KubeRay never refuses to start because of a variable, so a
// value that cannot be used is replaced by the default, but not silently: the second result says so.
//
// deleteRayJob is what the configuration file says; the variable wins where it is set, as it always counted in KubeRay.
func parseEnvironment(getenv func(string) string, deleteRayJob bool) (Environment, []string) {
	e := &environment{getenv: getenv}
	domain := getenv("CLUSTER_DOMAIN")
	if domain == "" {
		domain = "cluster.local"
	}
	const (
		defaultSeconds = 300
		positive       = 1
	)
	result := Environment{
		ClusterDomain:            domain,
		InjectInitContainer:      e.flag("ENABLE_INIT_CONTAINER_INJECTION", true),
		InjectProbes:             e.flag("ENABLE_PROBES_INJECTION", true),
		LoginShell:               e.flag("ENABLE_LOGIN_SHELL", false),
		GCSFTRedisCleanup:        e.flag("ENABLE_GCS_FT_REDIS_CLEANUP", true),
		ZeroDowntime:             e.flag("ENABLE_ZERO_DOWNTIME", true),
		RandomPodDelete:          e.flag("ENABLE_RANDOM_POD_DELETE", false),
		HeadClusterIPService:     e.flag("ENABLE_RAY_HEAD_CLUSTER_IP_SERVICE", false),
		DeterministicHeadPodName: e.flag("ENABLE_DETERMINISTIC_HEAD_POD_NAME", false),
		IngressOnOpenShift:       e.flag("USE_INGRESS_ON_OPENSHIFT", false),
		DeleteRayJobAfterFinish:  e.flag("DELETE_RAYJOB_CR_AFTER_JOB_FINISHES", deleteRayJob),
		RayClusterResync:         e.seconds("RAYCLUSTER_DEFAULT_REQUEUE_SECONDS_ENV", defaultSeconds, anySeconds),
		RayJobTransitionGrace: e.seconds("RAYJOB_DEPLOYMENT_STATUS_TRANSITION_GRACE_PERIOD_SECONDS",
			defaultSeconds, anySeconds),
		RayJobStatusCheckTimeout: e.seconds("RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS", defaultSeconds, positive),
	}
	if getenv("ENABLE_WEBHOOKS") == "true" {
		e.warnings = append(e.warnings,
			"environment variable ENABLE_WEBHOOKS has no effect: rules in the CRDs take the place of webhooks")
	}
	return result, e.warnings
}

// flag reads an on/off variable: only the word for the opposite of the default, in any case, changes it.
func (e *environment) flag(name string, byDefault bool) bool {
	value := e.getenv(name)
	switch strings.ToLower(value) {
	case "":
		return byDefault
	case "true":
		return true
	case "false":
		return false
	}
	e.warn(name, value, "true or false", strconv.FormatBool(byDefault))
	return byDefault
}

// anySeconds as a minimum means that zero and negative numbers are taken as they are.
const anySeconds = -1 << 31

// seconds reads a whole number of seconds. Numbers below the minimum count as unusable.
func (e *environment) seconds(name string, byDefault, minimum int) time.Duration {
	value := e.getenv(name)
	if value == "" {
		return time.Duration(byDefault) * time.Second
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < minimum {
		rule := "a whole number of seconds"
		if minimum > 0 {
			rule = "a positive whole number of seconds"
		}
		e.warn(name, value, rule, strconv.Itoa(byDefault))
		return time.Duration(byDefault) * time.Second
	}
	return time.Duration(n) * time.Second
}

func (e *environment) warn(name, value, rule, used string) {
	e.warnings = append(e.warnings,
		fmt.Sprintf("environment variable %s: %q is not %s; %s is used instead", name, value, rule, used))
}
