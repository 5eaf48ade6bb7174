// Package sim runs the real controllers against a model of Kubernetes in memory: an API server, a kubelet, the Job
// controller, the garbage collector and Ray. Everything is driven step by step in one goroutine, so a run follows from
// its inputs, and the operator can be killed between any two of its writes.
//
// The model is deliberately small; caches are always fresh. Stale caches and two leaders at once are added with the
// server-side fence.
package sim
