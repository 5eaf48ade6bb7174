package diagnose

import "slices"

// Family is a group of findings, as the guide to troubleshooting is divided.
type Family string

// The families in the order of the guide.
const (
	Scheduling    Family = "Scheduling"
	Start         Family = "Start"
	Connection    Family = "Connection"
	Configuration Family = "Configuration"
	Rights        Family = "Rights"
	Scaling       Family = "Scaling"
	TheOperator   Family = "Operator"
	Security      Family = "Security"
	Work          Family = "Jobs and services"
)

// Entry explains one kind of finding. The guide docs/troubleshooting.md is made from the entries.
type Entry struct {
	// ID is stable: scripts and the guide refer to it.
	ID     string
	Family Family
	// Symptom is what a user sees first.
	Symptom string
	// Cause is one sentence.
	Cause string
	// Next is what to do, as an instruction.
	Next string
}

// guide is where the entries are explained.
const guide = "https://github.com/heliostat-io/heliostat/blob/main/docs/troubleshooting.md"

// Link leads to the explanation of the entry.
func (e Entry) Link() string { return guide + "#" + e.ID }

// Catalogue are all entries, family by family.
func Catalogue() []Entry {
	return slices.Concat(schedulingEntries(), startEntries(), connectionEntries(), configurationEntries(), rightsEntries(),
		scalingEntries(), operatorEntries(), securityEntries(), workEntries())
}

// Explain returns the entry of an id, the zero Entry when there is none.
func Explain(id string) Entry {
	all := Catalogue()
	if i := slices.IndexFunc(all, func(e Entry) bool { return e.ID == id }); i >= 0 {
		return all[i]
	}
	return Entry{}
}
