package rayservice

import "github.com/heliostat-io/heliostat/test/conformance/table"

// weakSpots are those that no case speaks of.
func weakSpots() []table.WeakSpot { return nil }
