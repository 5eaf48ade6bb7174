package rayjob

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/condition"
	"github.com/heliostat-io/heliostat/internal/excerpt"
	"github.com/heliostat-io/heliostat/internal/ray/poll"
)

const (
	// maxMessage bounds what is copied into a message of the status, in bytes; Ray may send 20,000 characters of log. What fits
	// here fits into a condition as well, so that no text is cut twice.
	maxMessage = condition.MaxMessage
	// maxPostMortemMessage and maxPostMortemLog bound the texts of a post-mortem, in bytes.
	maxPostMortemMessage = 1024
	maxPostMortemLog     = 2048
)

// postMortem keeps how the attempt failed. Ray's message about a failed driver ends with the last lines of its log, after
// the first line of the message.
func (p *planner) postMortem(reason rayv1.JobFailedReason, message string) {
	if last := p.st.PostMortem; reason == rayv1.AppFailed && last != nil && last.Attempt == p.st.Attempt && last.JobId == p.st.JobId {
		return // made when Ray told of the failure
	}
	pm := &rayv1.RayJobPostMortem{Attempt: p.st.Attempt, JobId: p.st.JobId, RayClusterName: p.st.RayClusterName, Reason: reason,
		Time: metav1.NewTime(p.now), Message: excerpt.Beginning(message, maxPostMortemMessage)}
	if answer := p.answer(); answer != nil && answer.JobFound == poll.Found && answer.Job != nil && reason == rayv1.AppFailed {
		said, log, _ := strings.Cut(answer.Job.Message, "\n")
		pm.ExitCode, pm.ErrorType = answer.Job.DriverExitCode, string(answer.Job.ErrorType)
		pm.Message, pm.Log = excerpt.Beginning(said, maxPostMortemMessage), excerpt.End(log, maxPostMortemLog)
	}
	p.st.PostMortem = pm
}
