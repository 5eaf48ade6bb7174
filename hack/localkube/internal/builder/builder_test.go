package builder

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/heliostat-io/heliostat/hack/localkube/internal/progress"
)

func testSources(main string) fstest.MapFS {
	return fstest.MapFS{
		"go.mod":            {Data: []byte("module example.test/programs\n\ngo 1.26\n")},
		"cmd/hello/main.go": {Data: []byte(main)},
	}
}

const helloSource = "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"hello\") }\n"

func TestProgramsAreBuiltOnceForTheSameSources(t *testing.T) {
	var said bytes.Buffer
	builder := Builder{Sources: testSources(helloSource), Dir: t.TempDir(), Log: progress.New(&said)}
	first, err := builder.Ensure(t.Context(), "hello")
	if err != nil {
		t.Fatal(err)
	}
	output, err := exec.Command(first[0]).Output()
	if err != nil || string(output) != "hello\n" {
		t.Errorf("the built program prints %q and ends with %v, want hello", output, err)
	}
	said.Reset()
	second, err := builder.Ensure(t.Context(), "hello")
	if err != nil {
		t.Fatal(err)
	}
	if second[0] != first[0] || said.Len() > 0 {
		t.Errorf("the second time it is %s after saying %q, want %s at once", second[0], said.String(), first[0])
	}
	builder.Sources = testSources(helloSource + "\n// Changed.\n")
	third, err := builder.Ensure(t.Context(), "hello")
	if err != nil {
		t.Fatal(err)
	}
	if third[0] == first[0] {
		t.Error("changed sources give the program that was built from the old ones")
	}
}

func TestAFailedBuildShowsTheCompilersWordsAndLeavesNothing(t *testing.T) {
	builder := Builder{Sources: testSources("package main\n\nfunc main() { missing() }\n"), Dir: t.TempDir(), Log: progress.New(&bytes.Buffer{})}
	_, err := builder.Ensure(t.Context(), "hello")
	if err == nil || !strings.Contains(err.Error(), "undefined: missing") {
		t.Errorf("got error %v, want the compiler's", err)
	}
	entries, err := os.ReadDir(builder.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.Name() != "lock" {
			t.Errorf("the failed build leaves %s", entry.Name())
		}
	}
}
