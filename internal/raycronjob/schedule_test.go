package raycronjob

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func zone(t interface{ Fatal(...any) }, name string) *time.Location {
	found, err := LoadZone(&name)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func at(text string) time.Time {
	moment, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return moment
}

func TestNextTick(t *testing.T) {
	for name, c := range map[string]struct{ schedule, zone, base, want string }{
		"of every five minutes":               {"*/5 * * * *", "UTC", "2026-01-01T00:00:00Z", "2026-01-01T00:05:00Z"},
		"is after the base":                   {"*/5 * * * *", "UTC", "2026-01-01T00:05:00Z", "2026-01-01T00:10:00Z"},
		"of a zone":                           {"45 21 * * *", "Asia/Taipei", "2026-01-01T00:00:00Z", "2026-01-01T13:45:00Z"},
		"of a word":                           {"@hourly", "UTC", "2026-01-01T00:10:00Z", "2026-01-01T01:00:00Z"},
		"of an interval counts from the base": {"@every 2h", "UTC", "2026-01-01T00:10:30Z", "2026-01-01T02:10:30Z"},
		"of a day of the month or the week: the month": {"0 0 15 * 1", "UTC", "2026-09-14T00:00:00Z", "2026-09-15T00:00:00Z"},
		"of a day of the month or the week: the week":  {"0 0 15 * 1", "UTC", "2026-09-15T00:00:00Z", "2026-09-21T00:00:00Z"},
		"on a leap day": {"0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z"},
		"that the clock jumps over comes at the jump":     {"30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z"},
		"after the jump is the usual one":                 {"30 2 * * *", "Europe/Berlin", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"},
		"that the clock shows twice comes first":          {"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z"},
		"and not again":                                   {"30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"},
		"of the hour that comes twice":                    {"0 * * * *", "America/New_York", "2026-11-01T05:00:00Z", "2026-11-01T07:00:00Z"},
		"of several that are jumped over is one":          {"*/10 2 * * *", "Europe/Berlin", "2026-03-29T00:59:00Z", "2026-03-29T01:00:00Z"},
		"of several that are jumped over is not repeated": {"*/10 2 * * *", "Europe/Berlin", "2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"},
		"of a day that a zone left out":                   {"0 12 * * *", "Pacific/Apia", "2011-12-30T08:00:00Z", "2011-12-30T10:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			schedule, err := ParseSchedule(c.schedule, zone(t, c.zone))
			if err != nil {
				t.Fatal(err)
			}
			if got := schedule.Next(at(c.base)); !got.Equal(at(c.want)) {
				t.Errorf("the tick is %s, want %s", got.Format(time.RFC3339), c.want)
			}
		})
	}
}

func TestSchedulesThatAreRefused(t *testing.T) {
	for expression, want := range map[string]string{
		"not a cron":      "expected exactly 5 fields",
		"0 * * * * *":     "expected exactly 5 fields",
		"0 0 31 2 *":      "there is no such day",
		"0 0 31 4,6,9 *":  "there is no such day",
		"@every 20s":      "must be at least 1m0s",
		"@every -1h":      "must be at least 1m0s",
		"@reboot":         "unrecognized descriptor",
		"60 * * * *":      "above maximum",
		"":                "empty spec",
		"*/0 * * * *":     "step",
		"@every nonsense": "failed to parse duration",
	} {
		if _, err := ParseSchedule(expression, time.UTC); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want it to say %q", expression, err, want)
		}
	}
}

// zones have clocks that jump by an hour, by half an hour, by a day, and not at all.
var zones = []string{"UTC", "Local", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca",
	"Asia/Kathmandu", "America/St_Johns"}

var expressions = []string{"* * * * *", "*/5 * * * *", "0 * * * *", "30 1 * * *", "30 2 * * *", "*/7 0-3 * * *", "0 0 * * *", "15 3 1 * *", "0 0 29 2 *",
	"0 0 13 * 5", "59 23 31 12 *", "@hourly", "@every 1m", "@every 90s", "@every 2h30m"}

// aTime is within half a minute of a jump of a clock every other time.
func aTime(t *rapid.T, in *time.Location, label string) time.Time {
	moment := time.Unix(rapid.Int64Range(at("2011-01-01T00:00:00Z").Unix(), at("2037-01-01T00:00:00Z").Unix()).Draw(t, label), 0)
	if _, end := moment.In(in).ZoneBounds(); !end.IsZero() && rapid.Bool().Draw(t, "near a jump") {
		moment = end.Add(time.Duration(rapid.IntRange(-7200, 7200).Draw(t, "seconds")) * time.Second)
	}
	return moment.UTC()
}

func aSchedule(t *rapid.T) (Schedule, *time.Location) {
	in := zone(t, rapid.SampledFrom(zones).Draw(t, "zone"))
	schedule, err := ParseSchedule(rapid.SampledFrom(expressions).Draw(t, "schedule"), in)
	if err != nil {
		t.Fatal(err)
	}
	return schedule, in
}

// The first moment at which a clock shows something is found by looking at the clock minute by minute.
func TestFirstShownIsWhatAClockShows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := zone(t, rapid.SampledFrom(zones).Draw(t, "zone"))
		shown := wallClock(aTime(t, in, "moment").In(in)).Truncate(time.Minute)
		want := shown.Add(-26 * time.Hour)
		for wallClock(want.In(in)).Before(shown) {
			want = want.Add(time.Minute)
		}
		if got := firstShown(shown, in); !got.Equal(want) {
			t.Errorf("%s is first shown at %s, want %s", shown, got, want)
		}
	})
}

// The newest of the ticks that have passed is the one that counting them one by one ends with, and no time of day comes twice.
func TestNewestTickIsTheLastOfThemAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		schedule, in := aSchedule(t)
		base := aTime(t, in, "base")
		now := base.Add(time.Duration(rapid.IntRange(0, 100_000).Draw(t, "seconds since then")) * time.Second)
		var last time.Time
		count := int32(0)
		shown := map[time.Time]bool{}
		for tick := schedule.Next(base); !tick.IsZero() && !tick.After(now); tick = schedule.Next(tick) {
			if !tick.After(base) || !tick.After(last) {
				t.Fatalf("tick %s comes after %s", tick, last)
			}
			if clock := wallClock(tick.In(in)); schedule.every == 0 && shown[clock] {
				t.Fatalf("%s on the clock is run twice", clock)
			} else {
				shown[clock] = true
			}
			last = tick
			count++
		}
		got, passed := schedule.Newest(base, now)
		if passed != (count > 0) || !got.Equal(last) {
			t.Errorf("the newest is %s (%t), want %s", got, passed, last)
		}
		if passed && schedule.Count(base, got) != min(count, maxCount) {
			t.Errorf("counted %d, want %d", schedule.Count(base, got), count)
		}
	})
}

// A schedule whose base is long ago costs no more than one whose base is not.
func TestNewestTickOfManyYears(t *testing.T) {
	schedule, err := ParseSchedule("* * * * *", time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := schedule.Newest(at("1970-01-01T00:00:00Z"), at("2026-05-05T05:05:30Z"))
	if want := at("2026-05-05T05:05:00Z"); !got.Equal(want) {
		t.Errorf("the newest is %s, want %s", got, want)
	}
}

func TestTimeZones(t *testing.T) {
	text := func(name string) *string { return &name }
	for name, c := range map[string]struct {
		zone *string
		want string
	}{
		"none is UTC":      {nil, "UTC"},
		"UTC":              {text("UTC"), "UTC"},
		"Local is UTC":     {text("Local"), "UTC"},
		"a city":           {text("Asia/Taipei"), "Asia/Taipei"},
		"no city":          {text("Nowhere/City"), ""},
		"without a name":   {text(""), ""},
		"not a file":       {text("../../etc/passwd"), ""},
		"not a whole path": {text("/etc/localtime"), ""},
	} {
		found, err := LoadZone(c.zone)
		if (err == nil) != (c.want != "") || err == nil && found.String() != c.want {
			t.Errorf("%s: %v, %v, want %q", name, found, err, c.want)
		}
	}
}
