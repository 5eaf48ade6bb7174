// Package poll asks Ray dashboards in the background, so that no reconcile ever waits for one. It keeps the last
// observation of every target and tells the owner of a target when what it observed changed. A Poller of its own does the
// same for ports of Pods, which are asked more often and for less; to it each port is what a dashboard is here.
//
// The unit of work is a visit: one dashboard is asked for all targets that are due on it, one request at a time. So a
// dashboard never sees more than one request of ours at once, and when it is found dead by the first target, the others
// learn it without waiting for a time-out each.
//
// Visits run at the same time up to a limit. A part of it is kept for dashboards that answered well the last time, so that
// these are served however many others are dead or slow. A dashboard that fails is visited less and less often.
//
// An observation is never guessed: it holds what Ray last said, when it was asked, and how long it has been silent since.
// What to conclude from that is decided by the controllers.
package poll
