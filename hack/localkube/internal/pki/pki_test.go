package pki

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func readCert(t *testing.T, dir, name string) *x509.Certificate {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, name+".crt"))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(raw)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func TestCertificatesAreSignedByTheRightAuthority(t *testing.T) {
	dir := t.TempDir()
	err := Write(dir, Options{
		Cluster: "c", Server: "https://10.231.0.1:6443", ServerHosts: []string{"10.231.0.1"},
		Nodes: []Node{{Name: "node-1", IP: "10.231.0.11"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		authority  string
		host       string
		wantName   string
		wantGroups []string
	}{
		"apiserver":             {authority: "ca", host: "10.231.0.1", wantName: "kube-apiserver"},
		"admin":                 {authority: "ca", wantName: "kubernetes-admin", wantGroups: []string{"system:masters"}},
		"kubelet-node-1":        {authority: "ca", host: "10.231.0.11", wantName: "system:node:node-1", wantGroups: []string{"system:nodes"}},
		"etcd":                  {authority: "etcd-ca", host: "127.0.0.1", wantName: "etcd"},
		"apiserver-etcd-client": {authority: "etcd-ca", wantName: "kube-apiserver-etcd-client"},
		"front-proxy-client":    {authority: "front-proxy-ca", wantName: "front-proxy-client"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			roots := x509.NewCertPool()
			roots.AddCert(readCert(t, dir, test.authority))
			cert := readCert(t, dir, name)
			if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: test.host}); err != nil {
				t.Error(err)
			}
			if cert.Subject.CommonName != test.wantName {
				t.Errorf("got user %s, want %s", cert.Subject.CommonName, test.wantName)
			}
			if diff := cmp.Diff(test.wantGroups, cert.Subject.Organization); diff != "" {
				t.Errorf("groups (-want +got):\n%s", diff)
			}
			if _, err := tls.LoadX509KeyPair(filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")); err != nil {
				t.Errorf("certificate and key do not belong together: %v", err)
			}
		})
	}
}

func TestNothingIsReadableByOthers(t *testing.T) {
	dir := t.TempDir()
	if err := Write(dir, Options{Cluster: "c", Server: "https://127.0.0.1:1"}); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %s, want -rw-------", entry.Name(), info.Mode())
		}
	}
	admin, err := os.ReadFile(filepath.Join(dir, "admin.conf"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(admin), "server: https://127.0.0.1:1\n") {
		t.Errorf("the kubeconfig does not name the server:\n%s", admin)
	}
}
