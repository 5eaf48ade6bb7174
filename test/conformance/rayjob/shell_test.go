package rayjob

import (
	"slices"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-io/heliostat/test/fakecontainer"
)

// stub stands for a program: it writes down how it was called, and "ray job status" fails if it is told to.
const stub = fakecontainer.Recorder + `
[ -n "$STATUS_FAILS" ] && [ "$2" = status ] && exit 1
exit 0
`

// runScript runs the command of a submitter in a real shell, with programs that only write down how they are called, and
// returns their calls. Unless fail is empty, Ray does not have the job.
func (e *env) runScript(c corev1.Container, fail string) [][]string {
	e.t.Helper()
	fake := fakecontainer.New(e.t, map[string]string{"STATUS_FAILS": fail})
	fake.Path = "/usr/bin:/bin"
	for _, variable := range c.Env {
		fake.Variables[variable.Name] = variable.Value
	}
	for _, program := range []string{"ray", "python", "python3", "sleep"} {
		fake.Install(e.t, program, stub)
	}
	ended, err := fake.Run(slices.Concat(c.Command, c.Args)...)
	e.Expect(err).ToNot(HaveOccurred())
	e.Expect(ended.Code).To(BeZero(), "%s%s", ended.Stdout, ended.Stderr)
	return ended.Calls
}
