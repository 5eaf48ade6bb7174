package rayjob

import "slices"

// betterCases are the cases in which ours is better than KubeRay by design.
func betterCases() []Case {
	return slices.Concat(truthCases(), lossCases(), specCases(), awkwardSpecCases(), collisionCases(), sidecarCases(), stopCases(),
		endCases(), idCases(), crowdCases())
}
