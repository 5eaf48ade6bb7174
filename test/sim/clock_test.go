package sim

import (
	"testing"
	"time"
	"unsafe"
)

// moment has the layout of time.Time with a monotonic reading: a flag, 33 bits of seconds and 30 of nanoseconds for the
// wall clock, and nanoseconds of the monotonic one.
type moment struct {
	wall uint64
	ext  int64
	loc  *time.Location
}

// reading is what time.Now returns when the two clocks of a process show these times. Without the monotonic part a clock
// that is set back would make a process wait, which it does not in reality, and package time has no way to make one.
func reading(wall time.Time, mono time.Duration) time.Time {
	now := time.Now()
	m := (*moment)(unsafe.Pointer(&now))
	seconds := int64(m.wall<<1>>31) + wall.Unix() - now.Unix()
	m.wall = 1<<63 | uint64(seconds)<<30 | uint64(wall.Nanosecond())
	m.ext = int64(time.Hour + mono)
	m.loc = time.UTC
	return now
}

func TestReadingHasTwoClocks(t *testing.T) {
	before := reading(epoch(), 10*time.Second)
	after := reading(epoch().Add(-time.Hour), 13*time.Second)
	if waited := after.Sub(before); waited != 3*time.Second {
		t.Errorf("the process waited for %s, want 3s", waited)
	}
	if shown := after.Round(0).Sub(before.Round(0)); shown != -time.Hour {
		t.Errorf("the wall clock went from one to the other by %s, want -1h", shown)
	}
	if !before.Round(0).Equal(epoch()) {
		t.Errorf("the wall clock shows %s, want %s", before, epoch())
	}
}
