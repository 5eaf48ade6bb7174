//go:build e2e

package e2e

import (
	"strings"

	. "github.com/onsi/gomega"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// awkwardEntrypoint has all that a shell on the way to Ray would change: quotes, lines, variables, commands, operators.
const awkwardEntrypoint = `printf '%s\n' "it's here" 'a "quoted" $HOME' && echo $((40 + 2)) ; echo ` + "`echo Grüße, 世界`" + ` \# $((1)) # not said
python3 -c '
print("a backslash \\ and $HOME")
' | cat
`

const awkwardValue = "as it is: $HOME $(RAY_DASHBOARD_ADDRESS) $$ `id` 'q' \\"

// awkward gives the job that entrypoint, and texts of the same kind as metadata and in its runtime environment.
func awkward(job *rayv1.RayJob) *rayv1.RayJob {
	job.Spec.Entrypoint = awkwardEntrypoint
	job.Spec.Metadata = map[string]string{"team": awkwardValue}
	job.Spec.RuntimeEnvYAML = "env_vars:\n  TEXT: |-\n    " + awkwardValue + "\n"
	return job
}

// arrivesAsItIs: Ray has the very texts of the spec, and its shell, the only one, has made of them what is written there.
func (j jobTest) arrivesAsItIs(job *rayv1.RayJob) {
	j.succeeds(job)
	found := j.only(job)
	j.g.Expect(found.Entrypoint).To(Equal(awkwardEntrypoint))
	j.g.Expect(found.Metadata).To(HaveKeyWithValue("team", awkwardValue))
	j.g.Expect(found.RuntimeEnv.EnvVars).To(HaveKeyWithValue("TEXT", awkwardValue))
	j.g.Expect(strings.Split(j.output(job), "\n")).To(ContainElements(
		"it's here", `a "quoted" $HOME`, "42", "Grüße, 世界 # 1", `a backslash \ and $HOME`))
}
