package raycronjob

import "github.com/heliostat-io/heliostat/test/conformance/table"

// weakSpots are those that no case speaks of.
func weakSpots() []table.WeakSpot {
	return []table.WeakSpot{
		{Number: 16, What: "the time zone of a schedule that names none is that of the operator's Pod", Ours: "UTC, and status.timeZone says so",
			Folder: "internal/raycronjob", Test: "TestTimeZones"},
		{Number: 18, What: "a template is judged without its annotations, and only at a tick", Ours: "judged in every pass as the RayJob that it would make; condition Valid says what is wrong",
			Folder: "internal/raycronjob", Test: "TestValidate"},
	}
}
