package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// runtime talks to the containerd of one node by its own command-line client.
type runtime struct {
	socket string
}

func (m Manager) runtime(n int) runtime {
	_, run := m.Dirs.Node(n)
	return runtime{socket: filepath.Join(run, "containerd.sock")}
}

// ctr runs containerd's client in the namespace that the kubelet uses.
func (r runtime) ctr(ctx context.Context, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "ctr", append([]string{"--address", r.socket, "--namespace", "k8s.io"}, args...)...)
	var out, problem bytes.Buffer
	command.Stdout, command.Stderr = &out, &problem
	if err := command.Run(); err != nil {
		said := strings.TrimSpace(problem.String())
		return "", fmt.Errorf("running ctr %s: %w: %s", strings.Join(args, " "), err, said)
	}
	return out.String(), nil
}

// ready returns nil when containerd answers.
func (r runtime) ready(ctx context.Context) error {
	_, err := r.ctr(ctx, "version")
	return err
}

// containers returns the ids of all containers that containerd knows, running
// or not.
func (r runtime) containers(ctx context.Context) ([]string, error) {
	out, err := r.ctr(ctx, "containers", "list", "--quiet")
	if err != nil {
		return nil, err
	}
	return strings.Fields(out), nil
}

// forgetContainers removes all containers. None of them runs any more.
func (r runtime) forgetContainers(ctx context.Context) error {
	ids, err := r.containers(ctx)
	if err != nil || len(ids) == 0 {
		return err
	}
	// A task is what is left of a process that was killed; its container cannot
	// be removed before it. Where containerd has noticed already there is none.
	_, taskErr := r.ctr(ctx, append([]string{"tasks", "delete", "--force"}, ids...)...)
	if _, err := r.ctr(ctx, append([]string{"containers", "delete"}, ids...)...); err != nil {
		return errors.Join(err, taskErr)
	}
	return nil
}

// images returns the digest of each image by name.
func (r runtime) images(ctx context.Context) (map[string]string, error) {
	out, err := r.ctr(ctx, "images", "list")
	if err != nil {
		return nil, err
	}
	return parseImages(out), nil
}

// parseImages reads the table that `ctr images list` prints, whose first columns
// are name, type and digest.
func parseImages(table string) map[string]string {
	digests := map[string]string{}
	for line := range strings.Lines(table) {
		if fields := strings.Fields(line); len(fields) >= 3 && strings.HasPrefix(fields[2], "sha256:") {
			digests[fields[0]] = fields[2]
		}
	}
	return digests
}

// importArchive imports the images of an archive.
func (r runtime) importArchive(ctx context.Context, archive string) error {
	_, err := r.ctr(ctx, "images", "import", archive)
	return err
}
