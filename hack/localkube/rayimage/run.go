package rayimage

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// tailLines is how much of a failed command's output an error carries.
const tailLines = 20

// run runs a command with exactly the environment env, or this process's if env
// is nil, and stays silent about its output unless it fails. The error does not
// repeat arguments or environment, which may hold credentials of a package index.
func run(ctx context.Context, env []string, name string, args ...string) error {
	var output bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = env
	cmd.Stdout, cmd.Stderr = &output, &output
	err := cmd.Run()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("running %s: %w", name, ctx.Err())
	}
	return fmt.Errorf("running %s: %w; its last lines were:\n%s", name, err, tail(output.String(), tailLines))
}

// tail returns the last count lines of text, each indented.
func tail(text string, count int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) > count {
		lines = lines[len(lines)-count:]
	}
	return "    " + strings.Join(lines, "\n    ")
}

func found(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}
