package state

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestForCluster(t *testing.T) {
	tests := map[string]struct {
		cache, name string
		wantErr     string
	}{
		"a usual place":               {cache: "/root/.cache/heliostat", name: "default"},
		"a name with a slash":         {cache: "/c", name: "../x", wantErr: "lower-case"},
		"an empty name":               {cache: "/c", name: "", wantErr: "lower-case"},
		"a name too long":             {cache: "/c", name: strings.Repeat("a", 21), wantErr: "1 to 20"},
		"a path too long for sockets": {cache: "/" + strings.Repeat("c", 80), name: "default", wantErr: EnvCache},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := ForCluster(test.cache, test.name)
			if test.wantErr == "" && err != nil {
				t.Fatal(err)
			}
			if test.wantErr != "" && (err == nil || !strings.Contains(err.Error(), test.wantErr)) {
				t.Errorf("got error %v, want one that says %q", err, test.wantErr)
			}
		})
	}
}

func TestClusterIsRemembered(t *testing.T) {
	dirs := Dirs{Name: "c", Big: "/big", Run: filepath.Join(t.TempDir(), "c")}
	if got, err := dirs.Load(); got != nil || err != nil {
		t.Fatalf("got %v and error %v before anything was saved, want neither", got, err)
	}
	want := Cluster{Dir: "/big", Index: 2, Nodes: 3, Kube: "/kube", FastNodeLoss: true}
	if err := dirs.Save(want); err != nil {
		t.Fatal(err)
	}
	got, err := dirs.Load()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&want, got); diff != "" {
		t.Errorf("cluster (-want +got):\n%s", diff)
	}
}

func TestLockIsHeldByOne(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lock")
	release, err := Lock(t.Context(), file, nil)
	if err != nil {
		t.Fatal(err)
	}
	waited := false
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := Lock(short, file, func() { waited = true }); err == nil {
		t.Error("a held lock was taken")
	}
	if !waited {
		t.Error("the second was not told that it has to wait")
	}
	release()
	again, err := Lock(t.Context(), file, nil)
	if err != nil {
		t.Fatal(err)
	}
	again()
}
