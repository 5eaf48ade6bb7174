// Package dashboard is a typed client of the HTTP interfaces that the head node of a Ray cluster serves on its dashboard
// port (8265 unless configured otherwise), and of the two that a controller of Ray Serve has to ask on every Pod: the
// health of its Serve proxy, and the traffic in its metrics.
//
// The client believes an answer only if it has the shape that Ray gives it. Between the operator and Ray there may be a
// proxy, a Service without endpoints or an unrelated process, and their answers must never be taken for facts about a
// job: a 404 of a proxy does not mean that the job is gone, and an error object with a field named "status" is not a job.
//
// Every call has a time limit of its own, reads a bounded part of the answer and follows no redirect. Nothing here
// retries: whether and when to ask again is decided by package poll and by the controllers.
package dashboard
