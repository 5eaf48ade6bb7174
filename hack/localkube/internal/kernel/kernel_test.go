package kernel

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSettingsAreRestoredToWhatTheyWereBeforeTheFirstCluster(t *testing.T) {
	settings := Settings{Root: t.TempDir()}
	file := filepath.Join(t.TempDir(), "saved.json")
	panicking := filepath.Join(settings.Root, "kernel", "panic")
	set := func(value string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(panicking), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(panicking, []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set("1\n")
	if err := settings.Save(file); err != nil {
		t.Fatal(err)
	}
	set("10\n")
	// The second cluster starts when the first has changed the setting.
	if err := settings.Save(file); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := settings.Restore(file); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(panicking)
	if err != nil {
		t.Fatal(err)
	}
	if strings.TrimSpace(string(got)) != "1" {
		t.Errorf("got %q after restoring, want 1", got)
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the file with saved settings is still there: %v", err)
	}
}
