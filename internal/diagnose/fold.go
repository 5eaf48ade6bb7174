package diagnose

// Folded are findings of one kind that have one cause and one remedy.
type Folded struct {
	Finding
	// Others are the further objects that have it.
	Others []string
}

// Fold puts findings together that say the same of several objects, so that a hundred workers with one wrong image are one
// finding. The order stays.
func Fold(findings []Finding) []Folded {
	type kind struct{ id, cause, next string }
	var folded []Folded
	at := map[kind]int{}
	entries := map[string]Entry{}
	for _, entry := range Catalogue() {
		entries[entry.ID] = entry
	}
	for _, finding := range findings {
		entry := finding.explainedBy(entries[finding.ID])
		k := kind{finding.ID, entry.Cause, entry.Next}
		if i, known := at[k]; known {
			folded[i].Others = append(folded[i].Others, finding.Object)
			continue
		}
		at[k] = len(folded)
		folded = append(folded, Folded{Finding: finding})
	}
	return folded
}
