package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Gate is the name of one piece of optional behaviour.
type Gate string

// The gates, with the names that KubeRay gave them.
const (
	// RayClusterStatusConditions writes conditions into the status of RayClusters. Beta, on.
	RayClusterStatusConditions Gate = "RayClusterStatusConditions"
	// RayJobDeletionPolicy allows rules for what is deleted when a job has ended. Beta, on.
	RayJobDeletionPolicy Gate = "RayJobDeletionPolicy"
	// RayMultiHostIndexing numbers the Pods of groups with several hosts per replica. Beta, on.
	RayMultiHostIndexing Gate = "RayMultiHostIndexing"
	// RayServiceIncrementalUpgrade moves the traffic of a RayService in steps through a Gateway. Beta, on.
	RayServiceIncrementalUpgrade Gate = "RayServiceIncrementalUpgrade"
	// RayCronJob serves the kind RayCronJob. Alpha, off.
	RayCronJob Gate = "RayCronJob"
	// SidecarSubmitterRestart restarts the submitter of a RayJob in SidecarMode. Alpha, off. It needs Kubernetes 1.35,
	// which can be told only when the API server is known.
	SidecarSubmitterRestart Gate = "SidecarSubmitterRestart"
	// RayClusterNetworkPolicy makes NetworkPolicies for RayClusters. Alpha, off.
	RayClusterNetworkPolicy Gate = "RayClusterNetworkPolicy"
	// GCSFaultToleranceEmbeddedStorage keeps GCS state on a volume instead of Redis. Alpha, off.
	GCSFaultToleranceEmbeddedStorage Gate = "GCSFaultToleranceEmbeddedStorage"
	// RayClusterMTLS encrypts the traffic inside a RayCluster with certificates of cert-manager. Alpha, off.
	RayClusterMTLS Gate = "RayClusterMTLS"
	// RayClusterHistoryServer collects what the history server shows. Alpha, off.
	RayClusterHistoryServer Gate = "RayClusterHistoryServer"
	// KubernetesWAS schedules gangs with Kubernetes' own Workload API. Alpha, off. It excludes batch schedulers.
	KubernetesWAS Gate = "KubernetesWAS"
)

// allAlpha and allBeta set every gate of their stage that is not named itself.
const (
	allAlpha = "AllAlpha"
	allBeta  = "AllBeta"
)

// FeatureGates says for every [Gate] whether it is on. It cannot be changed.
type FeatureGates struct {
	on map[Gate]bool
}

// MakeFeatureGates returns the defaults with the given exceptions. It is meant for tests and for embedding; the
// operator gets its gates from [Parse].
func MakeFeatureGates(exceptions map[Gate]bool) FeatureGates {
	on := map[Gate]bool{}
	for _, g := range allGates() {
		on[g] = slices.Contains(betaGates(), g)
	}
	maps.Copy(on, exceptions)
	return FeatureGates{on: on}
}

// Enabled tells whether a gate is on.
func (g FeatureGates) Enabled(gate Gate) bool { return g.on[gate] }

// String returns all gates in the form of the flag, sorted by name.
func (g FeatureGates) String() string {
	var parts []string
	for _, gate := range allGates() {
		parts = append(parts, string(gate)+"="+strconv.FormatBool(g.on[gate]))
	}
	return strings.Join(parts, ",")
}

func betaGates() []Gate {
	return []Gate{RayClusterStatusConditions, RayJobDeletionPolicy, RayMultiHostIndexing, RayServiceIncrementalUpgrade}
}

func alphaGates() []Gate {
	return append(unservedGates(), RayCronJob, GCSFaultToleranceEmbeddedStorage)
}

// unservedGates are the gates that can be switched on without any effect.
func unservedGates() []Gate {
	return []Gate{
		SidecarSubmitterRestart, RayClusterNetworkPolicy, RayClusterMTLS, RayClusterHistoryServer, KubernetesWAS,
	}
}

func allGates() []Gate {
	return slices.Sorted(slices.Values(slices.Concat(alphaGates(), betaGates())))
}

// describeGates returns one line for every gate, for the help text.
func describeGates() []string {
	defaults := MakeFeatureGates(nil)
	lines := []string{"AllAlpha=false", "AllBeta=true"}
	for _, g := range allGates() {
		stage := "alpha"
		if slices.Contains(betaGates(), g) {
			stage = "beta"
		}
		lines = append(lines, fmt.Sprintf("%s=%t (%s)", g, defaults.Enabled(g), stage))
	}
	return lines
}

// parseFeatureGates reads the value of --feature-gates. A gate that is named itself is never changed by AllAlpha or
// AllBeta, whatever their order; of two values for one name the last counts.
func parseFeatureGates(value string) (FeatureGates, error) {
	const flagName = "flag --feature-gates"
	named := map[string]bool{}
	for part := range strings.SplitSeq(value, ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		name, text, found := strings.Cut(part, "=")
		name, text = strings.TrimSpace(name), strings.TrimSpace(text)
		if !found {
			return FeatureGates{}, invalid(flagName, name, "must be Name=true or Name=false")
		}
		on, err := strconv.ParseBool(text)
		if err != nil {
			return FeatureGates{}, invalid(flagName, name+"="+text, "the value must be true or false")
		}
		if name != allAlpha && name != allBeta && !slices.Contains(allGates(), Gate(name)) {
			return FeatureGates{}, invalid(flagName, name, "unknown feature gate; known are "+knownGates())
		}
		named[name] = on
	}

	gates := MakeFeatureGates(nil)
	for stage, members := range map[string][]Gate{allAlpha: alphaGates(), allBeta: betaGates()} {
		on, found := named[stage]
		if !found {
			continue
		}
		for _, g := range members {
			gates.on[g] = on
		}
	}
	for _, g := range allGates() {
		if on, found := named[string(g)]; found {
			gates.on[g] = on
		}
	}
	return gates, nil
}

func knownGates() string {
	names := []string{allAlpha, allBeta}
	for _, g := range allGates() {
		names = append(names, string(g))
	}
	return strings.Join(names, ", ")
}
