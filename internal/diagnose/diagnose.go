// Package diagnose holds rules that turn observed facts into findings: what is wrong, with which object, and whether
// it can pass by itself. Conditions and the command line print from the same findings.
package diagnose

import "cmp"

// Severity says whether a trouble can end without anybody's help.
type Severity int

const (
	// Note is no trouble: what is as it was asked for, and may surprise.
	Note Severity = iota + 1
	// Passing trouble may end by itself: what failed is tried again or replaced.
	Passing
	// Blocking trouble stays until somebody changes something.
	Blocking
)

func (s Severity) String() string {
	switch s {
	case Blocking:
		return "blocking"
	case Passing:
		return "passing"
	default:
		return "note"
	}
}

// Finding is one diagnosed reason. The zero Finding says that there is none.
type Finding struct {
	Severity Severity
	// ID is that of the finding's entry in the Catalogue.
	ID string
	// Reason is one CamelCase word, Kubernetes' own where it has one.
	Reason string
	// Object is the kind and name of the object to look at, for example "Pod demo-head-x7k2p".
	Object string
	// Message is the evidence, one line of text. It does not change while the trouble stays the same.
	Message string
	// Cause and Next are more exact than those of the entry, or empty.
	Cause, Next string
	// rank is the place of the rule in its table. Worse rules come first.
	rank int
}

// Found tells whether there is a finding at all.
func (f Finding) Found() bool { return f.Reason != "" }

// Explained returns the entry of the finding, with the finding's own cause and next step where it has them.
func (f Finding) Explained() Entry { return f.explainedBy(Explain(f.ID)) }

func (f Finding) explainedBy(entry Entry) Entry {
	entry.Cause = cmp.Or(f.Cause, entry.Cause)
	entry.Next = cmp.Or(f.Next, entry.Next)
	return entry
}

// CompareTrouble orders findings from the worst to the least: by severity, then by the order of the rules.
func CompareTrouble(a, b Finding) int {
	return cmp.Or(cmp.Compare(b.Severity, a.Severity), cmp.Compare(a.rank, b.rank))
}

// Compare orders findings like CompareTrouble, and like ones by the name of the object, so that the same one of many is
// always named.
func Compare(a, b Finding) int {
	return cmp.Or(CompareTrouble(a, b), cmp.Compare(a.Object, b.Object))
}

// Refused is the finding about Pods that the API server does not take, for example because of a quota. It is worse than
// any trouble of a Pod, and about no object: there is none.
func Refused(reason, message string) Finding {
	return Finding{Severity: Blocking, Reason: reason, Message: oneLine(message), rank: -1}
}
