// Package proc starts, watches and ends the long-running programs of a cluster.
//
// A program is known by a record: its process id together with the moment it
// was started. Process ids are used again by the kernel, so an id alone could
// name somebody else's process; the pair cannot.
package proc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Record names one process for as long as the machine runs.
type Record struct {
	// Name is the component, for example "etcd" or "n1-kubelet".
	Name string `json:"name"`
	// PID is the process id.
	PID int `json:"pid"`
	// StartTicks is when the process started, in clock ticks since boot.
	StartTicks uint64 `json:"startTicks"`
	// BootID tells this boot of the machine from others.
	BootID string `json:"bootID"`
	// Args and NetNS are what it was started with, as in a Spec, so that it can be started again.
	Args  []string `json:"args"`
	NetNS string   `json:"netNS"`
}

func bootID() (string, error) {
	raw, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("reading the machine's boot id: %w", err)
	}
	return strings.TrimSpace(string(raw)), nil
}

// stat is what is used of /proc/PID/stat, see proc_pid_stat(5).
type stat struct {
	state      byte
	parent     int
	startTicks uint64
}

// parseStat reads the text of /proc/PID/stat. The second field, the program's
// name in parentheses, may hold spaces and parentheses itself.
func parseStat(text []byte) (stat, error) {
	end := bytes.LastIndexByte(text, ')')
	if end < 0 {
		return stat{}, errors.New("no program name in the process's stat")
	}
	fields := strings.Fields(string(text[end+1:]))
	// The fields after the name begin with the third: state, parent, ...; the
	// start time is the twenty-second.
	const startField = 22 - 3
	if len(fields) <= startField {
		return stat{}, fmt.Errorf("only %d fields in the process's stat", len(fields)+2)
	}
	parent, err := strconv.Atoi(fields[1])
	if err != nil {
		return stat{}, fmt.Errorf("parent in the process's stat: %w", err)
	}
	ticks, err := strconv.ParseUint(fields[startField], 10, 64)
	if err != nil {
		return stat{}, fmt.Errorf("start time in the process's stat: %w", err)
	}
	return stat{state: fields[0][0], parent: parent, startTicks: ticks}, nil
}

func readStat(pid int) (stat, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return stat{}, err
	}
	return parseStat(raw)
}

// recordOf returns the record of a living process.
func recordOf(name string, pid int) (Record, error) {
	boot, err := bootID()
	if err != nil {
		return Record{}, err
	}
	found, err := readStat(pid)
	if err != nil {
		return Record{}, fmt.Errorf("looking at process %d: %w", pid, err)
	}
	return Record{Name: name, PID: pid, StartTicks: found.startTicks, BootID: boot}, nil
}

// Alive reports whether the very process of the record still runs. A process
// that has ended but was not yet collected by its parent does not run.
func (r Record) Alive() bool {
	boot, err := bootID()
	if err != nil || boot != r.BootID {
		return false
	}
	found, err := readStat(r.PID)
	if err != nil || found.startTicks != r.StartTicks {
		return false
	}
	return found.state != 'Z' && found.state != 'X'
}

func recordFile(dir, name string) string { return filepath.Join(dir, name+".json") }

// Records returns all records of a folder, sorted by name. A folder that does
// not exist has none.
func Records(dir string) ([]Record, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing process records: %w", err)
	}
	var records []Record
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) != ".json" || strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("reading process record: %w", err)
		}
		var record Record
		if err := json.Unmarshal(raw, &record); err != nil {
			return nil, fmt.Errorf("reading process record %s: %w", entry.Name(), err)
		}
		records = append(records, record)
	}
	slices.SortFunc(records, func(a, b Record) int { return strings.Compare(a.Name, b.Name) })
	return records, nil
}
