// Package raycronjob tests, on a real API server, that a RayCronJob behaves as clients know it from KubeRay, or better on
// purpose. Each case has a number; a section of docs/compatibility.md is made from their list.
//
// The API server writes the time at which an object was created, and no test can change that. So each case computes its
// ticks from that time, and the operator runs with a clock of the test's own, which starts at the present time, stands
// still and is moved to where the case wants it. Nothing in a case depends on how fast the machine is: what has to happen
// at 00:05 happens when the test says that it is 00:05. A controller's own timers go by the machine's time; where a case
// is about waking up in time, or about what other controllers do meanwhile, the clock is let run. Otherwise the test
// touches the RayCronJob after it moved the clock, which makes the operator look at it.
package raycronjob
