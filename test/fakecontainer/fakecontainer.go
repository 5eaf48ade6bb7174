// Package fakecontainer runs the commands of containers on this machine, as the kubelet and a container would, with stand-ins
// for the programs that they call.
package fakecontainer

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

// Recorder is a program that does nothing but write down how it is called, see Ended.Calls. It is a script and not the test
// binary, because that takes very long to start under -race. The script of a stand-in that does more begins with it.
const Recorder = `printf '%s\0' "$(($# + 1))" "${0##*/}" "$@" >> "$CALLS"
`

// Container is where commands run, one at a time.
type Container struct {
	// Variables are those of the container, which the kubelet and the processes both know.
	Variables map[string]string
	// Dir is the working directory, which is empty at first.
	Dir string
	// Path is where programs are found that have no stand-in, as in the variable PATH. Empty means nowhere.
	Path string

	programs, calls string
}

// New returns a container that has no program yet and is removed with the test.
func New(t testing.TB, variables map[string]string) *Container {
	programs := t.TempDir()
	return &Container{Variables: variables, Dir: t.TempDir(), programs: programs, calls: filepath.Join(t.TempDir(), "calls")}
}

// Install puts a script for bash in the place of a program.
func (c *Container) Install(t testing.TB, program, script string) {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatalf("the test runs generated lines of shell: %v", err)
	}
	if err := os.WriteFile(filepath.Join(c.programs, program), []byte("#!"+bash+"\n"+script), 0o700); err != nil {
		t.Fatalf("putting the stand-in for %s in place: %v", program, err)
	}
}

// Ended is what became of a command.
type Ended struct {
	// Calls are name and arguments of each stand-in that was called and is a Recorder.
	Calls [][]string
	// Code is the exit code.
	Code           int
	Stdout, Stderr string
}

// Run runs a command to its end, after the kubelet's replacements. An exit code other than zero is no error.
func (c *Container) Run(command ...string) (Ended, error) {
	expanded := make([]string, 0, len(command))
	for _, word := range command {
		expanded = append(expanded, Expand(word, c.Variables))
	}
	return c.Exec(expanded...)
}

// Exec is Run without the kubelet's replacements.
func (c *Container) Exec(command ...string) (Ended, error) {
	if err := os.RemoveAll(c.calls); err != nil {
		return Ended{}, err
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = c.Dir
	cmd.Env = []string{"PATH=" + strings.TrimSuffix(c.programs+":"+c.Path, ":"), "CALLS=" + c.calls}
	for name, value := range c.Variables {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		return Ended{}, fmt.Errorf("running %q: %w", command, err)
	}
	calls, err := readCalls(c.calls)
	return Ended{Calls: calls, Code: cmd.ProcessState.ExitCode(), Stdout: stdout.String(), Stderr: stderr.String()}, err
}

// readCalls reads what recorders wrote: for each call the number of words and the words.
func readCalls(path string) ([][]string, error) {
	text, err := os.ReadFile(path)
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

// Expand replaces references to variables in a word of a container's command, as the kubelet does. The rules are those of the
// documentation of the field "args": $$ stands for $, and a reference to an unknown variable stays as it is.
func Expand(text string, variables map[string]string) string {
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
