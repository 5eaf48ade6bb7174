package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/heliostat-io/heliostat/hack/localkube/internal/cgroup"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/state"
)

// controllersFile remembers which cgroup controllers were on before the first
// cluster of the machine.
func controllersFile() string {
	return filepath.Join(filepath.Dir(state.SysctlFile()), "cgroup-controllers.json")
}

// saveControllers remembers the controllers that are on, unless a cluster that
// still runs or was not cleaned up has done so.
func saveControllers(host cgroup.Host) error {
	if _, err := os.Stat(controllersFile()); err == nil {
		return nil
	}
	on, err := host.Controllers()
	if err != nil {
		return err
	}
	if err := state.WriteJSON(controllersFile(), on); err != nil {
		return fmt.Errorf("remembering which cgroup controllers were on: %w", err)
	}
	return nil
}

// restoreControllers switches off what was not on before.
func restoreControllers(host cgroup.Host) error {
	raw, err := os.ReadFile(controllersFile())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading which cgroup controllers were on: %w", err)
	}
	var before []string
	if err := json.Unmarshal(raw, &before); err != nil {
		return fmt.Errorf("reading which cgroup controllers were on in %s: %w", controllersFile(), err)
	}
	if err := host.Restore(before); err != nil {
		return err
	}
	return removeFile(controllersFile())
}
