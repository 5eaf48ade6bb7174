package bench

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/heliostat-io/heliostat/test/harness"
)

var (
	restFor  = flag.Duration("rest", 15*time.Second, "how long nothing may be written")
	clusters = flag.Int("clusters", 20, "clusters that are ready and rest")
	workers  = flag.Int("workers", 200, "workers of the large cluster")
	taken    = flag.Int("taken", 200, "clusters that a new leader takes over")
	small    = flag.Int("small", 30, "small clusters beside the large one")
	jobs     = flag.Int("jobs", 100, "RayJobs on slow dashboards")
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }
