package rayservice

import "slices"

// betterCases are the cases in which ours is better than KubeRay by design.
func betterCases() []Case {
	return slices.Concat(cutOverCases(), crashCases(), trustCases(), configTruthCases(), keepCases(), specCases(), ownServiceCases(), timeCases(),
		stepwiseCases())
}
