package rayjob

import (
	"fmt"
	"net/http"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
	"github.com/heliostat-io/heliostat/test/harness"
)

// lossCases are about jobs that vanish, and about what is no answer.
func lossCases() []Case {
	return []Case{
		{Row: 70, Kind: better, Weak: []string{"RJ-W6"}, Theirs: "submitted once more, in silence",
			Given: "HTTPMode, a job that runs", When: "the head starts anew without a fault tolerant store", Then: "Failed, JobLost; no second submission",
			How: "a job that vanishes after Ray had it is a failed attempt", Run: headStartsAnew},
		{Row: 71, Kind: better, Weak: []string{"RJ-W6"}, Theirs: "the cluster is made again under its name, and the job starts over",
			Given: "one retry, a job that runs", When: "its cluster is deleted", Then: "a second attempt on a cluster of another name, one failure",
			How: "a loss is a failed attempt", Run: clusterDeleted},
		{Row: 72, Kind: better, Weak: []string{"RJ-W7"}, Theirs: "jobStatus becomes empty, as if there were no job",
			Given: "a job that runs", When: "Ray answers 503 with a JSON object", Then: "jobStatus stays; the failure timer starts",
			How: "only a 2xx of the right shape is an answer", Run: jsonThatIsNoAnswer},
		{Row: 73, Kind: better, Weak: []string{"RJ-W7"}, Theirs: "jobStatus Failure; a missing Service leads to a submission",
			Given: "dashboards are asked through the API server, which finds nobody behind the Service", When: "Ray is asked, and later the Service is gone",
			Then: "jobStatus stays empty; nothing is submitted", How: "answers of the API server are not Ray's", Run: nobodyBehindTheProxy,
			Elsewhere: "404 in the API server's words: TestGetJobBelievesOnlyWhatRaySays in internal/ray/dashboard"},
		{Row: 89, Kind: better, Weak: []string{"RJ-W16"}, Theirs: "Failed after the time-out of status checks",
			Given: "InteractiveMode, a spec.jobId that nobody has submitted yet", When: "the head starts anew and then answers 404 for longer than the time-out",
			Then: "Running", How: "any answer ends the silence", Run: notSubmittedYet},
	}
}

func headStartsAnew(e *env) {
	job, ray := e.submitted(overHTTP)
	id := job.Status.JobId
	ray.Restart()
	e.fails(job, rayv1.JobLost)
	e.Expect(job.Status.Message).To(ContainSubstring(id))
	e.said(job, corev1.EventTypeWarning, "JobLost")
	e.rest()
	e.Expect(ray.Attempts(id)).To(Equal(1))
	e.Expect(ray.JobIDs()).To(BeEmpty())
	e.counts(job, 0, 1)
}

func clusterDeleted(e *env) {
	job, _ := e.submitted(overHTTP, tries(1))
	before := job.Status.DeepCopy()
	e.Expect(e.Delete(e.t.Context(), e.cluster(job))).To(Succeed())
	e.follow(job, func(s *rayv1.RayJobStatus) any { return s.Attempt }).Should(BeEquivalentTo(2))
	e.counts(job, 0, 1)
	e.said(job, corev1.EventTypeWarning, "JobLost")
	ray := e.runs(job)
	e.Expect(job.Status.RayClusterName).ToNot(Equal(before.RayClusterName))
	e.Expect(job.Status.JobId).ToNot(Equal(before.JobId))
	e.Expect(ray.Submissions(job.Status.JobId)).To(Equal(1))
	e.raySays(job, rayv1.JobStatusSucceeded)
	e.phase(job, rayv1.JobDeploymentStatusComplete)
	e.counts(job, 1, 1)
}

func jsonThatIsNoAnswer(e *env) {
	job, ray := e.submitted(overHTTP)
	ray.Inject(fakedashboard.Fault{Endpoint: fakedashboard.EndpointGet, Code: http.StatusServiceUnavailable,
		Body: `{"error": {"code": 503, "message": "upstream connect error"}}`})
	e.follow(job, func(s *rayv1.RayJobStatus) any { return s.JobStatusCheckFailureStartTime }).ShouldNot(BeNil())
	e.Expect(job.Status.JobStatus).To(Equal(rayv1.JobStatusRunning))
	ray.ClearFaults()
	e.follow(job, func(s *rayv1.RayJobStatus) any { return s.JobStatusCheckFailureStartTime }).Should(BeNil())
	e.Expect(job.Status.JobStatus).To(Equal(rayv1.JobStatusRunning))
	e.Expect(ray.Attempts(job.Status.JobId)).To(Equal(1))
}

func notSubmittedYet(e *env) {
	const silence = 12 * time.Second
	e.start(silenceOf(silence))
	job := e.given(mode(rayv1.InteractiveMode))
	e.phase(job, rayv1.JobDeploymentStatusWaiting)
	e.change(job, func(j *rayv1.RayJob) { j.Spec.JobId = "mine" })
	e.phase(job, rayv1.JobDeploymentStatusRunning)
	ray := e.ray(job)
	e.follow(job, func(s *rayv1.RayJobStatus) any { return s.Submission }).ShouldNot(BeNil())
	ray.Down()
	e.follow(job, func(s *rayv1.RayJobStatus) any { return s.JobStatusCheckFailureStartTime }).ShouldNot(BeNil())
	since := job.Status.JobStatusCheckFailureStartTime.Time
	ray.Restart()
	ray.Up()
	e.stays(job, ray, rayv1.JobDeploymentStatusRunning)
	e.Expect(job.Status.JobStatusCheckFailureStartTime).To(BeNil())
	e.soon(func() any { return time.Since(since) }).Should(BeNumerically(">", silence+time.Second))
	e.stays(job, ray, rayv1.JobDeploymentStatusRunning)
	ray.PutJob(fakedashboard.Job{SubmissionID: "mine", Step: fakedashboard.Step{Status: "SUCCEEDED"}})
	e.phase(job, rayv1.JobDeploymentStatusComplete)
}

// nobodyBehindTheProxy has a cluster that only seems to be ready: its Service leads nowhere.
func nobodyBehindTheProxy(e *env) {
	cluster := harness.NewCluster(e.ns, "seems", func(c *rayv1.RayCluster) { c.Spec.ManagedBy = ptr.To(rayv1.ManagedByMultiKueue) })
	e.make(cluster)
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: e.ns, Name: "seems-head-svc"}, Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": "nobody"}, Ports: []corev1.ServicePort{{Name: "dashboard", Port: 8265}}}}
	e.make(service)
	cluster.Status.State, cluster.Status.Head.ServiceName = rayv1.ClusterStateReady, service.Name
	e.Expect(e.Status().Update(e.t.Context(), cluster)).To(Succeed())

	e.start(harness.ThroughAPIServer())
	job := e.given(overHTTP, onto(cluster.Name))
	const unavailable = "get 503"
	e.soon(func() any { return proxied(e) }).Should(HaveKey(unavailable))
	e.Expect(e.Delete(e.t.Context(), service)).To(Succeed())
	before := proxied(e)[unavailable]
	e.soon(func() any { return proxied(e)[unavailable] }).Should(BeNumerically(">", before), "the API server is not asked any more")
	e.refresh(job)
	e.Expect(job.Status.JobDeploymentStatus).To(Equal(rayv1.JobDeploymentStatusRunning), e.told(job))
	e.Expect(job.Status.JobStatus).To(BeEmpty())
	e.Expect(job.Status.JobStatusCheckFailureStartTime).ToNot(BeNil())
	e.Expect(proxied(e)).To(HaveLen(1), "something was sent")
}

// proxied counts what the API server was asked to pass on, by verb and by the code of the answer.
func proxied(e *env) map[string]int {
	counts := map[string]int{}
	for _, request := range e.operator.Traffic.All() {
		if request.Resource == "services/proxy" {
			counts[fmt.Sprintf("%s %d", request.Verb, request.Code)]++
		}
	}
	return counts
}
