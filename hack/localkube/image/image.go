// Package image writes container images as OCI archives, without Docker and
// without a registry.
//
// An archive holds one image of one layer under any number of names. It is what
// `ctr --namespace k8s.io images import FILE` reads; containerd 1.6 and 2.x were
// tried. The same input gives the same bytes: entries are sorted, times are
// fixed, and names of users are left out.
package image

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// Spec says what goes into an image and how its containers start.
type Spec struct {
	// Names are the references under which the image is imported. At least one
	// is needed, each with its registry and tag spelled out, for example
	// "docker.io/library/busybox:1": the kubelet looks images up in that form,
	// and an archive cannot say "busybox".
	Names []string

	// Root is the directory that becomes "/" of the image. Sockets and device
	// nodes in it are left out: the container runtime brings its own /dev.
	// Extended attributes, and so file capabilities, are not carried over.
	Root string

	// RootOwned records every file as owned by user 0 and group 0, whoever
	// owns it on this machine. Otherwise owners are kept, which makes sense
	// for a root file system that was built by root.
	RootOwned bool

	// Entrypoint and Cmd are the process and its default arguments. A Pod's
	// `command` replaces the first, its `args` the second.
	Entrypoint []string
	Cmd        []string

	// User is a name, "uid" or "uid:gid". Empty means root.
	User string

	// Env holds KEY=value pairs. DefaultPath is added when no PATH is given.
	Env []string

	// WorkingDir is the directory that processes start in. Default is "/".
	WorkingDir string
}

// DefaultPath is the PATH of an image that does not set one.
const DefaultPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// fixedTime returns the modification time of every file of an image. It is not
// the Unix epoch because zip files, Python wheels among them, cannot hold times
// before 1980.
func fixedTime() time.Time {
	return time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)
}

// Pack writes the image described by spec to the archive outFile. The file
// appears only when it is complete; an existing one is replaced. Layers are not
// compressed: the archive stays on the machine that it was made on, where
// packing and unpacking would cost more than the space.
func Pack(ctx context.Context, spec Spec, outFile string) (err error) {
	if err := spec.validate(); err != nil {
		return fmt.Errorf("image for %s: %w", outFile, err)
	}
	part, err := os.CreateTemp(filepath.Dir(outFile), "."+filepath.Base(outFile)+".*")
	if err != nil {
		return fmt.Errorf("creating image archive %s: %w", outFile, err)
	}
	defer func() {
		if err != nil {
			part.Close()
			os.Remove(part.Name())
		}
	}()
	if err := writeArchive(ctx, part, spec); err != nil {
		return fmt.Errorf("writing image archive %s: %w", outFile, err)
	}
	if err := part.Chmod(0o644); err != nil {
		return fmt.Errorf("setting the mode of image archive %s: %w", outFile, err)
	}
	if err := part.Close(); err != nil {
		return fmt.Errorf("closing image archive %s: %w", outFile, err)
	}
	if err := os.Rename(part.Name(), outFile); err != nil {
		return fmt.Errorf("putting image archive %s in place: %w", outFile, err)
	}
	return nil
}

func (s Spec) validate() error {
	if len(s.Names) == 0 {
		return errors.New("it has no name")
	}
	// An import would take a short name as it is, and no Pod would find it.
	full := regexp.MustCompile(`^[a-z0-9-]+([.:][a-z0-9.:-]+)?(/[a-z0-9._-]+)+:[A-Za-z0-9_][A-Za-z0-9._-]*$`)
	for _, name := range s.Names {
		registry, _, _ := strings.Cut(name, "/")
		if !full.MatchString(name) || !strings.ContainsAny(registry, ".:") && registry != "localhost" {
			return fmt.Errorf("name %q must be of the form registry/path:tag, for example docker.io/library/busybox:1", name)
		}
	}
	for _, pair := range s.Env {
		if key, _, found := strings.Cut(pair, "="); !found || key == "" {
			return fmt.Errorf("environment entry %q must be of the form KEY=value", pair)
		}
	}
	info, err := os.Stat(s.Root)
	if err != nil {
		return fmt.Errorf("looking at its root directory: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("its root %s is not a directory", s.Root)
	}
	return nil
}
