// Package integration runs the operator against a real etcd and kube-apiserver. There are no nodes: the tests set the
// status of Pods and Jobs themselves, and Ray dashboards are scripted.
package integration

import (
	"os"
	"testing"

	"github.com/heliostat-io/heliostat/test/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }
