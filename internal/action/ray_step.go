package action

import "context"

// Step carries out one waiting request in the caller's goroutine and tells whether there was one. It is for callers that
// decide for themselves when work is done, as a simulation does; others use Start.
func (r *Ray) Step(ctx context.Context) bool {
	select {
	case call := <-r.jobs:
		r.carryOut(ctx, call)
		return true
	default:
	}
	select {
	case call := <-r.serve:
		r.carryOut(ctx, call)
		return true
	default:
		return false
	}
}
