// Package mounts reads the machine's table of mounts and takes mounts away.
package mounts

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Mount is one line of the table.
type Mount struct {
	// Point is where it is mounted.
	Point string
	// Type is the file system's, for example "cgroup2".
	Type string
}

// List returns all mounts that this process sees, oldest first.
func List() ([]Mount, error) {
	raw, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("reading the table of mounts: %w", err)
	}
	return parse(string(raw)), nil
}

// parse reads the format of /proc/PID/mountinfo, see proc_pid_mountinfo(5): the
// mount point is the fifth field, the type the first one after a lone dash.
func parse(table string) []Mount {
	const pointField = 4
	var found []Mount
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		for i := pointField + 1; i+1 < len(fields); i++ {
			if fields[i] == "-" {
				found = append(found, Mount{Point: unescape(fields[pointField]), Type: fields[i+1]})
				break
			}
		}
	}
	return found
}

// unescape replaces \040 and the like, which stand for spaces and tabs.
func unescape(field string) string {
	var out strings.Builder
	for i := 0; i < len(field); i++ {
		if field[i] == '\\' && i+3 < len(field) {
			if code, err := strconv.ParseUint(field[i+1:i+4], 8, 8); err == nil {
				out.WriteByte(byte(code))
				i += 3
				continue
			}
		}
		out.WriteByte(field[i])
	}
	return out.String()
}

// under returns the points of the mounts at or below the folder, newest first.
func under(all []Mount, folder string) []string {
	var points []string
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].Point == folder || strings.HasPrefix(all[i].Point, folder+"/") {
			points = append(points, all[i].Point)
		}
	}
	return points
}

// Clear unmounts everything at or below the folders. It returns an error when
// something is still mounted afterwards: whoever then removed the folder would
// remove what is behind the mount.
func Clear(folders ...string) error {
	// One pass is enough unless something is mounted meanwhile.
	const passes = 3
	var left []string
	for range passes {
		all, err := List()
		if err != nil {
			return err
		}
		left = nil
		for _, folder := range folders {
			left = append(left, under(all, folder)...)
		}
		if len(left) == 0 {
			return nil
		}
		for _, point := range left {
			// Whether it worked shows in the next pass.
			_ = unix.Unmount(point, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		}
	}
	all, err := List()
	if err != nil {
		return err
	}
	var problems []error
	for _, folder := range folders {
		for _, point := range under(all, folder) {
			problems = append(problems, fmt.Errorf("%s is still mounted", point))
		}
	}
	return errors.Join(problems...)
}
