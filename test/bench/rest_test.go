package bench

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/apiserver"
	"github.com/heliostat-io/heliostat/test/harness"
)

const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

// entry is what a line of the audit log tells.
type entry struct {
	Verb       string `json:"verb"`
	RequestURI string `json:"requestURI"`
	UserAgent  string `json:"userAgent"`
	User       struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		Resource string `json:"resource"`
	} `json:"objectRef"`
}

// writes tells whether the entry is a write of someone else than the API server itself, Leases left out: the leader
// renews its Lease however much there is to do.
func (e entry) writes() bool {
	return !slices.Contains([]string{"get", "list", "watch"}, e.Verb) && e.ObjectRef.Resource != "leases" &&
		e.User.Username != "system:apiserver"
}

// TestNothingIsWrittenAtRest given many ready clusters, when nothing happens for a while, then the API server's audit
// log has no write.
func TestNothingIsWrittenAtRest(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	policy, log := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
	g.Expect(os.WriteFile(policy, []byte(auditPolicy), 0o600)).To(Succeed())
	c := harness.ConnectTo(t, apiserver.New(t, "--audit-policy-file="+policy, "--audit-log-path="+log))
	ns := c.NewNamespace(t)
	operator := c.Run(t, ns)
	for i := range *clusters {
		g.Expect(c.Create(t.Context(), harness.NewCluster(ns, fmt.Sprintf("demo-%d", i)))).To(Succeed())
	}
	g.Eventually(func() int {
		c.Kubelet(t, ns)
		list := &rayv1.RayClusterList{}
		g.Expect(c.List(t.Context(), list, client.InNamespace(ns))).To(Succeed())
		return len(slices.DeleteFunc(list.Items, func(cluster rayv1.RayCluster) bool {
			return cluster.Status.State != rayv1.ClusterStateReady
		}))
	}, 10*time.Minute, time.Second).Should(Equal(*clusters))
	operator.Settle(t)
	before := len(read(t, log))
	g.Expect(before).To(BeNumerically(">", 5**clusters), "the audit log does not show what was done so far")

	time.Sleep(*restFor)

	var written []string
	for _, entry := range read(t, log)[before:] {
		if entry.writes() {
			written = append(written, fmt.Sprintf("%s %s by %s (%s)", entry.Verb, entry.RequestURI, entry.User.Username, entry.UserAgent))
		}
	}
	g.Expect(written).To(BeEmpty(), "%d clusters at rest for %s", *clusters, *restFor)
	t.Logf("%d clusters at rest for %s: no write", *clusters, *restFor)
}

// read returns the entries of an audit log.
func read(t *testing.T, log string) []entry {
	t.Helper()
	file, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var entries []entry
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadString('\n')
		if err != nil { // the last line may still be written
			return entries
		}
		var e entry
		if err := json.Unmarshal([]byte(strings.TrimSpace(line)), &e); err != nil {
			t.Fatalf("read the audit log: %v", err)
		}
		entries = append(entries, e)
	}
}
