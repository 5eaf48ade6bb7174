package kubeapi

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestReadinessFollowsTheAPIServersAnswers(t *testing.T) {
	const ready = `{"metadata": {"name": "node-1"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}`
	const unknown = `{"metadata": {"name": "node-2"}, "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}`
	twoReady := func(ctx context.Context, c *Client) error { return c.NodesReady(ctx, 2) }
	address := func(ctx context.Context, c *Client) error { return c.NodeHasAddress(ctx, "node-1") }
	available := func(ctx context.Context, c *Client) error {
		return c.DeploymentAvailable(ctx, "kube-system", "coredns")
	}
	tests := map[string]struct {
		ask     func(context.Context, *Client) error
		path    string
		answer  string
		wantErr string
	}{
		"both nodes are ready": {ask: twoReady, path: "/api/v1/nodes", answer: `{"items": [` + ready + `,` + ready + `]}`},
		"one node has not registered": {
			ask: twoReady, path: "/api/v1/nodes", answer: `{"items": [` + ready + `]}`, wantErr: "1 of 2 nodes",
		},
		"one node is lost": {
			ask: twoReady, path: "/api/v1/nodes", answer: `{"items": [` + ready + `,` + unknown + `]}`, wantErr: "node-2 is not Ready",
		},
		"a node with an address": {
			ask: address, path: "/api/v1/nodes/node-1", answer: `{"status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]}}`,
		},
		"a node with a name only": {
			ask: address, path: "/api/v1/nodes/node-1", answer: `{"status": {"addresses": [{"type": "Hostname"}]}}`, wantErr: "no address",
		},
		"a node that is not there": {ask: address, path: "/elsewhere", wantErr: "404"},
		"a Deployment with all of its Pods": {
			ask: available, path: "/apis/apps/v1/namespaces/kube-system/deployments/coredns",
			answer: `{"spec": {"replicas": 1}, "status": {"availableReplicas": 1}}`,
		},
		"a Deployment that waits for a Pod": {
			ask: available, path: "/apis/apps/v1/namespaces/kube-system/deployments/coredns",
			answer: `{"spec": {"replicas": 2}, "status": {"availableReplicas": 1}}`, wantErr: "1 of 2 Pods",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			routes := http.NewServeMux()
			routes.HandleFunc(test.path, func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write([]byte(test.answer))
			})
			server := httptest.NewServer(routes)
			defer server.Close()
			err := test.ask(t.Context(), &Client{server: server.URL, http: server.Client()})
			if test.wantErr == "" && err != nil {
				t.Fatal(err)
			}
			if test.wantErr != "" && (err == nil || !strings.Contains(err.Error(), test.wantErr)) {
				t.Errorf("got error %v, want one that says %q", err, test.wantErr)
			}
		})
	}
}
