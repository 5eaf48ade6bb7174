// Package rayimage builds a container image with Ray from Debian and Python
// packages, without a registry.
//
// The image stands in for the upstream Ray images in tests and in the demo: it
// has the same user, the same commands on the PATH and, by Names, the same
// names, so that manifests written for those run unedited. It holds one version
// of Ray under all those names: what a manifest says about Ray's version is
// taken for a wish, as long as one job or cluster uses the same image throughout.
//
// Runtime environments (`runtime_env` with `pip`) work without any network for
// the packages in files/wheelhouse.in, which the image carries as wheels.
package rayimage

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"runtime"

	"github.com/heliostat-io/heliostat/hack/localkube/image"
)

// RayVersion is the version of Ray in the image. files/ray.in and files/ray.txt
// say the same, which a test watches.
const RayVersion = "2.60.0"

// debianSuite is the Debian release that the image is made of. Its Python is
// 3.11, for which files/*.txt were resolved.
const debianSuite = "bookworm"

//go:embed files rayimage.go chroot.go
var recipe embed.FS

// Name is the image's own name, for manifests of ours.
func Name() string { return "docker.io/heliostat/ray:" + RayVersion }

// Names lists every name that the image is loaded under: its own first, then
// those that samples and charts for KubeRay use for images that run on a CPU, and
// for Redis.
func Names() []string {
	names := []string{Name(), "docker.io/library/redis:7.4.0"}
	for _, tag := range []string{
		RayVersion, RayVersion + "-py311",
		"2.46.0", "2.51.0", "2.52.0", "2.52.0-py310", "2.53.0", "2.55.0", "2.55.1", "2.56.0",
		"2.57.0", "2.57.0-py310", "2.58.0", "2.58.0-py312", "2.59.0", "nightly",
	} {
		names = append(names, "docker.io/rayproject/ray:"+tag)
	}
	return names
}

// debianPackages lists what is installed beside Debian's essential packages:
// what Ray itself needs, the commands that start scripts and exec probes of Ray
// Pods call, and a Redis server for the samples that bring one.
func debianPackages() []string {
	return []string{"ca-certificates", "openssl", "procps", "python3", "python3-pip", "redis-server", "wget"}
}

// bootstrapArgs returns the arguments of mmdebstrap. No mirror is named: it takes
// Debian's usual one, or the one in this machine's settings.
func bootstrapArgs(root string) []string {
	// A build that is interrupted starts anew, so nothing needs to reach the disk
	// at once; waiting for that made the build several times slower on a busy one.
	args := []string{"--mode=root", "--variant=minbase", "--format=directory", "--dpkgopt=force-unsafe-io"}
	for _, unused := range []string{"doc", "info", "locale", "man"} {
		args = append(args, "--dpkgopt=path-exclude=/usr/share/"+unused+"/*")
	}
	for _, name := range debianPackages() {
		args = append(args, "--include="+name)
	}
	return append(args, debianSuite, root)
}

func spec(root string) image.Spec {
	return image.Spec{
		Names: Names(),
		Root:  root,
		Cmd:   []string{"/bin/bash"},
		User:  "1000:100",
		Env: []string{
			image.DefaultPath,
			"HOME=/home/ray",
			"LANG=C.UTF-8",
			// Ray reports usage to a host that cannot be reached.
			"RAY_USAGE_STATS_ENABLED=0",
		},
		WorkingDir: "/home/ray",
	}
}

// cacheKey names an image by everything that decides its content, this package's
// own source included. Debian's packages are taken as they are on the day of the
// build.
func cacheKey() (string, error) {
	hash := sha256.New()
	fmt.Fprintln(hash, runtime.GOARCH)
	err := fs.WalkDir(recipe, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := recipe.ReadFile(path)
		if err != nil {
			return err
		}
		fmt.Fprintln(hash, path, len(content))
		hash.Write(content)
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("hashing the recipe of the Ray image: %w", err)
	}
	return hex.EncodeToString(hash.Sum(nil))[:16], nil
}
