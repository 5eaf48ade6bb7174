package rayimage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/heliostat-io/heliostat/hack/localkube/image"
)

// buildDir is the folder inside the new root file system that scripts and lists
// of packages lie in during the build.
const buildDir = "/build"

// step is one script of files/ that runs inside the new root file system.
type step struct {
	Title  string
	Script string
	// AsRay runs the script as the image's own user instead of root.
	AsRay bool
}

func steps() []step {
	return []step{
		{Title: "setting up user and Python", Script: "base.sh"},
		{Title: "making wheels for runtime environments", Script: "wheelhouse.sh"},
		{Title: "installing Ray " + RayVersion, Script: "ray.sh"},
		{Title: "compiling and cleaning up", Script: "finish.sh"},
		{Title: "checking the commands that Ray Pods call", Script: "check.sh", AsRay: true},
	}
}

// chroot is a root file system that programs run in.
type chroot struct {
	root string
	// borrowed lists the files copied from this machine, as paths inside root.
	borrowed []string
}

// prepare brings in the scripts, and what the machine needs to reach its package
// index: name resolution, pip's settings and trusted certificates.
func (c *chroot) prepare() error {
	dir := filepath.Join(c.root, buildDir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making the folder for build scripts: %w", err)
	}
	scripts, err := fs.Sub(recipe, "files")
	if err != nil {
		return fmt.Errorf("opening the build scripts: %w", err)
	}
	if err := os.CopyFS(dir, scripts); err != nil {
		return fmt.Errorf("copying the build scripts: %w", err)
	}
	borrow := map[string]string{
		"/etc/resolv.conf": "/etc/resolv.conf",
		"/etc/hosts":       "/etc/hosts",
		"/etc/pip.conf":    "/etc/pip.conf",
	}
	if bundle := certificateBundle(os.Getenv); bundle != "" {
		borrow[bundle] = buildDir + "/ca.pem"
	}
	if config := os.Getenv("PIP_CONFIG_FILE"); config != "" {
		borrow[config] = buildDir + "/pip.conf"
	}
	if home, err := os.UserHomeDir(); err == nil {
		borrow[filepath.Join(home, ".config", "pip", "pip.conf")] = "/root/.config/pip/pip.conf"
	}
	for from, to := range borrow {
		if err := c.borrow(from, to); err != nil {
			return err
		}
	}
	return nil
}

// borrow copies a file of this machine, if it exists, until clean.
func (c *chroot) borrow(from, to string) error {
	content, err := os.ReadFile(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %s for use in the build: %w", from, err)
	}
	target := filepath.Join(c.root, to)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return fmt.Errorf("making the folder of %s: %w", target, err)
	}
	// The root file system may have a link there that leads out of it.
	if err := os.Remove(target); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("making room for %s: %w", target, err)
	}
	if err := os.WriteFile(target, content, 0o644); err != nil {
		return fmt.Errorf("copying %s into the build: %w", from, err)
	}
	c.borrowed = append(c.borrowed, to)
	return nil
}

// runStep runs a script in namespaces of its own. Its mounts and all its
// processes go with them, however the build ends.
func (c *chroot) runStep(ctx context.Context, s step) error {
	args := []string{
		"--mount", "--pid", "--fork", "--kill-child", "--mount-proc=" + filepath.Join(c.root, "proc"),
		"chroot",
	}
	home := "/root"
	if s.AsRay {
		args = append(args, "--userspec=1000:100")
		home = "/home/ray"
	}
	env := []string{image.DefaultPath, "HOME=" + home, "LANG=C.UTF-8"}
	if !s.AsRay {
		env = append(env, c.networkEnv(os.Environ())...)
	}
	args = append(args, c.root, "/bin/bash", "-eu", "-o", "pipefail", buildDir+"/"+s.Script)
	if err := run(ctx, env, "unshare", args...); err != nil {
		return fmt.Errorf("%s (%s): %w", s.Title, s.Script, err)
	}
	return nil
}

// networkEnv picks from the machine's environment what pip needs to reach the
// package index. Variables that may name files of the machine are left behind.
func (c *chroot) networkEnv(environ []string) []string {
	pass := []string{
		"PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST", "PIP_PROXY", "PIP_DEFAULT_TIMEOUT", "PIP_RETRIES",
		"http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
	}
	env := []string{
		"PIP_NO_CACHE_DIR=1", "PIP_NO_INPUT=1", "PIP_PROGRESS_BAR=off", "PIP_ROOT_USER_ACTION=ignore", "PIP_DISABLE_PIP_VERSION_CHECK=1",
	}
	for _, pair := range environ {
		if name, _, _ := strings.Cut(pair, "="); slices.Contains(pass, name) {
			env = append(env, pair)
		}
	}
	if slices.Contains(c.borrowed, buildDir+"/ca.pem") {
		env = append(env, "PIP_CERT="+buildDir+"/ca.pem", "SSL_CERT_FILE="+buildDir+"/ca.pem")
	}
	if slices.Contains(c.borrowed, buildDir+"/pip.conf") {
		env = append(env, "PIP_CONFIG_FILE="+buildDir+"/pip.conf")
	}
	return env
}

// certificateBundle returns the file with the certificates that this machine
// trusts, or nothing if it has none in a usual place.
func certificateBundle(getenv func(string) string) string {
	for _, name := range []string{"PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"} {
		if file := getenv(name); file != "" {
			return file
		}
	}
	return "/etc/ssl/certs/ca-certificates.crt"
}

// clean takes out what prepare brought in and the device nodes, for which the
// container runtime has its own.
func (c *chroot) clean() error {
	for _, path := range c.borrowed {
		// finish.sh has put the image's own settings in this one's place.
		if path == "/etc/pip.conf" {
			continue
		}
		if err := os.RemoveAll(filepath.Join(c.root, path)); err != nil {
			return fmt.Errorf("removing a file of this machine from the image: %w", err)
		}
	}
	if err := os.RemoveAll(filepath.Join(c.root, buildDir)); err != nil {
		return fmt.Errorf("removing the build scripts from the image: %w", err)
	}
	dev := filepath.Join(c.root, "dev")
	if err := os.RemoveAll(dev); err != nil {
		return fmt.Errorf("removing the device nodes from the image: %w", err)
	}
	if err := os.Mkdir(dev, 0o755); err != nil {
		return fmt.Errorf("making an empty /dev: %w", err)
	}
	return nil
}
