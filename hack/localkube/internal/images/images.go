// Package images packs the images that a cluster itself needs out of what is on
// this machine.
package images

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/heliostat-io/heliostat/hack/localkube/image"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/component"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/debian"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/progress"
)

// recipe changes when an image is packed in another way from the same files, so
// that archives in the cache are made anew.
const recipe = "1"

// Packer packs images into archives in a cache folder.
type Packer struct {
	// Dir is the cache folder for image archives.
	Dir string
	// CoreDNS and Pause are the paths of the programs.
	CoreDNS, Pause string
	// Log is told what is packed.
	Log *progress.Log
}

// Ensure returns the archives of the images that every node has, and packs
// those that the cache does not have.
func (p Packer) Ensure(ctx context.Context) ([]string, error) {
	if err := os.MkdirAll(p.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the folder for image archives: %w", err)
	}
	busybox, err := debian.Download(ctx, filepath.Join(p.Dir, "debian"), "busybox")
	if err != nil {
		return nil, err
	}
	var archives []string
	for _, wanted := range []struct {
		name, source string
		fill         func(root string) error
		spec         image.Spec
	}{
		{
			name: "pause", source: p.Pause,
			fill: func(root string) error { return copyFile(p.Pause, filepath.Join(root, "pause")) },
			spec: image.Spec{Names: []string{component.PauseImage}, Entrypoint: []string{"/pause"}},
		},
		{
			name: "coredns", source: p.CoreDNS,
			fill: func(root string) error { return copyFile(p.CoreDNS, filepath.Join(root, "coredns")) },
			spec: image.Spec{Names: []string{component.CoreDNSImage}, Entrypoint: []string{"/coredns"}},
		},
		{
			name: "busybox", source: busybox,
			fill: func(root string) error { return fillBusybox(ctx, root, busybox) },
			spec: image.Spec{Names: []string{component.BusyboxImage}, Cmd: []string{"/bin/sh"}},
		},
	} {
		wanted.spec.RootOwned = true
		archive, err := p.ensure(ctx, wanted.name, wanted.source, wanted.fill, wanted.spec)
		if err != nil {
			return nil, fmt.Errorf("making the %s image: %w", wanted.name, err)
		}
		archives = append(archives, archive)
	}
	return archives, nil
}

// ensure packs one image unless there is an archive that was packed from the
// same source.
func (p Packer) ensure(ctx context.Context, name, source string, fill func(root string) error, spec image.Spec) (string, error) {
	key, err := contentKey(source)
	if err != nil {
		return "", err
	}
	archive := filepath.Join(p.Dir, name+"-"+key+".tar")
	if _, err := os.Stat(archive); err == nil {
		return archive, nil
	}
	root, err := os.MkdirTemp(p.Dir, "."+name+"-*")
	if err != nil {
		return "", fmt.Errorf("making a folder for its files: %w", err)
	}
	defer os.RemoveAll(root)
	if err := os.Chmod(root, 0o755); err != nil {
		return "", fmt.Errorf("opening its root for all users: %w", err)
	}
	tmp := filepath.Join(root, "tmp")
	if err := os.Mkdir(tmp, 0o777); err != nil {
		return "", fmt.Errorf("making its /tmp: %w", err)
	}
	if err := os.Chmod(tmp, 0o777|os.ModeSticky); err != nil {
		return "", fmt.Errorf("opening its /tmp for all users: %w", err)
	}
	if err := fill(root); err != nil {
		return "", err
	}
	spec.Root = root
	if err := image.Pack(ctx, spec, archive); err != nil {
		return "", err
	}
	p.Log.Printf("packed image %s", spec.Names[0])
	return archive, nil
}

func contentKey(file string) (string, error) {
	opened, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("opening what it is made of: %w", err)
	}
	defer opened.Close()
	hash := sha256.New()
	fmt.Fprintln(hash, recipe)
	if _, err := io.Copy(hash, opened); err != nil {
		return "", fmt.Errorf("reading what it is made of: %w", err)
	}
	return hex.EncodeToString(hash.Sum(nil))[:12], nil
}

func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("copying %s: %w", from, err)
	}
	defer source.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return fmt.Errorf("copying %s: %w", from, err)
	}
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return fmt.Errorf("copying %s: %w", from, err)
	}
	if _, err := io.Copy(target, source); err != nil {
		target.Close()
		return fmt.Errorf("copying %s to %s: %w", from, to, err)
	}
	if err := target.Close(); err != nil {
		return fmt.Errorf("copying %s to %s: %w", from, to, err)
	}
	return nil
}

// fillBusybox lays out a small root file system: busybox under all of its names,
// and this machine's C library, with which name resolution works. (Debian's
// static busybox crashes when it resolves names.)
func fillBusybox(ctx context.Context, root, deb string) error {
	unpacked := filepath.Join(root, ".deb")
	if output, err := exec.CommandContext(ctx, "dpkg-deb", "--extract", deb, unpacked).CombinedOutput(); err != nil {
		return fmt.Errorf("unpacking %s: %w\n%s", deb, err, output)
	}
	defer os.RemoveAll(unpacked)
	program := filepath.Join(unpacked, "usr", "bin", "busybox")
	if _, err := os.Stat(program); err != nil {
		program = filepath.Join(unpacked, "bin", "busybox")
	}
	libraries, err := sharedLibraries(ctx, program)
	if err != nil {
		return err
	}
	for _, library := range libraries {
		if err := copyFile(library, filepath.Join(root, library)); err != nil {
			return err
		}
	}
	bin := filepath.Join(root, "bin")
	if err := copyFile(program, filepath.Join(bin, "busybox")); err != nil {
		return err
	}
	for _, dir := range []string{"etc", "root", "proc", "sys", "dev", "usr/bin", "var", "run"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			return fmt.Errorf("making /%s: %w", dir, err)
		}
	}
	names, err := exec.CommandContext(ctx, program, "--list").Output()
	if err != nil {
		return fmt.Errorf("asking busybox for its names: %w", err)
	}
	for _, name := range strings.Fields(string(names)) {
		if name == "busybox" {
			continue
		}
		if err := os.Symlink("busybox", filepath.Join(bin, name)); err != nil {
			return fmt.Errorf("linking %s to busybox: %w", name, err)
		}
	}
	for file, content := range map[string]string{"passwd": "root:x:0:0:root:/root:/bin/sh\n", "group": "root:x:0:\n"} {
		if err := os.WriteFile(filepath.Join(root, "etc", file), []byte(content), 0o644); err != nil {
			return fmt.Errorf("writing /etc/%s: %w", file, err)
		}
	}
	return nil
}

// sharedLibraries returns the paths of the libraries, and of the loader, that a
// program is linked to.
func sharedLibraries(ctx context.Context, program string) ([]string, error) {
	output, err := exec.CommandContext(ctx, "ldd", program).Output()
	if err != nil {
		return nil, fmt.Errorf("asking which libraries %s needs: %w", program, err)
	}
	return parseLdd(string(output)), nil
}

// parseLdd reads lines such as "libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6
// (0x7f...)" and "/lib64/ld-linux-x86-64.so.2 (0x7f...)".
func parseLdd(output string) []string {
	var paths []string
	for _, field := range strings.Fields(output) {
		if strings.HasPrefix(field, "/") {
			paths = append(paths, field)
		}
	}
	return paths
}
