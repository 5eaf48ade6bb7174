// Package cgroup makes and removes the cgroups in which the Pods of a node run,
// on machines with cgroup v1, v2, or the hybrid of both.
package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heliostat-io/heliostat/hack/localkube/internal/mounts"
)

// unifiedRoot is where systemd and everybody else mounts cgroups.
const unifiedRoot = "/sys/fs/cgroup"

// Host is how this machine manages cgroups.
type Host struct {
	// V1 is whether resources are managed with cgroup v1.
	V1 bool
	// roots are the mount points of all hierarchies, v2's among them.
	roots []string
}

// Detect looks at the machine.
func Detect() (Host, error) {
	table, err := mounts.List()
	if err != nil {
		return Host{}, err
	}
	host := Host{V1: true}
	for _, mount := range table {
		switch {
		case mount.Type == "cgroup2" && mount.Point == unifiedRoot:
			host.V1 = false
			host.roots = append(host.roots, mount.Point)
		case mount.Type == "cgroup2", mount.Type == "cgroup":
			if !slices.Contains(host.roots, mount.Point) {
				host.roots = append(host.roots, mount.Point)
			}
		}
	}
	if len(host.roots) == 0 {
		return Host{}, errors.New("no cgroups are mounted on this machine")
	}
	return host, nil
}

// Make makes the cgroup of that name below the root of every hierarchy. On v2 it
// switches on the controllers that the kubelet asks for.
func (h Host) Make(name string) error {
	if !h.V1 {
		if err := switchOn(unifiedRoot); err != nil {
			return err
		}
	}
	for _, root := range h.roots {
		dir := filepath.Join(root, name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("making cgroup %s: %w", dir, err)
		}
		if err := fillCpuset(root, dir); err != nil {
			return err
		}
	}
	return nil
}

// fillCpuset copies CPUs and memory nodes from the root: on v1 a new cgroup has
// none, and nothing can run in it.
func fillCpuset(root, dir string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		content, err := os.ReadFile(filepath.Join(root, file))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading %s: %w", filepath.Join(root, file), err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), content, 0o644); err != nil {
			return fmt.Errorf("filling %s: %w", filepath.Join(dir, file), err)
		}
	}
	return nil
}

// kubeletControllers are the controllers that the kubelet asks for, as far as
// the kernel has them.
func kubeletControllers() []string {
	return []string{"cpu", "cpuset", "memory", "hugetlb", "pids"}
}

// toSwitchOn returns which controllers have to be switched on, given what the
// kernel has and what is on.
func toSwitchOn(available, on string) []string {
	var missing []string
	for _, name := range kubeletControllers() {
		if slices.Contains(strings.Fields(available), name) && !slices.Contains(strings.Fields(on), name) {
			missing = append(missing, name)
		}
	}
	return missing
}

const subtreeControl = "cgroup.subtree_control"

func switchOn(root string) error {
	available, err := os.ReadFile(filepath.Join(root, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("reading the machine's cgroup controllers: %w", err)
	}
	control := filepath.Join(root, subtreeControl)
	on, err := os.ReadFile(control)
	if err != nil {
		return fmt.Errorf("reading which cgroup controllers are on: %w", err)
	}
	for _, name := range toSwitchOn(string(available), string(on)) {
		err := os.WriteFile(control, []byte("+"+name), 0o644)
		if errors.Is(err, unix.EBUSY) {
			return fmt.Errorf("the cgroup controller %s cannot be switched on since processes run in the root cgroup, as they do in most containers: run localkube on the machine itself", name)
		}
		if err != nil {
			return fmt.Errorf("switching on the cgroup controller %s: %w", name, err)
		}
	}
	return nil
}

// Controllers returns the controllers that are on at the root of v2; on v1 there
// are none.
func (h Host) Controllers() ([]string, error) {
	if h.V1 {
		return nil, nil
	}
	on, err := os.ReadFile(filepath.Join(unifiedRoot, subtreeControl))
	if err != nil {
		return nil, fmt.Errorf("reading which cgroup controllers are on: %w", err)
	}
	return strings.Fields(string(on)), nil
}

// Restore switches off at the root of v2 what was not on before. Make is not the
// only one to switch controllers on: runc does so with all that there are.
// Somebody else may have come to use one meanwhile; then it stays on.
func (h Host) Restore(before []string) error {
	now, err := h.Controllers()
	if err != nil {
		return err
	}
	for _, name := range now {
		if !slices.Contains(before, name) {
			_ = os.WriteFile(filepath.Join(unifiedRoot, subtreeControl), []byte("-"+name), 0o644)
		}
	}
	return nil
}

// Kill ends every process in the cgroup of that name and below, and returns when
// none is left. They are known by where they run, which only the kubelet of the
// node decides.
func (h Host) Kill(name string) error {
	if name == "" || strings.ContainsAny(name, "/.") {
		// The root cgroup holds every process of the machine.
		return fmt.Errorf("%q is not the name of a node's cgroup", name)
	}
	const limit = 20 * time.Second
	for deadline := time.Now().Add(limit); ; time.Sleep(20 * time.Millisecond) {
		pids := map[int]bool{}
		for _, root := range h.roots {
			collect(filepath.Join(root, name), pids)
		}
		if len(pids) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d processes in cgroup %s still run %s after they were killed", len(pids), name, limit)
		}
		for pid := range pids {
			// It may have ended meanwhile.
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}

// collect adds the processes of a cgroup and those below. A cgroup that
// disappears while it is read has none.
func collect(dir string, pids map[int]bool) {
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return nil
		}
		raw, err := os.ReadFile(filepath.Join(path, "cgroup.procs"))
		if err != nil {
			return nil
		}
		for _, field := range strings.Fields(string(raw)) {
			// Zero stands for processes of other process namespaces.
			if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
				pids[pid] = true
			}
		}
		return nil
	})
}

// Remove removes the cgroup of that name and all below, in every hierarchy.
func (h Host) Remove(name string) error {
	var problems []error
	for _, root := range h.roots {
		if err := removeTree(filepath.Join(root, name)); err != nil {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

// removeTree removes empty cgroups from the leaves up. The kernel takes a moment
// to notice that the last process of a cgroup is gone.
func removeTree(dir string) error {
	var last error
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		var folders []string
		_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				folders = append(folders, path)
			}
			return nil
		})
		slices.Reverse(folders)
		last = nil
		for _, folder := range folders {
			if err := unix.Rmdir(folder); err != nil && !errors.Is(err, unix.ENOENT) {
				last = fmt.Errorf("removing cgroup %s: %w", folder, err)
			}
		}
		if last == nil {
			return nil
		}
	}
	return last
}
