package ray

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
)

// rayProgram stands in for Ray. It writes down its arguments, prints one line, and fails as often as the file named by
// FAILURES has lines. It is a script and not the test binary, because that takes very long to start under -race.
const rayProgram = `
printf '%s\0' "$#" "$@" >> "$CALLS"
echo "printed by Ray"
mapfile failures 2> /dev/null < "$FAILURES" || exit 0
[ "${#failures[@]}" -eq 0 ] && exit 0
printf '%s' "${failures[@]:1}" > "$FAILURES"
exit 1
`

// container runs lines of shell as a kubelet and a container would.
type container struct {
	dir string
	// variables are those of the container, which both the kubelet and the shell know.
	variables map[string]string
}

func newContainer(t *testing.T, variables map[string]string) container {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatalf("the test runs generated lines of shell: %v", err)
	}
	c := container{dir: t.TempDir(), variables: variables}
	for _, sub := range []string{"bin", "work"} {
		if err := os.Mkdir(c.path(sub), 0o700); err != nil {
			t.Fatalf("making a directory for the container: %v", err)
		}
	}
	for name, script := range map[string]string{"ray": rayProgram, "sleep": "exit 0\n"} {
		if err := os.WriteFile(c.path("bin", name), []byte("#!"+bash+"\n"+script), 0o700); err != nil {
			t.Fatalf("putting the stand-in for %s in place: %v", name, err)
		}
	}
	c.failFirst(t, 0)
	return c
}

func (c container) path(parts ...string) string {
	return filepath.Join(append([]string{c.dir}, parts...)...)
}

// failFirst makes Ray fail the given number of times.
func (c container) failFirst(t *testing.T, times int) {
	t.Helper()
	if err := os.WriteFile(c.path("failures"), bytes.Repeat([]byte("\n"), times), 0o600); err != nil {
		t.Fatalf("preparing failures of Ray: %v", err)
	}
}

// result is what running a line of shell led to.
type result struct {
	// calls are the arguments of each call of Ray.
	calls [][]string
	// commands is the number of commands that the shell ran, Ray included.
	commands int
	stdout   string
	stderr   string
	err      error
}

// run gives the line to the shell after the kubelet's replacements.
func (c container) run(line string) result {
	return c.runExpanded(expandAsKubelet(line, c.variables))
}

// runExpanded gives the line to the shell and counts the commands that the shell runs.
func (c container) runExpanded(line string) result {
	for _, name := range []string{"calls", "commands"} {
		if err := os.RemoveAll(c.path(name)); err != nil {
			return result{err: err}
		}
	}
	prefix := `set -T; exec 3>>"$COMMANDS"; unset COMMANDS; trap 'echo >&3' DEBUG; `
	cmd := exec.Command("bash", "-c", "--", prefix+line)
	cmd.Dir = c.path("work")
	cmd.Env = []string{
		"PATH=" + c.path("bin"), "COMMANDS=" + c.path("commands"), "CALLS=" + c.path("calls"), "FAILURES=" + c.path("failures"),
	}
	for name, value := range c.variables {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	calls, callsErr := c.calls()
	executed, readErr := os.ReadFile(c.path("commands"))
	if errors.Is(readErr, fs.ErrNotExist) {
		readErr = nil
	}
	return result{
		calls: calls, commands: bytes.Count(executed, []byte("\n")),
		stdout: stdout.String(), stderr: stderr.String(), err: errors.Join(err, callsErr, readErr),
	}
}

// calls reads what the stand-in for Ray wrote: for each call the number of arguments and the arguments.
func (c container) calls() ([][]string, error) {
	text, err := os.ReadFile(c.path("calls"))
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
			return nil, fmt.Errorf("the calls of Ray cannot be read from %q", text)
		}
		calls, words = append(calls, words[1:count+1]), words[count+1:]
	}
	return calls, nil
}

// expandAsKubelet replaces references to variables in an argument of a container. The rules are those of the
// documentation of the field "args": $$ stands for $, and a reference to an unknown variable stays as it is.
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
