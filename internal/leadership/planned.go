package leadership

import "context"

type plannedKey struct{}

// Planned returns a context for carrying out what is planned in a term. A Gate admits nothing under it in any other term:
// a pass that was held up while another leader acted must not go on with what it planned before, even if its process
// leads again.
func Planned(ctx context.Context, term Term) context.Context {
	return context.WithValue(ctx, plannedKey{}, term.Number)
}

// MayGoOn tells whether work under the context may be carried out in the given term: it was planned in that term, or in
// none at all.
func MayGoOn(ctx context.Context, term Term) bool {
	planned, known := ctx.Value(plannedKey{}).(int64)
	return !known || planned == term.Number
}
