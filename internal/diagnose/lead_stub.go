package diagnose

func schedulingEntries() []Entry      { return nil }
func startEntries() []Entry           { return nil }
func podFindings(*Snapshot) []Finding { return nil }
