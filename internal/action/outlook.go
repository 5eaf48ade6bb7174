package action

// Outlook is what the next pass of an operator does, as far as somebody can tell who looks once. An operator remembers what Ray
// has said and which writes were refused, and such a plan must not show a write that would not be made by one that does.
type Outlook struct {
	// Plan holds what is done whatever the operator remembers.
	Plan
	// Asks are the questions to Ray, and what becomes of the answers, in sentences.
	Asks []string
	// Waits say what must happen before there is something to do, in sentences.
	Waits []string
	// Unknown are the decisions that depend on what only the operator knows, in sentences.
	Unknown []string
}

// StillStalled is the sentence about an object that the status calls stalled, for a reason that may be remembered only.
func StillStalled(why string) string {
	return "the status calls it stalled (" + why + "): after a write was refused, the operator waits before the next one, for a time that only it knows"
}
