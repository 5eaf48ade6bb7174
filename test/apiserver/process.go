package apiserver

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// EnvLocalkube names the localkube program to use. Without it, the program is
// built from hack/localkube of this repository.
const EnvLocalkube = "HELIOSTAT_LOCALKUBE"

// server is a running `localkube apiserver`, and what it has announced.
type server struct {
	// Kubeconfig is the path of the administrator's kubeconfig.
	Kubeconfig string `json:"kubeconfig"`

	command *exec.Cmd
	stdin   io.Closer
	ended   chan struct{}
}

// launch starts a server and returns when it is ready.
func launch(apiServerArgs ...string) (*server, error) {
	program, err := localkube()
	if err != nil {
		return nil, err
	}
	args := []string{"apiserver"}
	for _, arg := range apiServerArgs {
		args = append(args, "--apiserver-arg="+arg)
	}
	command := exec.Command(program, args...)
	// The program ends when this pipe is closed, which the kernel does for us
	// if we are killed.
	stdin, err := command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("preparing %s: %w", program, err)
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("preparing %s: %w", program, err)
	}
	// A copy, since a child that held our own standard error would keep
	// `go test` waiting for it.
	var said tee
	command.Stderr = &said
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", program, err)
	}
	started := &server{command: command, stdin: stdin, ended: make(chan struct{})}
	line, readErr := bufio.NewReader(stdout).ReadBytes('\n')
	go func() {
		defer close(started.ended)
		// How it ended has no one to tell: either we asked for it, or the
		// tests that use it fail with connections refused.
		_ = command.Wait()
	}()
	if readErr != nil {
		<-started.ended
		return nil, fmt.Errorf("%s apiserver ended before it was ready:\n%s", program, said.String())
	}
	if err := json.Unmarshal(line, started); err != nil || started.Kubeconfig == "" {
		started.stop()
		return nil, fmt.Errorf("%s apiserver announced %q, want JSON with a kubeconfig", program, line)
	}
	return started, nil
}

// stop ends the server and waits until it has cleaned up.
func (s *server) stop() {
	s.stdin.Close()
	select {
	case <-s.ended:
	case <-time.After(time.Minute):
		_ = s.command.Process.Kill()
		<-s.ended
	}
}

// tee shows what the program says about its progress and keeps it for an error.
type tee struct{ bytes.Buffer }

func (t *tee) Write(text []byte) (int, error) {
	os.Stderr.Write(text)
	return t.Buffer.Write(text)
}

// localkube returns the program to run, which it builds if it has to.
func localkube() (string, error) {
	if program := os.Getenv(EnvLocalkube); program != "" {
		if _, err := os.Stat(program); err != nil {
			return "", fmt.Errorf("%s does not name a program: %w", EnvLocalkube, err)
		}
		return program, nil
	}
	source, err := sourceFolder()
	if err != nil {
		return "", err
	}
	cache := os.Getenv("HELIOSTAT_CACHE")
	if cache == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("finding a cache folder (set HELIOSTAT_CACHE to choose one): %w", err)
		}
		cache = filepath.Join(base, "heliostat")
	}
	// Go's own cache makes this a matter of a second. The file is replaced as a
	// whole, so test processes that build it at the same time do no harm.
	dir := filepath.Join(cache, "bin")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("making the cache folder: %w", err)
	}
	part := filepath.Join(dir, fmt.Sprintf(".localkube-%d", os.Getpid()))
	defer os.Remove(part)
	build := exec.Command("go", "build", "-o", part, "./cmd/localkube")
	build.Dir = source
	build.Env = append(os.Environ(), "GOWORK=off")
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building localkube in %s (or set %s to a built one): %w\n%s", source, EnvLocalkube, err, output)
	}
	program := filepath.Join(dir, "localkube")
	if err := os.Rename(part, program); err != nil {
		return "", fmt.Errorf("putting localkube in place: %w", err)
	}
	return program, nil
}

// sourceFolder finds hack/localkube of this repository. Tests run in the folder
// of their package, so it is somewhere above.
func sourceFolder() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the repository: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		candidate := filepath.Join(dir, "hack", "localkube")
		module, err := os.ReadFile(filepath.Join(candidate, "go.mod"))
		if err == nil && strings.HasPrefix(string(module), "module github.com/heliostat-io/heliostat/hack/localkube\n") {
			return candidate, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("no hack/localkube in " + start + " or above: set " + EnvLocalkube + " to a localkube program")
		}
	}
}
