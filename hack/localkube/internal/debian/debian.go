// Package debian makes sure that this machine has the Debian packages whose
// programs a node needs.
package debian

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// requirement is a file that a node needs and the package that brings it.
type requirement struct {
	file string
	// plugin is whether file is a CNI plugin rather than a program.
	plugin bool
	pkg    string
}

// requirements are checked by file rather than by package: Docker's own
// containerd.io, for example, is as good as Debian's containerd.
func requirements() []requirement {
	return []requirement{
		{file: "containerd", pkg: "containerd"},
		{file: "containerd-shim-runc-v2", pkg: "containerd"},
		{file: "ctr", pkg: "containerd"},
		{file: "runc", pkg: "runc"},
		{file: "ptp", plugin: true, pkg: "containernetworking-plugins"},
		{file: "host-local", plugin: true, pkg: "containernetworking-plugins"},
		{file: "portmap", plugin: true, pkg: "containernetworking-plugins"},
		{file: "loopback", plugin: true, pkg: "containernetworking-plugins"},
		{file: "iptables", pkg: "iptables"},
		{file: "nft", pkg: "nftables"},
		{file: "conntrack", pkg: "conntrack"},
		{file: "mount", pkg: "mount"},
	}
}

// Host is where programs are looked for.
type Host struct {
	// Path are the folders of programs, PluginDirs those of CNI plugins.
	Path, PluginDirs []string
}

// ThisMachine returns the usual folders.
func ThisMachine() Host {
	return Host{
		Path:       []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"},
		PluginDirs: []string{"/usr/lib/cni", "/opt/cni/bin"},
	}
}

func (h Host) has(needed requirement) bool {
	dirs := h.Path
	if needed.plugin {
		dirs = h.PluginDirs
	}
	return slices.ContainsFunc(dirs, func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, needed.file))
		return err == nil
	})
}

// Missing returns the packages that would bring what is missing, sorted.
func (h Host) Missing() []string {
	var packages []string
	for _, needed := range requirements() {
		if !h.has(needed) && !slices.Contains(packages, needed.pkg) {
			packages = append(packages, needed.pkg)
		}
	}
	slices.Sort(packages)
	return packages
}

// CNIPlugins returns the folder that holds all CNI plugins a node needs.
func (h Host) CNIPlugins() (string, error) {
	for _, dir := range h.PluginDirs {
		one := Host{PluginDirs: []string{dir}}
		if !slices.ContainsFunc(requirements(), func(needed requirement) bool { return needed.plugin && !one.has(needed) }) {
			return dir, nil
		}
	}
	return "", fmt.Errorf("no folder of %s has all CNI plugins: install containernetworking-plugins", strings.Join(h.PluginDirs, ", "))
}

// Check returns an error that says what to type when packages are missing.
func (h Host) Check() error {
	missing := h.Missing()
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("programs that nodes need are missing on this machine; install them with\n  %s\nor let localkube do it: localkube prepare",
		strings.Join(aptInstall(missing), " "))
}

func aptInstall(packages []string) []string {
	return append([]string{"apt-get", "install", "--yes", "--no-install-recommends"}, packages...)
}

// Install installs packages, their output going to out. It fetches the lists of
// packages only when apt-get does not find one without.
func Install(ctx context.Context, out io.Writer, packages []string) error {
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("this machine has no apt-get: install by other means what Debian has in the packages %s", strings.Join(packages, ", "))
	}
	if os.Geteuid() != 0 {
		return errors.New("installing packages needs root: run it with sudo")
	}
	err := apt(ctx, out, aptInstall(packages)...)
	if err == nil || ctx.Err() != nil {
		return err
	}
	// The lists are missing or older than what the mirror has.
	if err := apt(ctx, out, "apt-get", "update"); err != nil {
		return err
	}
	return apt(ctx, out, aptInstall(packages)...)
}

func apt(ctx context.Context, out io.Writer, args ...string) error {
	command := exec.CommandContext(ctx, args[0], args[1:]...)
	command.Stdout, command.Stderr = out, out
	command.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	if err := command.Run(); err != nil {
		return fmt.Errorf("running %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// Download fetches the newest version of a package into dir, without installing
// it, and returns the file. One that is there already is taken as it is.
func Download(ctx context.Context, dir, name string) (string, error) {
	if found := downloaded(dir, name); found != "" {
		return found, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("making the folder for Debian packages: %w", err)
	}
	// apt-get writes to the folder it runs in, as a user of its own.
	fetch := func(args ...string) ([]byte, error) {
		command := exec.CommandContext(ctx, "apt-get", args...)
		command.Dir = dir
		return command.CombinedOutput()
	}
	output, err := fetch("download", name)
	if err != nil && os.Geteuid() == 0 {
		if output, err = fetch("update"); err == nil {
			output, err = fetch("download", name)
		}
	}
	if err != nil {
		return "", fmt.Errorf("fetching the Debian package %s: %w\n%s", name, err, output)
	}
	if found := downloaded(dir, name); found != "" {
		return found, nil
	}
	return "", fmt.Errorf("apt-get has fetched the Debian package %s, but it is not in %s", name, dir)
}

func downloaded(dir, name string) string {
	found, err := filepath.Glob(filepath.Join(dir, name+"_*.deb"))
	if err != nil || len(found) == 0 {
		return ""
	}
	return found[len(found)-1]
}
