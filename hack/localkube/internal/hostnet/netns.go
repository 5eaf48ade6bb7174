// Package hostnet makes and removes the network of a cluster on this machine.
//
//	machine                         "switch" namespace        node namespaces
//	lk0 10.231.0.1 ──────────────── host ┐
//	                                     ├ br0
//	                                 n1 ─┤ ──────────────────  eth0 10.231.0.11
//	                                 n2 ─┘ ──────────────────  eth0 10.231.0.12
//
// The switch has a namespace of its own so that the machine's firewall, which
// may look at bridged packets too (Docker switches that on), never sees what
// nodes say to each other.
//
// Nothing leaves by the machine's own interfaces: packets from the cluster are
// not forwarded, nodes have no route to anywhere else, and the machine refuses
// addresses of Services and of Pods that do not exist instead of sending them
// to its default gateway.
package hostnet

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/heliostat-io/heliostat/hack/localkube/internal/proc"
)

// makeNetNS makes a network namespace that lives as long as the file it is
// mounted on.
func makeNetNS(file string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("making the folder for network namespaces: %w", err)
	}
	mountPoint, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("making network namespace: %w", err)
	}
	mountPoint.Close()
	return onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("making network namespace %s: %w", file, err)
		}
		if err := unix.Mount("/proc/thread-self/ns/net", file, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mounting network namespace %s: %w", file, err)
		}
		return nil
	})
}

// inNetNS calls do with a thread that is in the network namespace of the file.
func inNetNS(file string, do func() error) error {
	return onThread(func() error {
		if err := proc.EnterNetNS(file); err != nil {
			return err
		}
		return do()
	})
}

// onThread calls do on a thread that ends afterwards, so that whatever do does
// to its thread is gone with it.
func onThread(do func() error) error {
	result := make(chan error, 1)
	go func() {
		// Never unlocked: the runtime then ends the thread with the goroutine.
		runtime.LockOSThread()
		result <- do()
	}()
	return <-result
}

// writeSysctl sets a kernel setting; those below net belong to the network
// namespace of the calling thread.
func writeSysctl(path, value string) error {
	if err := os.WriteFile(filepath.Join("/proc/sys", path), []byte(value), 0o644); err != nil {
		return fmt.Errorf("setting %s to %s: %w", path, value, err)
	}
	return nil
}

// removeNetNS takes a namespace's file away. The kernel then ends the namespace
// and everything in it, once no process is in it any more.
func removeNetNS(file string) error {
	err := unix.Unmount(file, unix.MNT_DETACH)
	if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("unmounting network namespace %s: %w", file, err)
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing network namespace %s: %w", file, err)
	}
	return nil
}
