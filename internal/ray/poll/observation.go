package poll

import (
	"errors"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-io/heliostat/internal/ray/census"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
)

// Key names the Kubernetes object that is told when an observation changed.
type Key struct {
	// Kind is that of the object, such as "RayJob".
	Kind string
	types.NamespacedName
}

// String returns "Kind/namespace/name".
func (k Key) String() string { return k.Kind + "/" + k.NamespacedName.String() }

// Target names what to ask.
type Target struct {
	// Owner is the object on whose behalf Ray is asked. It has one target at a time, so an object about which several things
	// are asked has a Key.Kind for each.
	Owner Key
	// OwnerUID tells one life of the owner from the next, so that an observation made for a deleted object is never taken
	// for one of its successor.
	OwnerUID types.UID
	// BaseURL is the address of the dashboard; see dashboard.URL. For AskProxy and AskTraffic it is that of a port of a Pod;
	// see dashboard.PodURL.
	BaseURL string
	// Ask is what to ask for.
	Ask Ask
	// SubmissionID is the job to ask for, with AskJob. If it is empty, only the cluster itself is asked for.
	SubmissionID string
	// Secret is the name of the Secret, in the owner's namespace, with the token that is sent with every request. If it is
	// empty, none is sent.
	Secret string
}

// Ask says what is asked for on behalf of a target.
type Ask int

const (
	// AskJob asks the dashboard for a job and for the version of Ray.
	AskJob Ask = iota
	// AskServe asks the dashboard for the report of Ray Serve and for the version of Ray.
	AskServe
	// AskProxy asks the Serve proxy of a Pod whether it takes requests. It does if there was an answer and Err is nil.
	AskProxy
	// AskTraffic asks a Pod, in its metrics, how many requests its Serve proxies are answering.
	AskTraffic
	// AskCensus asks the dashboard for all actors, and when something changed, or is wanted, or was not asked for lately, for
	// nodes, placement groups and the version of Ray as well.
	AskCensus
)

// Presence says whether Ray knows the job of a target.
type Presence int

// Unknown is the Presence until Ray has answered for the first time, and of targets without a job.
const (
	Unknown Presence = iota
	Found
	Missing
)

// String returns the name of the constant.
func (p Presence) String() string {
	switch p {
	case Found:
		return "Found"
	case Missing:
		return "Missing"
	}
	return "Unknown"
}

// Observation is what Ray last said about a target. All times are by the poller's clock, except those inside Job and Serve.
type Observation struct {
	Target Target
	// Asked is when the last request that has ended was sent; zero before the first one has ended.
	Asked time.Time
	// Answered is when the last request that was answered was sent, so what was answered is at least as new as that.
	// Zero if Ray has not answered this poller yet, which includes the time after a restart of the operator.
	Answered time.Time
	// JobFound, Job, Serve, Traffic, SessionName and RayVersion are from the last answer. They stay when later requests fail.
	JobFound Presence
	// Job is nil unless JobFound is Found.
	Job *dashboard.JobDetails
	// Serve is the last report of Ray Serve, with AskServe; nil before the first answer.
	Serve *dashboard.ServeDetails
	// Ledger is what is known of the actors, with AskCensus; nil before the first answer. Of its changes only
	// those of Ledger.Living are told. While Ray says of the actors what it said before, Ledger.At stays.
	Ledger *census.Ledger
	// Idle means that Ray has said that no job runs, with AskCensus and Want.Jobs.
	Idle bool
	// Traffic is what the Serve proxies of a Pod were last busy with, with AskTraffic; nil before the first answer.
	Traffic *dashboard.ServeTraffic
	// QuietSince is since when Traffic has shown no request: the time of the first of an unbroken row of answers with
	// nothing under way and all with the same number of requests, which is zero where there are no numbers. It is zero
	// while a request is under way, and before the first answer. What an answer tells may be 10 seconds old already; see
	// dashboard.ServeTraffic. Answers that are missing in between break no row, because the number of requests shows
	// what was missed.
	QuietSince time.Time
	// SessionName is the life of the head that gave the answer; see dashboard.Version. That of a Missing job was read
	// after the job was found missing. That of a report of Serve was the head's before the report was asked for and after
	// it was given. It is empty with AskProxy and AskTraffic.
	SessionName string
	RayVersion  string
	// Err is why the last request failed; nil after an answer.
	Err error
	// Failures is how many requests in a row have failed. A conclusion from silence should require several.
	Failures int
	// FailingSince is when the first of them was sent; zero after an answer.
	FailingSince time.Time
}

// answer is the outcome of one question about one target.
type answer struct {
	asked    time.Time
	presence Presence
	job      *dashboard.JobDetails
	serve    *dashboard.ServeDetails
	traffic  *dashboard.ServeTraffic
	census   *dashboard.Census
	idle     bool
	err      error
}

// after returns the observation that follows from one more answer.
func (o Observation) after(a answer, version dashboard.Version) Observation {
	o.Asked = a.asked
	if a.err != nil {
		o.Err = a.err
		o.Failures++
		if o.FailingSince.IsZero() {
			o.FailingSince = a.asked
		}
		return o
	}
	o.Answered = a.asked
	o.JobFound, o.Job = a.presence, a.job
	o.QuietSince = o.quiet(a)
	o.Serve, o.Traffic = a.serve, a.traffic
	if a.census != nil {
		o.Ledger = o.Ledger.After(a.census, version.Session, a.asked)
	}
	o.Idle = a.idle
	o.SessionName, o.RayVersion = version.Session, version.Ray
	o.Err, o.Failures, o.FailingSince = nil, 0, time.Time{}
	return o
}

// quiet returns QuietSince as it is after the answer.
func (o Observation) quiet(a answer) time.Time {
	if a.traffic == nil || a.traffic.Ongoing > 0 {
		return time.Time{}
	}
	if !o.QuietSince.IsZero() && o.Traffic.Requests == a.traffic.Requests {
		return o.QuietSince
	}
	return a.asked
}

// clone returns a copy that shares nothing changeable with o.
func (o Observation) clone() Observation {
	o.Job, o.Serve = o.Job.Clone(), o.Serve.Clone()
	if o.Traffic != nil {
		traffic := *o.Traffic
		o.Traffic = &traffic
	}
	return o
}

// tells reports whether the owner has to be told of the step from the observation before to this one. The text of an
// error is not worth telling, except when it turns out to be about the token, or no more.
func (o Observation) tells(before Observation) bool {
	firstAnswer := before.Answered.IsZero() && !o.Answered.IsZero()
	return firstAnswer ||
		o.JobFound != before.JobFound ||
		o.SessionName != before.SessionName ||
		o.RayVersion != before.RayVersion ||
		(o.Err == nil) != (before.Err == nil) ||
		errors.Is(o.Err, dashboard.ErrUnauthorized) != errors.Is(before.Err, dashboard.ErrUnauthorized) ||
		o.QuietSince.IsZero() != before.QuietSince.IsZero() ||
		o.Idle != before.Idle ||
		living(o.Ledger) != living(before.Ledger) ||
		reported(o.Traffic) != reported(before.Traffic) ||
		!sameJob(o.Job, before.Job) ||
		!sameServe(o.Serve, before.Serve)
}

// living are the numbers of what there is in a Ray cluster.
func living(ledger *census.Ledger) (numbers [3]int) {
	if ledger != nil {
		numbers[0], numbers[1], numbers[2] = ledger.Living()
	}
	return numbers
}

// reported tells whether there are numbers. How they rise while requests flow is of no interest to anybody.
func reported(traffic *dashboard.ServeTraffic) bool { return traffic != nil && traffic.Reported }

// sameJob compares the parts of a job that a controller acts upon or shows.
func sameJob(a, b *dashboard.JobDetails) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Status == b.Status && a.Message == b.Message && a.ErrorType == b.ErrorType &&
		a.StartTime.Equal(b.StartTime) && a.EndTime.Equal(b.EndTime) &&
		exitCode(a) == exitCode(b) && maps.Equal(a.Metadata, b.Metadata)
}

// exitCode makes exit codes comparable; no code at all lies outside the range of those that there are.
func exitCode(job *dashboard.JobDetails) int64 {
	if job.DriverExitCode == nil {
		return 1 << 32
	}
	return int64(*job.DriverExitCode)
}
