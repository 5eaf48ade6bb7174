package rayjob

import (
	"encoding/json"
	"fmt"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
)

// withPython names the test that has real Python do what the submitters do.
const withPython = "with real Python: TestScriptsWithRealPython in internal/rayjob"

// idCases are about what is submitted, and under which id.
func idCases() []Case {
	return []Case{
		{Row: 90, Kind: better, Weak: []string{"RJ-W17", "RJ-W19"}, Theirs: "some writes leave a job that runs twice, or never",
			Given: "every scenario of a RayJob", When: "the operator crashes after each single write", Then: "one cluster and one submission for each attempt, and the same end",
			How: "what was decided is written before it is done", Elsewhere: "simulated: TestIncidentAtEveryWrite in test/sim"},
		{Row: 92, Kind: better, Weak: []string{"RJ-W20"}, Theirs: "the other job is taken for ours",
			Given: "clusterSelector, spec.jobId under which somebody else runs a job", When: "the RayJob starts", Then: "Failed, SubmissionFailed; the other job is left alone, also on deletion",
			How: "our jobs carry a mark in their metadata", Run: foreignID},
		{Row: 93, Kind: better, Weak: []string{"RJ-W21"}, Theirs: "the submitter's shell expands them",
			Given: "runtime environment and metadata with $HOME and backticks", When: "the job is submitted", Then: "Ray gets the literal text",
			How: "nothing of the user's is left to a shell", Elsewhere: withPython, Run: literalText},
		{Row: 94, Kind: better, Weak: []string{"RJ-W21"}, Theirs: "b runs in the submitter's Pod",
			Given: "entrypoint a && b", When: "the job is submitted", Then: "Ray gets the whole text as the entrypoint",
			How: "the entrypoint is one word for the submitter's shell", Elsewhere: withPython, Run: func(e *env) { e.reachesRay("a && b") }},
	}
}

func foreignID(e *env) {
	cluster := e.standing("shared")
	ray := e.dashboardOf(cluster.Name)
	ray.PutJob(fakedashboard.Job{SubmissionID: "mine", Entrypoint: "python theirs.py", Step: fakedashboard.Step{Status: "RUNNING"}})
	job := e.given(overHTTP, onto(cluster.Name), func(j *rayv1.RayJob) { j.Spec.JobId = "mine" })
	e.fails(job, rayv1.SubmissionFailed)
	e.Expect(job.Status.Message).To(ContainSubstring("mine"))
	before := job.DeepCopy()
	e.Expect(e.Delete(e.t.Context(), job)).To(Succeed())
	e.gone(job)
	e.Expect(e.inRay(before, ray)).To(Equal("RUNNING"))
	e.Expect(ray.Requests(fakedashboard.EndpointStop)).To(BeZero())
}

func literalText(e *env) {
	const text = "$HOME `id` $(id) \\ \" '"
	odd := func(j *rayv1.RayJob) {
		j.Spec.RuntimeEnvYAML = fmt.Sprintf("env_vars: {A: %q}", text)
		j.Spec.Metadata = map[string]string{"note": text}
	}
	job, ray := e.submitted(named("http"), overHTTP, odd)
	in, _ := ray.Job(job.Status.JobId)
	e.Expect(in.RuntimeEnv).To(Equal(map[string]any{"env_vars": map[string]any{"A": text}}))
	e.Expect(in.Metadata).To(HaveKeyWithValue("note", text))

	e.Expect(e.handed(e.given(odd))).To(ContainElements(
		Equal(map[string]any{"env_vars": map[string]any{"A": text}}), HaveKeyWithValue("note", text)))
}

// reachesRay checks that Ray gets the text as the entrypoint, over HTTP and from a submitter.
func (e *env) reachesRay(entrypoint string) {
	e.t.Helper()
	runs := func(j *rayv1.RayJob) { j.Spec.Entrypoint = entrypoint }
	job, ray := e.submitted(named("http"), overHTTP, runs)
	in, _ := ray.Job(job.Status.JobId)
	e.Expect(in.Entrypoint).To(Equal(entrypoint))

	e.Expect(e.handed(e.given(runs))).To(ContainElement(HaveKeyWithValue("entrypoint", entrypoint)))
}

// handed runs the submitter's command in a real shell and returns the JSON objects that Ray's programs are given.
func (e *env) handed(job *rayv1.RayJob) []map[string]any {
	e.t.Helper()
	e.phase(job, rayv1.JobDeploymentStatusRunning)
	var objects []map[string]any
	for _, call := range e.runScript(container(e.submitter(job).Spec.Template), "Ray does not have the job") {
		for _, argument := range call {
			var object map[string]any
			if json.Unmarshal([]byte(argument), &object) == nil {
				objects = append(objects, object)
			}
		}
	}
	return objects
}

// crowdCases are about many jobs at once.
func crowdCases() []Case {
	return []Case{
		{Row: 95, Kind: better, Weak: []string{"RJ-W22"}, Theirs: "every pass of every job waits for the dead dashboard",
			Given: "50 jobs that run on five clusters", When: "the dashboard of one cluster hangs", Then: "the jobs of the other four are followed",
			How: "Ray is asked in the background, one dashboard apart from the other; see also TestSlowDashboardsDelayNobodyElse in test/bench", Run: oneHangs},
	}
}

func oneHangs(e *env) {
	const clusters, each = 5, 10
	var all []*rayv1.RayJob
	for c := range clusters {
		cluster := e.standing(fmt.Sprintf("shared-%d", c))
		for i := range each {
			all = append(all, e.given(overHTTP, named(fmt.Sprintf("job-%d-%d", c, i)), onto(cluster.Name)))
		}
	}
	const patience = 5 * time.Minute // so many jobs keep a small machine busy
	e.Eventually(e.jobsThat(func(s rayv1.RayJobStatus) bool { return s.JobStatus == rayv1.JobStatusRunning }), patience).Should(Equal(clusters * each))
	hung := e.ray(all[0])
	hung.Inject(fakedashboard.Fault{Never: true})
	e.Eventually(e.jobsThat(func(s rayv1.RayJobStatus) bool { return s.JobStatusCheckFailureStartTime != nil }), patience).Should(Equal(each))
	for _, job := range all[each:] {
		e.refresh(job)
		e.Rays.Dashboard(job.Status.DashboardURL).SetStep(job.Status.JobId, fakedashboard.Step{Status: "SUCCEEDED"})
	}
	told := time.Now()
	e.Eventually(e.jobsThat(func(s rayv1.RayJobStatus) bool { return s.JobDeploymentStatus == rayv1.JobDeploymentStatusComplete })).
		Should(Equal((clusters - 1) * each))
	e.t.Logf("%d jobs were Complete %s after Ray said so", len(all)-each, time.Since(told).Round(time.Millisecond))
	for _, job := range all[:each] {
		e.refresh(job)
		e.Expect(job.Status.JobDeploymentStatus).To(Equal(rayv1.JobDeploymentStatusRunning), e.told(job))
	}
}

// jobsThat counts the RayJobs with such a status.
func (e *env) jobsThat(are func(rayv1.RayJobStatus) bool) func() int {
	return func() int {
		list, count := &rayv1.RayJobList{}, 0
		e.Expect(e.List(e.t.Context(), list, client.InNamespace(e.ns))).To(Succeed())
		for _, job := range list.Items {
			if are(job.Status) {
				count++
			}
		}
		return count
	}
}
