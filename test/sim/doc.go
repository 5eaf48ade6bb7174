// Package sim plays histories of a whole cluster in memory: an API server with caches that lag behind it (package kube), a
// scheduler, a kubelet, a Job controller, a garbage collector, Ray, and two or three operators that run the real
// reconcilers, the real planners, the real writes of internal/action and controller-runtime's own controllers, wired by
// their own SetupWithManager. Time is virtual, one goroutine at a time runs, and a random number generator chooses what
// happens next, so a seed stands for one history and can be played again.
//
// While faults last, operators die or stop between any two requests, two of them lead at once, caches of single kinds
// stand still or miss what came and went, requests are refused, lost, answered in vain, or arrive long after their sender
// lost its term, the API server goes away, and clocks jump. Then the world is left in peace. What must hold:
//
//   - it settles within a bounded number of rounds, and then neither this leader nor the next one writes anything;
//   - what is there in the end is what an undisturbed run ends with;
//   - every kind of object was created and deleted as often as in the undisturbed run;
//   - there is never a second head, never a second Pod in one place, no name of a Pod is used twice;
//   - Ray is given each submission once;
//   - no write is accepted after one of a later term.
//
// A reconcile happens only for an event that was delivered, for a requeue that is due, or for the start of a term, as in
// reality, so a wake-up that is missing leaves the world in a wrong state and is found.
//
// Scenarios are data (scenarios_test.go): a new kind of object joins by adding scenarios, and its reconciler to mustSetUp.
//
// What the model takes for granted: clocks of operators and of Kubernetes are less than 20 seconds apart where a submitter
// Job is judged by the time of its end; a network does not hold a request of an operator until that same Pod leads again
// (the fence compares Pods, not terms); a request whose answer was lost does not arrive after its sender has looked.
package sim
