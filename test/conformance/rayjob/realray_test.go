package rayjob

// realRayCases need a real Ray, which is there in test/e2e.
func realRayCases() []Case {
	const elsewhere = "in test/e2e, on real Ray"
	return []Case{
		{Row: 96, Kind: same, Given: "the default submitter", When: "the application exits with code 1", Then: "the submitter Job is Complete without a failed Pod; the RayJob is Failed, AppFailed", Elsewhere: elsewhere},
		{Row: 97, Kind: same, Given: "a running job", When: "the submitter's Pod is deleted", Then: "its next Pod only follows the log; one Ray job in all; Complete", Elsewhere: elsewhere},
	}
}
