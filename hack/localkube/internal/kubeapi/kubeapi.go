// Package kubeapi reads from a Kubernetes API server. It is as small as it is so
// that the localkube command builds without the Kubernetes client libraries.
package kubeapi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Client asks one API server as its administrator.
type Client struct {
	server string
	http   *http.Client
}

// New returns a client of the server at the URL, with the certificates that
// package pki has written to the folder.
func New(server, pkiDir string) (*Client, error) {
	authority, err := os.ReadFile(filepath.Join(pkiDir, "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("reading the cluster's authority: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("no certificate in %s", filepath.Join(pkiDir, "ca.crt"))
	}
	admin, err := tls.LoadX509KeyPair(filepath.Join(pkiDir, "admin.crt"), filepath.Join(pkiDir, "admin.key"))
	if err != nil {
		return nil, fmt.Errorf("reading the administrator's certificate: %w", err)
	}
	return &Client{
		server: server,
		http: &http.Client{
			Timeout: 10 * time.Second,
			Transport: &http.Transport{
				TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{admin}, MinVersion: tls.VersionTLS12},
			},
		},
	}, nil
}

// Get reads a path such as "/api/v1/nodes" and decodes the answer into out,
// unless out is nil.
func (c *Client) Get(ctx context.Context, path string, out any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.server+path, nil)
	if err != nil {
		return fmt.Errorf("asking the API server for %s: %w", path, err)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("asking the API server: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("reading the API server's answer to %s: %w", path, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the API server answers %s to %s: %s", response.Status, path, strings.TrimSpace(string(body)))
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("decoding the API server's answer to %s: %w", path, err)
	}
	return nil
}

// Ready returns nil when the API server says that it is ready.
func (c *Client) Ready(ctx context.Context) error {
	return c.Get(ctx, "/readyz", nil)
}

// Node is what is looked at of a node.
type Node struct {
	Name  string
	Ready bool
}

// Nodes lists the nodes.
func (c *Client) Nodes(ctx context.Context) ([]Node, error) {
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Status   struct {
				Conditions []struct{ Type, Status string }
			}
		}
	}
	if err := c.Get(ctx, "/api/v1/nodes", &list); err != nil {
		return nil, err
	}
	nodes := make([]Node, 0, len(list.Items))
	for _, item := range list.Items {
		node := Node{Name: item.Metadata.Name}
		for _, condition := range item.Status.Conditions {
			if condition.Type == "Ready" {
				node.Ready = condition.Status == "True"
			}
		}
		nodes = append(nodes, node)
	}
	return nodes, nil
}

// NodesReady returns nil when there are count nodes and all are Ready.
func (c *Client) NodesReady(ctx context.Context, count int) error {
	nodes, err := c.Nodes(ctx)
	if err != nil {
		return err
	}
	if len(nodes) < count {
		return fmt.Errorf("%d of %d nodes have registered", len(nodes), count)
	}
	for _, node := range nodes {
		if !node.Ready {
			return fmt.Errorf("%s is not Ready", node.Name)
		}
	}
	return nil
}

// NodeHasAddress returns nil when the node has registered with an address.
func (c *Client) NodeHasAddress(ctx context.Context, name string) error {
	var node struct {
		Status struct {
			Addresses []struct{ Type string }
		}
	}
	if err := c.Get(ctx, "/api/v1/nodes/"+name, &node); err != nil {
		return err
	}
	for _, address := range node.Status.Addresses {
		if address.Type == "InternalIP" {
			return nil
		}
	}
	return fmt.Errorf("%s has no address yet", name)
}

// DeploymentAvailable returns nil when all replicas of a Deployment are.
func (c *Client) DeploymentAvailable(ctx context.Context, namespace, name string) error {
	var deployment struct {
		Spec   struct{ Replicas int }
		Status struct{ AvailableReplicas int }
	}
	if err := c.Get(ctx, "/apis/apps/v1/namespaces/"+namespace+"/deployments/"+name, &deployment); err != nil {
		return err
	}
	if deployment.Status.AvailableReplicas < deployment.Spec.Replicas {
		return fmt.Errorf("%d of %d Pods of Deployment %s are available", deployment.Status.AvailableReplicas, deployment.Spec.Replicas, name)
	}
	if deployment.Spec.Replicas == 0 {
		return errors.New("Deployment " + name + " has no replicas")
	}
	return nil
}
