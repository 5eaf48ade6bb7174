package ray

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain lets the test binary stand in for the programs that a generated line of shell calls.
func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case "ray":
		os.Exit(standInForRay())
	case "sleep":
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// standInForRay prints its arguments as JSON. As "ray health-check" it fails as long as the file named by FAILURES
// holds a character, and takes one away.
func standInForRay() int {
	text, err := json.Marshal(os.Args[1:])
	if err != nil {
		return 2
	}
	fmt.Println(string(text))
	file := os.Getenv("FAILURES")
	if file == "" {
		return 0
	}
	left, err := os.ReadFile(file)
	if err != nil || len(left) == 0 {
		return 0
	}
	if err := os.WriteFile(file, left[1:], 0o600); err != nil {
		return 2
	}
	return 1
}

// container runs lines of shell as a kubelet and a container would.
type container struct {
	dir string
	// variables are those of the container, which both the kubelet and the shell know.
	variables map[string]string
}

func newContainer(t *testing.T, variables map[string]string) container {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatalf("finding the test binary: %v", err)
	}
	dir := t.TempDir()
	for _, program := range []string{"ray", "sleep"} {
		if err := os.Symlink(self, filepath.Join(dir, program)); err != nil {
			t.Fatalf("putting the stand-in for %s in place: %v", program, err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "work"), 0o700); err != nil {
		t.Fatalf("making the working directory: %v", err)
	}
	return container{dir: dir, variables: variables}
}

// result is what running a line of shell led to.
type result struct {
	calls    [][]string
	commands int
	stdout   string
	stderr   string
	err      error
}

// run gives the line to the shell after the kubelet's replacements, and counts the commands that the shell runs.
func (c container) run(line string) result {
	log := filepath.Join(c.dir, "commands")
	if err := os.RemoveAll(log); err != nil {
		return result{err: err}
	}
	prefix := `set -T; exec 3>>"$COMMANDS"; unset COMMANDS; trap 'echo >&3' DEBUG; `
	cmd := exec.Command("bash", "-c", "--", prefix+expandAsKubelet(line, c.variables))
	cmd.Dir = filepath.Join(c.dir, "work")
	cmd.Env = []string{"PATH=" + c.dir, "COMMANDS=" + log}
	for name, value := range c.variables {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	got := result{err: cmd.Run(), stdout: stdout.String(), stderr: stderr.String()}
	executed, _ := os.ReadFile(log)
	got.commands = bytes.Count(executed, []byte("\n"))
	for line := range strings.Lines(got.stdout) {
		var call []string
		if json.Unmarshal([]byte(line), &call) == nil {
			got.calls = append(got.calls, call)
		}
	}
	return got
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
