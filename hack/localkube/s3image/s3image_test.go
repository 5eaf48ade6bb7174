package s3image

import (
	"os"
	"path/filepath"
	"testing"
)

func TestSourceIsFoundFromAnywhereInTheRepository(t *testing.T) {
	repository := t.TempDir()
	source := filepath.Join(repository, "hack", "s3server")
	below := filepath.Join(repository, "test", "e2e")
	for _, dir := range []string{source, below} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := FindSource(below); err == nil {
		t.Error("given no module: got no error")
	}
	if err := os.WriteFile(filepath.Join(source, "go.mod"), []byte("module example.com/s3server\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{repository, below, source} {
		got, err := FindSource(dir)
		if err != nil {
			t.Errorf("given folder %s: %v", dir, err)
		}
		if got != source {
			t.Errorf("given folder %s: got %q, want %q", dir, got, source)
		}
	}
}

func TestCacheKeyFollowsTheSources(t *testing.T) {
	source := t.TempDir()
	key := func(program string) string {
		t.Helper()
		if err := os.WriteFile(filepath.Join(source, "main.go"), []byte(program), 0o644); err != nil {
			t.Fatal(err)
		}
		got, err := cacheKey(source)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	first, second, again := key("package main // 1"), key("package main // 2"), key("package main // 1")
	if first == second {
		t.Error("different sources have the same key")
	}
	if first != again {
		t.Error("the same sources have different keys")
	}
}
