// Package component renders the command lines and configuration files of the
// programs of a cluster. It is pure: it reads and writes nothing.
package component

import (
	"fmt"
	"net/netip"
	"path/filepath"
)

// ControlPlane is what etcd, API server, controller-manager and scheduler need
// to know.
type ControlPlane struct {
	// Kube is the path of the kube program.
	Kube string
	// PKI is the folder that package pki has written.
	PKI string
	// EtcdData is etcd's data folder.
	EtcdData string
	// EtcdClientPort and EtcdPeerPort are free ports on the loopback interface.
	EtcdClientPort, EtcdPeerPort int
	// IP and Port are where the API server listens.
	IP   netip.Addr
	Port int
	// Services is the range of the cluster addresses of Services.
	Services netip.Prefix
	// Alone is whether there are no nodes and no controllers, only the API.
	Alone bool
	// FastNodeLoss makes controllers notice a lost node within seconds.
	FastNodeLoss bool
	// APIServerArgs are added to the API server's command line.
	APIServerArgs []string
	// Scratch is a folder for what a component insists on writing.
	Scratch string
}

// Server is the URL of the API server.
func (c ControlPlane) Server() string {
	return "https://" + netip.AddrPortFrom(c.IP, uint16(c.Port)).String()
}

func (c ControlPlane) pki(name string) string { return filepath.Join(c.PKI, name) }

func (c ControlPlane) etcdClientURL() string {
	return fmt.Sprintf("https://127.0.0.1:%d", c.EtcdClientPort)
}

// Etcd is the command line of etcd. It listens on the loopback interface and
// answers only those who have a certificate: whoever may write to etcd rules
// the cluster, and the nodes run as root.
func (c ControlPlane) Etcd() []string {
	peerURL := fmt.Sprintf("https://127.0.0.1:%d", c.EtcdPeerPort)
	return []string{
		c.Kube, "etcd",
		"--name=etcd",
		"--data-dir=" + c.EtcdData,
		"--listen-client-urls=" + c.etcdClientURL(),
		"--advertise-client-urls=" + c.etcdClientURL(),
		"--listen-peer-urls=" + peerURL,
		"--initial-advertise-peer-urls=" + peerURL,
		"--initial-cluster=etcd=" + peerURL,
		"--cert-file=" + c.pki("etcd.crt"), "--key-file=" + c.pki("etcd.key"),
		"--client-cert-auth", "--trusted-ca-file=" + c.pki("etcd-ca.crt"),
		"--peer-cert-file=" + c.pki("etcd.crt"), "--peer-key-file=" + c.pki("etcd.key"),
		"--peer-client-cert-auth", "--peer-trusted-ca-file=" + c.pki("etcd-ca.crt"),
		// The data does not outlive the cluster, so it need not survive a
		// power cut either; waiting for the disk is most of etcd's time.
		"--unsafe-no-fsync",
		"--log-level=warn",
	}
}

// APIServer is the command line of the API server.
func (c ControlPlane) APIServer() []string {
	args := []string{
		c.Kube, "kube-apiserver",
		"--etcd-servers=" + c.etcdClientURL(),
		"--etcd-cafile=" + c.pki("etcd-ca.crt"),
		"--etcd-certfile=" + c.pki("apiserver-etcd-client.crt"), "--etcd-keyfile=" + c.pki("apiserver-etcd-client.key"),
		"--bind-address=" + c.IP.String(),
		"--advertise-address=" + c.IP.String(),
		fmt.Sprintf("--secure-port=%d", c.Port),
		"--service-cluster-ip-range=" + c.Services.String(),
		"--allow-privileged=true",
		"--cert-dir=" + c.Scratch,
		"--client-ca-file=" + c.pki("ca.crt"),
		"--tls-cert-file=" + c.pki("apiserver.crt"), "--tls-private-key-file=" + c.pki("apiserver.key"),
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + c.pki("sa.pub"), "--service-account-signing-key-file=" + c.pki("sa.key"),
		"--requestheader-client-ca-file=" + c.pki("front-proxy-ca.crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--requestheader-group-headers=X-Remote-Group", "--requestheader-username-headers=X-Remote-User",
		"--proxy-client-cert-file=" + c.pki("front-proxy-client.crt"), "--proxy-client-key-file=" + c.pki("front-proxy-client.key"),
	}
	if c.Alone {
		args = append(args,
			"--authorization-mode=RBAC",
			// Nobody makes the "default" service accounts that it would ask for.
			"--disable-admission-plugins=ServiceAccount",
			// An endpoint may not be a loopback address, and nobody uses it.
			"--endpoint-reconciler-type=none",
		)
	} else {
		args = append(args,
			"--authorization-mode=Node,RBAC",
			"--enable-admission-plugins=NodeRestriction",
			"--kubelet-client-certificate="+c.pki("apiserver-kubelet-client.crt"), "--kubelet-client-key="+c.pki("apiserver-kubelet-client.key"),
			"--kubelet-certificate-authority="+c.pki("ca.crt"),
			"--kubelet-preferred-address-types=InternalIP",
		)
	}
	return append(args, c.APIServerArgs...)
}

// ControllerManager is the command line of kube-controller-manager.
func (c ControlPlane) ControllerManager() []string {
	conf := c.pki("controller-manager.conf")
	args := []string{
		c.Kube, "kube-controller-manager",
		"--kubeconfig=" + conf, "--authentication-kubeconfig=" + conf, "--authorization-kubeconfig=" + conf,
		// It serves nothing that anybody here asks for.
		"--secure-port=0",
		"--leader-elect=false",
		"--controllers=*",
		"--use-service-account-credentials=true",
		"--root-ca-file=" + c.pki("ca.crt"),
		"--service-account-private-key-file=" + c.pki("sa.key"),
		"--cluster-signing-cert-file=" + c.pki("ca.crt"), "--cluster-signing-key-file=" + c.pki("ca.key"),
		"--service-cluster-ip-range=" + c.Services.String(),
		"--flex-volume-plugin-dir=" + filepath.Join(c.Scratch, "flexvolume"),
		"--cert-dir=" + c.Scratch,
		"--kube-api-qps=500", "--kube-api-burst=1000",
	}
	if c.FastNodeLoss {
		args = append(args, "--node-monitor-grace-period=8s", "--node-monitor-period=1s")
	}
	return args
}

// Scheduler is the command line of kube-scheduler.
func (c ControlPlane) Scheduler() []string {
	conf := c.pki("scheduler.conf")
	return []string{
		c.Kube, "kube-scheduler",
		"--kubeconfig=" + conf, "--authentication-kubeconfig=" + conf, "--authorization-kubeconfig=" + conf,
		"--secure-port=0",
		"--leader-elect=false",
		"--cert-dir=" + c.Scratch,
		"--kube-api-qps=500", "--kube-api-burst=1000",
	}
}
