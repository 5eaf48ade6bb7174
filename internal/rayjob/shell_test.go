package rayjob

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// recorder stands in for a program that a script calls: it writes down its name and its arguments. As "ray job status" it
// says whether Ray knows the job.
const recorder = `
printf '%s\0' "$(($# + 1))" "${0##*/}" "$@" >> "$CALLS"
case "${0##*/} $1 $2" in
"ray job status") [ -e "$KNOWN" ] ;;
"sleep 2 ") printf . >> "$SLEPT" ;;
esac
`

// container runs a container's command as a kubelet does.
type container struct {
	dir string
	// env are variables of the container, which kubelet and shell both know.
	env map[string]string
}

// newContainer returns a container in which ray, python and sleep are recorders.
func newContainer(t *testing.T) container {
	t.Helper()
	c := container{dir: t.TempDir(), env: map[string]string{"HOME": "/home/ray", "RAY_JOB_SUBMISSION_ID": "expanded"}}
	for _, program := range []string{"ray", "python", "sleep"} {
		c.install(t, program, recorder)
	}
	return c
}

func (c container) path(name string) string { return filepath.Join(c.dir, name) }

func (c container) install(t *testing.T, program, script string) {
	t.Helper()
	if err := os.MkdirAll(c.path("bin"), 0o700); err != nil {
		t.Fatalf("making a directory for programs: %v", err)
	}
	if err := os.WriteFile(filepath.Join(c.path("bin"), program), []byte("#!/bin/bash\n"+script), 0o700); err != nil {
		t.Fatalf("putting the stand-in for %s in place: %v", program, err)
	}
}

// put writes a file by which the stand-ins are told something.
func (c container) put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(c.path(name), []byte(text), 0o600); err != nil {
		t.Fatalf("writing %s: %v", name, err)
	}
}

// has tells whether there is such a file.
func (c container) has(name string) bool {
	_, err := os.Stat(c.path(name))
	return err == nil
}

// ended is what became of a container.
type ended struct {
	// calls are name and arguments of each program that was called.
	calls          [][]string
	code           int
	stdout, stderr string
}

// run runs the command to its end.
func (c container) run(spec corev1.Container) (ended, error) {
	if err := os.RemoveAll(c.path("CALLS")); err != nil {
		return ended{}, err
	}
	args := append([]string{}, spec.Command[1:]...)
	for _, arg := range spec.Args {
		args = append(args, expandAsKubelet(arg, c.env))
	}
	cmd := exec.Command(spec.Command[0], args...)
	cmd.Dir = c.dir
	cmd.Env = []string{"PATH=" + c.path("bin") + ":/usr/bin:/bin"}
	for _, file := range []string{"CALLS", "KNOWN", "SLEPT", "SUBMITTED", "STATUS"} {
		cmd.Env = append(cmd.Env, file+"="+c.path(file))
	}
	for name, value := range c.env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return ended{}, err
	}
	calls, err := c.calls()
	return ended{calls: calls, code: cmd.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}, err
}

// calls reads what the recorders wrote.
func (c container) calls() ([][]string, error) {
	text, err := os.ReadFile(c.path("CALLS"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var calls [][]string
	for words := strings.Split(string(text), "\x00"); len(words) > 1; {
		count, err := strconv.Atoi(words[0])
		if err != nil || count >= len(words) {
			return nil, fmt.Errorf("the calls cannot be read from %q", text)
		}
		calls, words = append(calls, words[1:count+1]), words[count+1:]
	}
	return calls, nil
}

// expandAsKubelet replaces references to variables as the documentation of the field "args" has it: $$ stands for $, and
// a reference to an unknown variable stays as it is.
func expandAsKubelet(text string, variables map[string]string) string {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		rest := text[i:]
		end := strings.IndexByte(rest, ')')
		switch {
		case strings.HasPrefix(rest, "$$"):
			out.WriteByte('$')
			i++
		case strings.HasPrefix(rest, "$(") && end >= 0:
			value, known := variables[rest[2:end]]
			if !known {
				value = rest[:end+1]
			}
			out.WriteString(value)
			i += end
		default:
			out.WriteByte(text[i])
		}
	}
	return out.String()
}
