// Package integration runs the operator against a real etcd and kube-apiserver. There are no nodes: the tests set the
// status of Pods and Jobs themselves, and Ray dashboards are scripted.
package integration

import (
	"flag"
	"os"
	"testing"

	"github.com/heliostat-io/heliostat/test/harness"
)

func TestMain(m *testing.M) {
	flag.Parse()
	// What runs in parallel here waits most of the time, for minutes.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	os.Exit(harness.Main(m))
}
