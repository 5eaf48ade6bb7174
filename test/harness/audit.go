package harness

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	heliostatv1alpha1 "github.com/heliostat-io/heliostat/api/heliostat/v1alpha1"
)

// auditPolicy writes down every request once, when it has been answered.
const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: None
  verbs: [get, list, watch]
- level: Request
  resources: [{group: heliostat.io, resources: [holders]}]
- level: Metadata
`

// AuditLog is the audit log of an API server, or of several: what it was asked to change, by whom, and what it answered.
type AuditLog struct{ dir string }

// NewAuditLog returns an audit log and the flags by which a kube-apiserver writes it. Of several servers each has to put
// another word for NAME.
func NewAuditLog(t testing.TB) (AuditLog, []string) {
	t.Helper()
	dir := t.TempDir()
	policy := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	return AuditLog{dir: dir}, []string{"--audit-policy-file=" + policy, "--audit-log-path=" + filepath.Join(dir, "audit-NAME.log"), "--audit-log-mode=blocking"}
}

// Audited is one request in an audit log.
type Audited struct {
	Verb       string
	RequestURI string
	User       struct {
		Username string
		Extra    map[string][]string
	}
	ObjectRef struct {
		APIGroup, Resource, Subresource, Namespace, Name string
	}
	// RequestObject is what was sent, of Holders only.
	RequestObject  heliostatv1alpha1.Holder
	ResponseStatus struct {
		Code    int
		Message string
	}
	// Received is when the API server got the request, Answered when it had answered.
	Received time.Time `json:"requestReceivedTimestamp"`
	Answered time.Time `json:"stageTimestamp"`
}

// Pod is the UID of the Pod that the API server found in the token.
func (a Audited) Pod() string {
	if uids := a.User.Extra["authentication.kubernetes.io/pod-uid"]; len(uids) > 0 {
		return uids[0]
	}
	return ""
}

// Accepted tells whether the API server did what was asked.
func (a Audited) Accepted() bool { return a.ResponseStatus.Code < 300 }

// Refused tells whether the fence refused it, because its sender is not the holder.
func (a Audited) Refused() bool {
	return a.ResponseStatus.Code == 403 && strings.Contains(a.ResponseStatus.Message, "heliostat fence: only Pod")
}

// DryRun tells whether nothing was to be stored.
func (a Audited) DryRun() bool { return strings.Contains(a.RequestURI, "dryRun=All") }

// Resource is the plural of the kind, with the subresource after a slash.
func (a Audited) Resource() string {
	return strings.TrimSuffix(a.ObjectRef.Resource+"/"+a.ObjectRef.Subresource, "/")
}

// Fenced tells whether the request is one that the fence is for.
func (a Audited) Fenced() bool {
	return !slices.Contains([]string{"leases", "holders", "events", "selfsubjectreviews", "selfsubjectaccessreviews"}, a.Resource())
}

// Of returns the requests by which the account wanted to change something, in the order in which they came.
func (l AuditLog) Of(t testing.TB, account string) []Audited {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(l.dir, "audit-*.log"))
	if err != nil {
		t.Fatal(err)
	}
	var found []Audited
	for _, path := range logs {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(text) {
			var request Audited
			// The last line may be half written.
			if json.Unmarshal(line, &request) == nil && request.User.Username == account {
				found = append(found, request)
			}
		}
	}
	slices.SortFunc(found, func(a, b Audited) int { return a.Received.Compare(b.Received) })
	return found
}
