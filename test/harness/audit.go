package harness

import (
	"bufio"
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

// AuditLog is the audit log of an API server: what it was asked to change, by whom, and what it answered.
type AuditLog struct{ path string }

// NewAuditLog returns an audit log and the flags by which a kube-apiserver writes it.
func NewAuditLog(t testing.TB) (AuditLog, []string) {
	t.Helper()
	dir := t.TempDir()
	policy := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	log := AuditLog{path: filepath.Join(dir, "audit.log")}
	return log, []string{"--audit-policy-file=" + policy, "--audit-log-path=" + log.path, "--audit-log-mode=blocking"}
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
	return !slices.Contains([]string{"leases", "holders", "events", "selfsubjectreviews"}, a.Resource())
}

// Of returns the requests by which the account wanted to change something, in the order in which they came.
func (l AuditLog) Of(t testing.TB, account string) []Audited {
	t.Helper()
	text, err := os.ReadFile(l.path)
	if err != nil {
		t.Fatal(err)
	}
	var found []Audited
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, len(text)+1)
	for lines.Scan() {
		var request Audited
		if err := json.Unmarshal(lines.Bytes(), &request); err != nil {
			// The last line may be half written.
			continue
		}
		if request.User.Username == account {
			found = append(found, request)
		}
	}
	slices.SortFunc(found, func(a, b Audited) int { return a.Received.Compare(b.Received) })
	return found
}
