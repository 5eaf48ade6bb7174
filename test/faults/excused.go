package faults

// NotInjected are the ids of findings that no fault is injected for, with the reason. Whoever adds a rule adds a fault; this list is for
// what no machine of ours can show.
func NotInjected() map[string]string {
	return map[string]string{
		"write-fenced": "a replica that is fenced ends its term without a word; the refusals of the fence themselves are injected in TestOneWriter",
	}
}
