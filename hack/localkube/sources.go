// Package localkube carries the sources of the programs that a local cluster
// runs: kube, coredns and pause.
//
// The localkube command has them inside, so that it can build them wherever it
// stands, and so that the programs in the cache are always those that belong to
// the command that runs them.
package localkube

import "embed"

//go:embed go.mod go.sum cmd/kube/*.go cmd/coredns/*.go cmd/pause/*.go
var sources embed.FS

// Sources returns the module file and the main packages of the programs, as a
// module that `go build` takes.
func Sources() embed.FS {
	return sources
}
