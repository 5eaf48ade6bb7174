package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/heliostat-io/heliostat/hack/localkube/internal/state"
)

// controllersFile remembers the cgroup controllers that were switched on for
// clusters, across all clusters of the machine.
func controllersFile() string {
	return filepath.Join(filepath.Dir(state.SysctlFile()), "cgroup-controllers.json")
}

func loadControllers() ([]string, error) {
	raw, err := os.ReadFile(controllersFile())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading which cgroup controllers were switched on: %w", err)
	}
	var names []string
	if err := json.Unmarshal(raw, &names); err != nil {
		return nil, fmt.Errorf("reading which cgroup controllers were switched on: %w", err)
	}
	return names, nil
}

// rememberControllers adds names to those that were switched on.
func rememberControllers(names []string) error {
	if len(names) == 0 {
		return nil
	}
	known, err := loadControllers()
	if err != nil {
		return err
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			known = append(known, name)
		}
	}
	if err := state.WriteJSON(controllersFile(), known); err != nil {
		return fmt.Errorf("remembering which cgroup controllers were switched on: %w", err)
	}
	return nil
}
