package conformance

import (
	"os"
	"path/filepath"
	"testing"
)

// repositoryRoot is where this repository lies, seen from the folder in which go test runs this package.
const repositoryRoot = "../.."

// sharedFile returns the path of a file in the folder of specifications that lies beside the repository (or where
// HELIOSTAT_SHARED says). The folder is not part of the repository; without it the test is skipped.
func sharedFile(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv("HELIOSTAT_SHARED")
	if dir == "" {
		dir = filepath.Join(repositoryRoot, "..", "shared")
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("skipped: %s is absent (set HELIOSTAT_SHARED to the folder of specifications to run this test)", path)
	}
	return path
}
