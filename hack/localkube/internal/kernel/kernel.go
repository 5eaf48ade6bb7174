// Package kernel saves and restores the kernel settings that a kubelet changes
// for the whole machine.
package kernel

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/heliostat-io/heliostat/hack/localkube/internal/state"
)

// changed are the settings that the kubelet sets, see
// pkg/util/sysctl and pkg/kubelet/cm of Kubernetes.
func changed() []string {
	return []string{
		"vm/overcommit_memory", "vm/panic_on_oom",
		"kernel/panic", "kernel/panic_on_oops",
		"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
	}
}

// Settings reads and writes settings below a folder.
type Settings struct {
	// Root is /proc/sys.
	Root string
}

// Save writes the present values to file, unless the file is there already: then
// it was written by a cluster that still runs or was not cleaned up, and the
// present values are no longer the machine's own.
func (s Settings) Save(file string) error {
	if _, err := os.Stat(file); err == nil {
		return nil
	}
	values := map[string]string{}
	for _, name := range changed() {
		raw, err := os.ReadFile(filepath.Join(s.Root, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading kernel setting %s: %w", name, err)
		}
		values[name] = strings.TrimSpace(string(raw))
	}
	if err := state.WriteJSON(file, values); err != nil {
		return fmt.Errorf("saving kernel settings: %w", err)
	}
	return nil
}

// Restore sets the values of the file again and removes it. No file is fine.
func (s Settings) Restore(file string) error {
	raw, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading saved kernel settings: %w", err)
	}
	var values map[string]string
	if err := json.Unmarshal(raw, &values); err != nil {
		return fmt.Errorf("reading saved kernel settings in %s: %w", file, err)
	}
	for _, name := range changed() {
		value, saved := values[name]
		if !saved {
			continue
		}
		if err := os.WriteFile(filepath.Join(s.Root, name), []byte(value), 0o644); err != nil {
			return fmt.Errorf("restoring kernel setting %s to %s: %w", name, value, err)
		}
	}
	if err := os.Remove(file); err != nil {
		return fmt.Errorf("removing saved kernel settings: %w", err)
	}
	return nil
}
