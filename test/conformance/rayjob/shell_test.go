package rayjob

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

// stub stands for a program: it writes down how it was called, and "ray job status" fails if it is told to.
const stub = `#!/bin/bash
printf '%s\0' "${0##*/}" "$@" >>"$CALLS"
printf '\1' >>"$CALLS"
[ -n "$STATUS_FAILS" ] && [ "$2" = status ] && exit 1
exit 0
`

// runScript runs the command of a submitter in a real shell, with programs that only write down how they are called, and
// returns their calls. Unless fail is empty, Ray does not have the job.
func (e *env) runScript(c corev1.Container, fail string) [][]string {
	e.t.Helper()
	programs := e.t.TempDir()
	for _, program := range []string{"ray", "python", "python3", "sleep"} {
		e.Expect(os.WriteFile(filepath.Join(programs, program), []byte(stub), 0o755)).To(Succeed())
	}
	calls := filepath.Join(programs, "calls")
	command := slices.Concat(c.Command, c.Args)
	for i := range command {
		command[i] = strings.ReplaceAll(command[i], "$$", "$") // as the kubelet does
	}
	shell := exec.CommandContext(e.t.Context(), command[0], command[1:]...)
	shell.Env = []string{"PATH=" + programs + ":/usr/bin:/bin", "CALLS=" + calls, "STATUS_FAILS=" + fail}
	for _, variable := range c.Env {
		shell.Env = append(shell.Env, variable.Name+"="+variable.Value)
	}
	text, err := shell.CombinedOutput()
	e.Expect(err).ToNot(HaveOccurred(), "%s", text)
	written, err := os.ReadFile(calls)
	e.Expect(err).ToNot(HaveOccurred())
	var all [][]string
	for call := range strings.SplitSeq(strings.TrimSuffix(string(written), "\x01"), "\x01") {
		all = append(all, strings.Split(strings.TrimSuffix(call, "\x00"), "\x00"))
	}
	return all
}
