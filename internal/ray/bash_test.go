package ray

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/heliostat-io/heliostat/test/fakecontainer"
)

// rayProgram stands in for Ray. It prints one line, and fails as often as the file named by FAILURES has lines.
const rayProgram = fakecontainer.Recorder + `
echo "printed by Ray"
mapfile failures 2> /dev/null < "$FAILURES" || exit 0
[ "${#failures[@]}" -eq 0 ] && exit 0
printf '%s' "${failures[@]:1}" > "$FAILURES"
exit 1
`

// container runs lines of shell that find no program but Ray and sleep, and counts the commands that the shell runs.
type container struct {
	*fakecontainer.Container
	// dir has the files by which it is counted and by which Ray fails.
	dir string
}

func newContainer(t *testing.T, variables map[string]string) container {
	t.Helper()
	c := container{Container: fakecontainer.New(t, maps.Clone(variables)), dir: t.TempDir()}
	if c.Variables == nil {
		c.Variables = map[string]string{}
	}
	c.Variables["COMMANDS"], c.Variables["FAILURES"] = c.path("commands"), c.path("failures")
	c.Install(t, "ray", rayProgram)
	c.Install(t, "sleep", "exit 0\n")
	c.failFirst(t, 0)
	return c
}

func (c container) path(name string) string { return filepath.Join(c.dir, name) }

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
	return c.runExpanded(fakecontainer.Expand(line, c.Variables))
}

// runExpanded gives the line to the shell and counts the commands that the shell runs.
func (c container) runExpanded(line string) result {
	if err := os.RemoveAll(c.path("commands")); err != nil {
		return result{err: err}
	}
	ended, err := c.Exec("bash", "-c", "--", `set -T; exec 3>>"$COMMANDS"; unset COMMANDS; trap 'echo >&3' DEBUG; `+line)
	if err == nil && ended.Code != 0 {
		err = fmt.Errorf("the shell ended with exit code %d", ended.Code)
	}
	executed, readErr := os.ReadFile(c.path("commands"))
	if errors.Is(readErr, fs.ErrNotExist) {
		readErr = nil
	}
	got := result{commands: bytes.Count(executed, []byte("\n")), stdout: ended.Stdout, stderr: ended.Stderr, err: errors.Join(err, readErr)}
	for _, call := range ended.Calls {
		got.calls = append(got.calls, call[1:])
	}
	return got
}
