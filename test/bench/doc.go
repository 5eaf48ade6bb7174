// Package bench measures the operator against its budgets, on a real API server without nodes: requests for one
// cluster, silence at rest, and fairness between a large cluster and small ones. `go test ./...` runs it with small
// numbers, `make bench` with those of the promises.
package bench
