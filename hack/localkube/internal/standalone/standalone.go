// Package standalone runs etcd and an API server for tests: no nodes, no
// controllers, no root. It listens on the loopback interface only and leaves
// nothing behind.
package standalone

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heliostat-io/heliostat/hack/localkube/internal/component"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/kubeapi"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/pki"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/ports"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/proc"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/progress"
)

// dirPrefix is how the names of our temporary folders begin.
const dirPrefix = "localkube-apiserver-"

// Options say how to run.
type Options struct {
	// Kube is the path of the kube program.
	Kube string
	// APIServerArgs are added to the API server's command line.
	APIServerArgs []string
	// Log is told about progress; Out gets one line of JSON when all is ready.
	Log *progress.Log
	Out io.Writer
}

// announcement is the line that is printed when the API server is ready.
type announcement struct {
	// Kubeconfig is the path of the administrator's kubeconfig.
	Kubeconfig string `json:"kubeconfig"`
	// Server is the URL of the API server.
	Server string `json:"server"`
	// Logs is the folder with the logs of etcd and the API server.
	Logs string `json:"logs"`
}

// Run starts etcd and the API server, announces them, and runs until ctx ends or
// one of them does. Only the second is an error. It has to be called on a
// goroutine of its own or on the main one: it stays on one thread.
func Run(ctx context.Context, options Options) error {
	// The children are killed by the kernel when the thread that started them
	// ends, so it must live as long as they shall.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	sweep(os.TempDir())
	const attempts = 3
	for attempt := 1; ; attempt++ {
		err := runOnce(ctx, options)
		if err == nil || attempt == attempts || !strings.Contains(err.Error(), "address already in use") {
			return err
		}
		options.Log.Printf("a port was taken in the meantime; trying again")
	}
}

func runOnce(ctx context.Context, options Options) error {
	dir, release, err := newDir()
	if err != nil {
		return err
	}
	defer release()
	plane, err := prepare(dir, options)
	if err != nil {
		return err
	}
	etcd, err := proc.StartChild("etcd", filepath.Join(dir, "etcd.log"), plane.Etcd())
	if err != nil {
		return err
	}
	defer etcd.Kill()
	server, err := proc.StartChild("kube-apiserver", filepath.Join(dir, "kube-apiserver.log"), plane.APIServer())
	if err != nil {
		return err
	}
	defer server.Kill()
	client, err := kubeapi.New(plane.Server(), plane.PKI)
	if err != nil {
		return err
	}
	err = proc.WaitFor(ctx, 2*time.Minute, "the API server is ready", client.Ready, etcd, server)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	ready := announcement{Kubeconfig: filepath.Join(plane.PKI, "admin.conf"), Server: plane.Server(), Logs: dir}
	if err := json.NewEncoder(options.Out).Encode(ready); err != nil {
		return fmt.Errorf("announcing the API server: %w", err)
	}
	options.Log.Printf("API server ready at %s; it ends with Ctrl-C, SIGTERM, or the end of standard input", plane.Server())
	return watch(ctx, etcd, server)
}

// watch returns when ctx ends, or with an error when one of the daemons does.
func watch(ctx context.Context, daemons ...*proc.Daemon) error {
	ended := make(chan error, len(daemons))
	for _, daemon := range daemons {
		go func() {
			daemon.Wait()
			ended <- daemon.Ended()
		}()
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-ended:
		return err
	}
}

func prepare(dir string, options Options) (component.ControlPlane, error) {
	free, err := ports.Free(3)
	if err != nil {
		return component.ControlPlane{}, err
	}
	plane := component.ControlPlane{
		Kube:           options.Kube,
		PKI:            filepath.Join(dir, "pki"),
		EtcdData:       filepath.Join(dir, "etcd"),
		EtcdClientPort: free[0],
		EtcdPeerPort:   free[1],
		IP:             netip.AddrFrom4([4]byte{127, 0, 0, 1}),
		Port:           free[2],
		Services:       netip.MustParsePrefix("10.96.0.0/16"),
		Alone:          true,
		APIServerArgs:  options.APIServerArgs,
		Scratch:        dir,
	}
	err = pki.Write(plane.PKI, pki.Options{Cluster: "localkube-apiserver", Server: plane.Server(), ServerHosts: []string{"127.0.0.1"}})
	if err != nil {
		return component.ControlPlane{}, err
	}
	return plane, nil
}

const lockName = "lock"

// newDir makes a temporary folder and holds a lock in it, by which others see
// that it is in use. release removes it.
func newDir() (dir string, release func(), err error) {
	dir, err = os.MkdirTemp("", dirPrefix+"*")
	if err != nil {
		return "", nil, fmt.Errorf("making a temporary folder: %w", err)
	}
	held, err := tryLock(filepath.Join(dir, lockName), os.O_CREATE)
	if err != nil {
		os.RemoveAll(dir)
		return "", nil, err
	}
	return dir, func() {
		os.RemoveAll(dir)
		held.Close()
	}, nil
}

func tryLock(file string, flags int) (*os.File, error) {
	opened, err := os.OpenFile(file, os.O_RDWR|flags, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening lock: %w", err)
	}
	if err := unix.Flock(int(opened.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		opened.Close()
		return nil, fmt.Errorf("locking %s: %w", file, err)
	}
	return opened, nil
}

// sweep removes the folders of earlier runs that were killed. Errors are left
// alone: what cannot be removed may belong to another user.
func sweep(parent string) {
	dirs, err := filepath.Glob(filepath.Join(parent, dirPrefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		// A folder that was made this moment may not have its lock yet.
		if err != nil || time.Since(info.ModTime()) < time.Minute {
			continue
		}
		held, err := tryLock(filepath.Join(dir, lockName), 0)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			continue
		}
		os.RemoveAll(dir)
		if held != nil {
			held.Close()
		}
	}
}
