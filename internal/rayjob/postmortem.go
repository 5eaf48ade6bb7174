package rayjob

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/ray/poll"
)

const (
	// maxMessage bounds what is copied into a message of the status, in bytes; Ray may send 20,000 characters of log.
	maxMessage = 2048
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
		Time: metav1.NewTime(p.now), Message: truncate(message, maxPostMortemMessage)}
	if answer := p.answer(); answer != nil && answer.JobFound == poll.Found && answer.Job != nil && reason == rayv1.AppFailed {
		said, log, _ := strings.Cut(answer.Job.Message, "\n")
		pm.ExitCode, pm.ErrorType = answer.Job.DriverExitCode, string(answer.Job.ErrorType)
		pm.Message, pm.Log = truncate(said, maxPostMortemMessage), truncate(log, maxPostMortemLog)
	}
	p.st.PostMortem = pm
}

// truncate keeps the end of a text, because Ray puts the last lines of the log there.
func truncate(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return "..." + strings.ToValidUTF8(text[len(text)-limit+3:], "")
}
