package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
)

// Node is a node that gets a kubelet certificate and kubeconfig.
type Node struct {
	// Name is the node's name in Kubernetes.
	Name string
	// IP is the address under which its kubelet serves.
	IP string
}

// Options say what the certificates are for.
type Options struct {
	// Cluster is the name that kubeconfigs give to cluster, user and context.
	Cluster string
	// Server is the URL of the API server.
	Server string
	// ServerHosts are the names and addresses of the API server besides those
	// that are the same in every cluster.
	ServerHosts []string
	// Nodes may be empty.
	Nodes []Node
}

// writer writes files and remembers the first error.
type writer struct {
	dir string
	err error
}

func (w *writer) file(name string, content []byte) {
	if w.err != nil {
		return
	}
	if err := os.WriteFile(filepath.Join(w.dir, name), content, 0o600); err != nil {
		w.err = fmt.Errorf("writing %s: %w", name, err)
	}
}

func (w *writer) pair(name string, from *authority, to subject) {
	if w.err != nil {
		return
	}
	issued, err := from.issue(to)
	if err != nil {
		w.err = err
		return
	}
	w.file(name+".crt", issued.cert)
	w.file(name+".key", issued.key)
}

func (w *writer) authority(name string) *authority {
	if w.err != nil {
		return nil
	}
	made, err := newAuthority(name)
	if err != nil {
		w.err = err
		return nil
	}
	w.file(name+".crt", made.cert)
	w.file(name+".key", made.key)
	return made
}

// Write makes everything that a cluster needs in dir, which it creates. Files
// are readable by their owner only. The names are those that kubeadm uses where
// it has the same file:
//
//	ca, front-proxy-ca, etcd-ca             authorities (.crt and .key)
//	apiserver, apiserver-kubelet-client,
//	apiserver-etcd-client, etcd,
//	front-proxy-client, kubelet-NODE        certificates (.crt and .key)
//	sa.key, sa.pub                          keys for service account tokens
//	admin, controller-manager, scheduler,
//	proxy, kubelet-NODE                     kubeconfigs (.conf)
//	admin.crt, admin.key                    the administrator's certificate again
func Write(dir string, options Options) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making the folder for certificates: %w", err)
	}
	out := &writer{dir: dir}
	root, front, etcd := out.authority("ca"), out.authority("front-proxy-ca"), out.authority("etcd-ca")
	hosts := append([]string{
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "localhost",
	}, options.ServerHosts...)
	out.pair("apiserver", root, subject{name: "kube-apiserver", hosts: hosts})
	out.pair("apiserver-kubelet-client", root, subject{name: "kube-apiserver-kubelet-client", groups: []string{"system:masters"}})
	out.pair("front-proxy-client", front, subject{name: "front-proxy-client"})
	out.pair("etcd", etcd, subject{name: "etcd", hosts: []string{"127.0.0.1", "localhost"}})
	out.pair("apiserver-etcd-client", etcd, subject{name: "kube-apiserver-etcd-client"})
	out.serviceAccountKeys()

	out.kubeconfig("admin", root, options, subject{name: "kubernetes-admin", groups: []string{"system:masters"}})
	out.kubeconfig("controller-manager", root, options, subject{name: "system:kube-controller-manager"})
	out.kubeconfig("scheduler", root, options, subject{name: "system:kube-scheduler"})
	out.kubeconfig("proxy", root, options, subject{name: "system:kube-proxy"})
	for _, node := range options.Nodes {
		out.kubeconfig("kubelet-"+node.Name, root, options, subject{
			name: "system:node:" + node.Name, groups: []string{"system:nodes"}, hosts: []string{node.Name, node.IP, "127.0.0.1"},
		})
	}
	return out.err
}

func (w *writer) serviceAccountKeys() {
	if w.err != nil {
		return
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		w.err = fmt.Errorf("making the key for service accounts: %w", err)
		return
	}
	encoded, err := encodeKey(key)
	if err != nil {
		w.err = err
		return
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		w.err = fmt.Errorf("encoding the public key for service accounts: %w", err)
		return
	}
	w.file("sa.key", encoded)
	w.file("sa.pub", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}))
}

// kubeconfig writes NAME.conf, and the certificate in it as NAME.crt and
// NAME.key besides.
func (w *writer) kubeconfig(name string, from *authority, options Options, to subject) {
	w.pair(name, from, to)
	if w.err != nil {
		return
	}
	encoded := map[string]string{}
	for _, file := range []string{"ca.crt", name + ".crt", name + ".key"} {
		raw, err := os.ReadFile(filepath.Join(w.dir, file))
		if err != nil {
			w.err = fmt.Errorf("reading %s for the kubeconfig %s: %w", file, name, err)
			return
		}
		encoded[file] = base64.StdEncoding.EncodeToString(raw)
	}
	w.file(name+".conf", fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: %[1]s
contexts:
- name: %[1]s
  context:
    cluster: %[1]s
    user: %[2]s
clusters:
- name: %[1]s
  cluster:
    server: %[3]s
    certificate-authority-data: %[4]s
users:
- name: %[2]s
  user:
    client-certificate-data: %[5]s
    client-key-data: %[6]s
`, options.Cluster, to.name, options.Server, encoded["ca.crt"], encoded[name+".crt"], encoded[name+".key"]))
}
