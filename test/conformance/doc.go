// Package conformance compares what this project ships with what users of the ray.io/v1 API rely on: the structure of
// the CRDs, the sample manifests, and the answers to bad input.
package conformance
