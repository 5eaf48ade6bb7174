// Package builder builds the programs that a cluster runs and keeps them in the
// cache.
package builder

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/heliostat-io/heliostat/hack/localkube/internal/progress"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/state"
)

// heartbeat is how often a long build says that it is still at work.
const heartbeat = 20 * time.Second

// Builder builds from one set of sources into one folder.
type Builder struct {
	// Sources is a Go module with the main packages cmd/NAME.
	Sources fs.FS
	// Dir is the cache folder for programs.
	Dir string
	// Log is told what is built and how long it takes.
	Log *progress.Log
}

// Ensure returns the paths of the programs, in the order of names, and builds
// those that the cache does not have for these sources. Two callers at the same
// time build once.
func (b Builder) Ensure(ctx context.Context, names ...string) ([]string, error) {
	key, err := b.key()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(b.Dir, key)
	paths := make([]string, 0, len(names))
	for _, name := range names {
		paths = append(paths, filepath.Join(dir, name))
	}
	missing := b.missing(dir, names)
	if len(missing) == 0 {
		return paths, nil
	}
	release, err := state.Lock(ctx, filepath.Join(b.Dir, "lock"), func() {
		b.Log.Printf("waiting for another localkube to finish building")
	})
	if err != nil {
		return nil, err
	}
	defer release()
	if missing = b.missing(dir, names); len(missing) == 0 {
		return paths, nil
	}
	if err := b.build(ctx, dir, missing); err != nil {
		return nil, err
	}
	return paths, nil
}

func (b Builder) missing(dir string, names []string) []string {
	var missing []string
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			missing = append(missing, name)
		}
	}
	return missing
}

// key is the same as long as the sources and all that shapes the programs are.
func (b Builder) key() (string, error) {
	hash := sha256.New()
	fmt.Fprintln(hash, runtime.GOOS, runtime.GOARCH, runtime.Version(), linkerFlags())
	err := fs.WalkDir(b.Sources, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(b.Sources, path)
		if err != nil {
			return err
		}
		fmt.Fprintln(hash, path, len(content))
		hash.Write(content)
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("reading the sources of the programs: %w", err)
	}
	return hex.EncodeToString(hash.Sum(nil))[:16], nil
}

// kubernetesVersion is the release that go.mod pins; a program that is not told
// calls itself v0.0.0-master.
const kubernetesVersion = "v1.37.2"

// linkerFlags leave out debug information and set the versions that programs
// report.
func linkerFlags() string {
	var flags strings.Builder
	flags.WriteString("-s -w")
	minor := strings.Split(kubernetesVersion, ".")[1]
	for _, target := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for _, pair := range []string{
			"gitVersion=" + kubernetesVersion, "gitMajor=1", "gitMinor=" + minor,
			"gitCommit=" + strings.Repeat("0", 40), "gitTreeState=clean", "buildDate=2026-01-01T00:00:00Z",
		} {
			flags.WriteString(" -X " + target + "." + pair)
		}
	}
	return flags.String()
}

func (b Builder) build(ctx context.Context, dir string, names []string) error {
	goTool, err := exec.LookPath("go")
	if err != nil {
		return fmt.Errorf("building %s needs Go: %w", strings.Join(names, ", "), err)
	}
	work, err := os.MkdirTemp(b.Dir, ".build-*")
	if err != nil {
		return fmt.Errorf("making a folder to build in: %w", err)
	}
	defer os.RemoveAll(work)
	source, out := filepath.Join(work, "source"), filepath.Join(work, "out")
	if err := os.CopyFS(source, b.Sources); err != nil {
		return fmt.Errorf("unpacking the sources of the programs: %w", err)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return fmt.Errorf("making the folder for built programs: %w", err)
	}
	b.Log.Printf("building %s (about 15 minutes on two cores the first time, half a minute when Go's build cache has the packages)", strings.Join(names, ", "))
	args := []string{"build", "-v", "-mod=readonly", "-buildvcs=false", "-trimpath", "-ldflags", linkerFlags(), "-o", out + "/"}
	for _, name := range names {
		args = append(args, "./cmd/"+name)
	}
	command := exec.CommandContext(ctx, goTool, args...)
	command.Dir = source
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	if err := b.run(command); err != nil {
		return fmt.Errorf("building %s: %w", strings.Join(names, ", "), err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making the folder for built programs: %w", err)
	}
	for _, name := range names {
		if err := os.Rename(filepath.Join(out, name), filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("putting %s in place: %w", name, err)
		}
	}
	b.Log.Printf("built %s in %s", strings.Join(names, ", "), dir)
	return nil
}

// run runs go build, counts what it says it has compiled, and puts the rest of
// what it says into the error.
func (b Builder) run(command *exec.Cmd) error {
	reader, writer := io.Pipe()
	command.Stderr = writer
	lines := make(chan string)
	go func() {
		defer close(lines)
		scanner := bufio.NewScanner(reader)
		for scanner.Scan() {
			lines <- scanner.Text()
		}
		// What does not fit into a line must not make go build wait for us.
		_, _ = io.Copy(io.Discard, reader)
	}()
	if err := command.Start(); err != nil {
		writer.Close()
		return err
	}
	done := make(chan error, 1)
	go func() {
		err := command.Wait()
		writer.Close()
		done <- err
	}()

	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	var said strings.Builder
	compiled, fetched := 0, 0
	for lines != nil {
		select {
		case line, open := <-lines:
			switch {
			case !open:
				lines = nil
			case strings.HasPrefix(line, "go: downloading "):
				fetched++
			case isPackage(line):
				compiled++
			default:
				said.WriteString("\n  " + line)
			}
		case <-ticker.C:
			b.Log.Printf("  still building: %d modules fetched, %d packages compiled", fetched, compiled)
		}
	}
	if err := <-done; err != nil {
		return fmt.Errorf("%w; go build says:%s", err, said.String())
	}
	return nil
}

// isPackage tells the import paths that `go build -v` prints, one a line, from
// messages: they have no spaces, and messages do.
func isPackage(line string) bool {
	return line != "" && !strings.ContainsAny(line, " \t#")
}
