// Package loadgen sends requests to a Service at a steady rate and tells what became of each one of them: how many
// failed and why, how long they took, and who answered.
//
// It hides nothing. A request is written to a connection once and is never sent again, which net/http's own client would
// do without a word where a kept connection breaks. A request that is late is started all the same, so a service that
// stands still is seen by all requests of that time, not by one.
package loadgen
