// Package sim plays histories of a whole cluster in memory: an API server with caches that lag behind it (package kube), a
// scheduler, a kubelet, controllers of Jobs and of EndpointSlices, a garbage collector, Ray with Serve, and two or three
// operators that run the real reconcilers, the real planners, the real writes of internal/action and controller-runtime's own
// controllers, wired by their own SetupWithManager. Time is virtual, one goroutine at a time runs, and a random number
// generator chooses what happens next, so a seed stands for one history and can be played again.
//
// While faults last, operators die or stop between any two requests, two of them lead at once, caches of single kinds
// stand still or miss what came and went, requests to the API server and to Ray are refused, lost, answered in vain, or
// arrive long after their sender lost its term, the API server goes away, Ray is silent or slow, submitter Pods are killed,
// and clocks jump. Then the world is left in peace. What must hold:
//
//   - it settles within a bounded number of rounds, and then neither this leader nor the next one writes anything;
//   - what is there in the end is what an undisturbed run ends with;
//   - every kind of object was created and deleted as often as in the undisturbed run;
//   - there is never a second head, never a second Pod in one place, no name of a Pod is used twice;
//   - no write is accepted after one of a later term;
//   - a cluster that belongs to a user is never deleted, and its spec never changed;
//   - of each head that is lost the status of its cluster tells, also when no operator ran at that time.
//
// Of RayJobs (oracles_jobs_test.go):
//
//   - Ray is given each submission once, over all lives of all heads, and only for an attempt that is under way;
//   - what a RayJob says of its job is what Ray says or said; a last word stays; a job that runs, or of which this leader
//     has heard that it succeeded, is never reported as failed or lost;
//   - it ends once, each attempt is counted once, and it stays unfinished only for a reason;
//   - Suspended means that no Pod of the attempt is there; after the end no submitter runs, and no cluster that was to go
//     is there; no job runs on in Ray for which no RayJob stands, unless an event says so; a job of someone else is
//     never stopped.
//
// Of RayServices (oracles_services_test.go, oracles_traffic_test.go):
//
//   - from the first Pod on that took requests, the Service of Serve has a Pod that takes them after every single write, and
//     none that does not, as long as no user and no fate takes what serves away;
//   - it is pointed only at a cluster that is there, that was not given up, and whose Serve has a config which was written
//     for it and runs all its applications; in an upgrade, Pods of it take requests at that moment;
//   - a cluster that any Service leads to is neither deleted nor marked to go; one that goes was kept for the delay, was
//     marked before, and its requests have ended, unless an event says that they were cut;
//   - a cluster is made only when none of its goal is there and every other one but the active one is retired; no name is
//     used twice;
//   - Serve on a cluster is never given a config that was written for another one;
//   - the status names no cluster as active that no Service ever led to; Suspended means that nothing is there;
//   - in the end the cluster of the spec serves the config of the spec, alone, or the status says why not.
//
// A reconcile happens only for an event that was delivered, for a requeue that is due, or for the start of a term, as in
// reality, so a wake-up that is missing leaves the world in a wrong state and is found.
//
// Scenarios are data (scenarios_test.go): a new kind of object joins by adding scenarios, and its reconciler to mustSetUp.
//
// What the model takes for granted: clocks of operators are less than 20 seconds apart where a spec has time limits, which
// count from times that another operator may have written down; a network does not hold a request of an operator until that
// same Pod leads again (the fence compares Pods, not terms); a request whose answer was lost does not arrive after its sender
// has looked; a submitter's script submits to the head that it has just looked at. Serve is not asked to bring its applications
// through the loss of a head, and replaces replicas one by one when only the config changes. Traffic moves at once (strategy
// NewCluster): the Gateway API is not modelled.
package sim
