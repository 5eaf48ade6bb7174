package rayimage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/heliostat-io/heliostat/hack/localkube/image"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/progress"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/state"
)

const (
	// keepUnused is how long the image of another recipe stays in the cache.
	keepUnused = 14 * 24 * time.Hour
	// heartbeat is how often a long step says that it goes on.
	heartbeat = 20 * time.Second
)

// Build returns the path of the Ray image's archive in the folder dir, which it
// makes unless dir has one that was made from the same recipe. Making it needs
// root, Debian or Ubuntu, about 2 GB in dir on a file system that allows device
// nodes, and Debian's and Python's packages as this machine is set up to get
// them. Several calls at the same time build once.
func Build(ctx context.Context, dir string, log *progress.Log) (string, error) {
	key, err := cacheKey()
	if err != nil {
		return "", err
	}
	b := &builder{archive: filepath.Join(dir, "ray-"+key+".tar"), log: log}
	if b.cached() {
		return b.archive, nil
	}
	if os.Geteuid() != 0 {
		return "", errors.New("building the Ray image makes a Debian root file system and needs root: run this command with sudo")
	}
	unlock, err := state.Lock(ctx, filepath.Join(dir, "ray.lock"), func() {
		log.Printf("waiting for another build of the Ray image")
	})
	if err != nil {
		return "", err
	}
	defer unlock()
	if b.cached() {
		return b.archive, nil
	}
	if err := b.build(ctx); err != nil {
		return "", fmt.Errorf("building the Ray image: %w", err)
	}
	return b.archive, b.removeUnused()
}

// builder makes one archive.
type builder struct {
	archive string
	log     *progress.Log
}

func (b *builder) cached() bool {
	info, err := os.Stat(b.archive)
	if err != nil {
		return false
	}
	// The time tells removeUnused that somebody wants it. A user who may not
	// set it may still use the image.
	_ = os.Chtimes(b.archive, time.Time{}, time.Now())
	b.log.Printf("Ray image: cached, %d MB", info.Size()/1e6)
	return true
}

func (b *builder) build(ctx context.Context) error {
	if err := b.installBootstrap(ctx); err != nil {
		return err
	}
	// The image's own user must be able to read what root installs.
	defer syscall.Umask(syscall.Umask(0o022))
	work := filepath.Join(filepath.Dir(b.archive), "ray.build")
	// A build that was killed could not clean up behind itself. Nothing can be
	// mounted in there: the steps mount in a mount namespace of their own.
	if err := os.RemoveAll(work); err != nil {
		return fmt.Errorf("removing what an earlier build left: %w", err)
	}
	if err := os.Mkdir(work, 0o755); err != nil {
		return fmt.Errorf("making the build directory: %w", err)
	}
	defer os.RemoveAll(work)

	root := filepath.Join(work, "root")
	err := b.during("making a Debian "+debianSuite+" root file system", func() error {
		return run(ctx, nil, "mmdebstrap", bootstrapArgs(root)...)
	})
	if err != nil {
		return err
	}
	c := &chroot{root: root}
	if err := c.prepare(); err != nil {
		return err
	}
	for _, step := range steps() {
		if err := b.during(step.Title, func() error { return c.runStep(ctx, step) }); err != nil {
			return err
		}
	}
	if err := c.clean(); err != nil {
		return err
	}
	if err := b.during("packing", func() error { return image.Pack(ctx, spec(root), b.archive) }); err != nil {
		return err
	}
	info, err := os.Stat(b.archive)
	if err != nil {
		return fmt.Errorf("looking at the archive: %w", err)
	}
	b.log.Printf("Ray image: built, %d MB", info.Size()/1e6)
	return nil
}

// during says what is being done and, while it lasts, that it goes on.
func (b *builder) during(title string, work func() error) error {
	b.log.Printf("Ray image: %s", title)
	done := make(chan error, 1)
	go func() { done <- work() }()
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-ticker.C:
			b.log.Printf("Ray image:   still %s", title)
		}
	}
}

// removeUnused removes the images of other recipes that nobody has asked for in
// a while: they are too big to pile up.
func (b *builder) removeUnused() error {
	archives, err := filepath.Glob(filepath.Join(filepath.Dir(b.archive), "ray-*.tar"))
	if err != nil {
		return fmt.Errorf("looking for old Ray images: %w", err)
	}
	for _, archive := range archives {
		info, err := os.Stat(archive)
		if err != nil || archive == b.archive || time.Since(info.ModTime()) < keepUnused {
			continue
		}
		if err := os.Remove(archive); err != nil {
			return fmt.Errorf("removing an old Ray image: %w", err)
		}
	}
	return nil
}

// installBootstrap installs the program that makes Debian root file systems.
func (b *builder) installBootstrap(ctx context.Context) error {
	if found("mmdebstrap") {
		return nil
	}
	if !found("apt-get") {
		return errors.New("mmdebstrap is not installed, and there is no apt-get to install it with: the Ray image is built on Debian or Ubuntu")
	}
	b.log.Printf("Ray image: installing mmdebstrap on this machine")
	if err := run(ctx, nil, "apt-get", "-q", "update"); err != nil {
		return err
	}
	// Ubuntu does not have Debian's keys unless asked for.
	env := append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	return run(ctx, env, "apt-get", "-q", "-y", "--no-install-recommends",
		"install", "mmdebstrap", "debian-archive-keyring")
}
