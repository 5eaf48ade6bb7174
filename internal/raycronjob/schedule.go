package raycronjob

import (
	"errors"
	"fmt"
	"time"
	_ "time/tzdata" // what a time zone is does not depend on the image

	"github.com/robfig/cron/v3"
)

// Names of time zones with a meaning of their own.
const (
	// UTC is the zone of a schedule that names none.
	UTC = "UTC"
	// Local is the operator's own zone, and that is UTC wherever it runs.
	Local = "Local"
)

const (
	// leastEvery is the shortest interval whose ticks have different names, which count minutes.
	leastEvery = time.Minute
	// maxCount is how far missed ticks are counted.
	maxCount = 100
)

// Schedule tells the ticks of a RayCronJob. Those of "@every" follow from a base, which is a tick or a beginning; all
// others are times of day.
//
// A tick is the first moment at which a clock in the time zone shows its time of day, or a later one. So what the clock
// shows twice is run once, at its first showing, and what the clock jumps over is run once, at the jump.
type Schedule struct {
	every time.Duration // zero for times of day
	times cron.Schedule
	zone  *time.Location
}

// ParseSchedule reads an expression and the name of a time zone. The error says what is wrong with the expression.
func ParseSchedule(expression string, zone *time.Location) (Schedule, error) {
	parsed, err := cron.ParseStandard(expression)
	if err != nil {
		return Schedule{}, err
	}
	if interval, ok := parsed.(cron.ConstantDelaySchedule); ok {
		if interval.Delay < leastEvery {
			return Schedule{}, fmt.Errorf("an interval must be at least %s", leastEvery)
		}
		return Schedule{every: interval.Delay, zone: zone}, nil
	}
	s := Schedule{times: parsed, zone: zone}
	if s.Next(time.Unix(0, 0)).IsZero() {
		return Schedule{}, errors.New("there is no such day")
	}
	return s, nil
}

// Next is the first tick after the base, or zero if there is none for years.
func (s Schedule) Next(base time.Time) time.Time {
	if s.every > 0 {
		return base.Add(s.every).UTC()
	}
	for shown := wallClock(base.In(s.zone)); ; {
		if shown = s.times.Next(shown); shown.IsZero() {
			return time.Time{}
		}
		// The clock may have been put back, and have shown this before the base.
		if tick := firstShown(shown, s.zone); tick.After(base) {
			return tick
		}
	}
}

// Newest is the last tick after the base that is not after now.
func (s Schedule) Newest(base, now time.Time) (time.Time, bool) {
	if next := s.Next(base); next.IsZero() || next.After(now) {
		return time.Time{}, false
	}
	if s.every > 0 {
		return base.Add(now.Sub(base) / s.every * s.every).UTC(), true
	}
	// The first tick after a moment never gets earlier when the moment gets later, so the last moment that has a tick
	// before now can be searched by halves, however long ago the base is.
	last, beyond := base.Unix(), now.Unix()
	for last+1 < beyond {
		middle := last + (beyond-last)/2
		if next := s.Next(time.Unix(middle, 0)); next.IsZero() || next.After(now) {
			beyond = middle
		} else {
			last = middle
		}
	}
	return s.Next(time.Unix(last, 0)), true
}

// Count is how many ticks there are after the base and not after until, at most maxCount.
func (s Schedule) Count(base, until time.Time) int32 {
	count := int32(0)
	for tick := s.Next(base); count < maxCount && !tick.IsZero() && !tick.After(until); tick = s.Next(tick) {
		count++
	}
	return count
}

// wallClock is what a clock shows, as a time in UTC, where clocks neither jump nor are put back.
func wallClock(at time.Time) time.Time {
	return time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), 0, time.UTC)
}

// firstShown is the first moment at which a clock in the zone shows that much, or more.
func firstShown(shown time.Time, zone *time.Location) time.Time {
	at := time.Date(shown.Year(), shown.Month(), shown.Day(), shown.Hour(), shown.Minute(), shown.Second(), 0, zone)
	start, end := at.ZoneBounds()
	switch {
	case wallClock(at).After(shown): // the clock jumps over it, and the moment is one after the jump
		return start.UTC()
	case wallClock(at).Before(shown): // the same, and the moment is one before
		return end.UTC()
	case start.IsZero():
		return at.UTC()
	}
	_, offset := at.Zone()
	_, before := start.Add(-time.Second).Zone()
	if earlier := at.Add(time.Duration(offset-before) * time.Second); earlier.Before(start) {
		return earlier.UTC()
	}
	return at.UTC()
}

// LoadZone finds a time zone by the name that a spec gives, or does not give.
func LoadZone(name *string) (*time.Location, error) {
	switch {
	case name == nil, *name == Local:
		return time.UTC, nil
	case *name == "":
		return nil, errors.New("must name a zone")
	}
	return time.LoadLocation(*name)
}
