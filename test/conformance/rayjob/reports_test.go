package rayjob

import "github.com/heliostat-io/heliostat/test/conformance/table"

// Report is something that users of KubeRay reported about RayJobs.
type Report = table.Report[*env]

func reports() []Report {
	return []Report{
		{Number: 31, What: "the write of the status after the submission is lost, or its news come late", Right: "one run in Ray", Run: statusIsLost},
		{Number: 32, What: "Ray takes the job and answers after 5 s, with an error", Right: "a look before any second try: one submission", Run: lateAnswer},
		{Number: 33, What: "the dashboard is away for a while in mid-run", Right: "back to Running; no new cluster, no new submission", Run: dashboardAway},
		{Number: 34, What: "the head is killed in mid-run, and the new one knows no job", Right: "Failed, JobLost, the cluster goes as the spec says; with one retry exactly one more attempt", Run: headKilled},
		{Number: 35, What: "SidecarMode, the head is deleted in mid-run", Right: "Failed; the head is not made again (on real Ray: test/e2e)", Run: sidecarHeadDeleted},
		{Number: 36, What: "the program exits with 1 and the submitter, tried twice, with 0",
			Right: "the RayJob is Failed, AppFailed. The submitter's own exit stays as with KubeRay (RJ-096), where it follows the log: what tells is the RayJob", Run: programFails},
		{Number: 37, What: "the head runs, but its dashboard answers much later", Right: "no submitter and no submission before it answers", Run: lateDashboard},
		{Number: 38, What: "an entrypoint with && ; and quotes", Right: "Ray gets the whole text as the entrypoint over HTTP and through the submitter's shell", Run: func(e *env) {
			e.reachesRay("echo one && echo two ; python job.py --q '(a b)'")
		}},
		{Number: 39, What: "the head crash-loops", Right: "preRunningDeadlineSeconds: Failed with the Pod's reason; without: a condition has it", Run: crashLoop},
		{Number: 40, What: "clusterSelector, suspended while it runs", Right: "the Ray job is stopped, the cluster kept; resumed under another id", Run: suspendedOnShared},
		{Number: 41, What: "suspended, with nothing left to delete", Right: "silence until something changes", Run: silentWhileSuspended},
		{Number: 42, What: "a RayCluster whose suspend is flipped before any Pod is ready", Right: "the state of the last flip; suspended means no Pods", Run: flippedCluster},
		{Number: 43, What: "a deadline, and deletion rules that do not cover it", Right: "a condition at once; rules for FAILED are applied, or an event says that the cluster stays", Run: rulesWithoutDeadline},
		{Number: 44, What: "clusterSelector, over its deadline", Right: "the Ray job is stopped and awaited; the cluster is kept", Run: deadlineOnShared},
		{Number: 45, What: "shutdownAfterJobFinishes without delay", Right: "the submitter ends before the cluster goes; no failed Pod", Run: submitterReadsToTheEnd},
		{Number: 46, What: "InteractiveMode with backoffLimit", Right: "refused with a message: nobody would submit the next attempt", Run: interactiveRetries},
		{Number: 47, What: "HTTPMode, the dashboard never answers; or takes the job and never knows it", Right: "both end as Failed in bounded time", Run: httpNeverEnds},
		{Number: 48, What: "100 RayJobs on slow dashboards, and a RayCluster made afterwards", Right: "its head comes as fast as without them", Elsewhere: "TestSlowDashboardsDelayNobodyElse in test/bench"},
	}
}
