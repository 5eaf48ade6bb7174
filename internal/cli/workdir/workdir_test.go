package workdir_test

import (
	"archive/zip"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heliostat-io/heliostat/internal/cli/workdir"
)

// tree writes files into a new directory.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// contents packs a directory and returns the files of the package.
func contents(t *testing.T, root string, excludes []string, ignore workdir.Ignore) (map[string]string, *workdir.Package) {
	t.Helper()
	pack, err := workdir.Pack(t.Context(), root, excludes, ignore)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pack.Remove(); err != nil {
			t.Error(err)
		}
	})
	archive, err := zip.OpenReader(pack.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	got := map[string]string{}
	for _, f := range archive.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		got[f.Name] = string(content)
	}
	return got, pack
}

func TestWhatIsPacked(t *testing.T) {
	cases := map[string]struct {
		files    map[string]string
		excludes []string
		ignore   workdir.Ignore
		want     []string
	}{
		"given no patterns, then all is packed": {
			files: map[string]string{"main.py": "", "lib/a.py": "", ".env": ""}, want: []string{"main.py", "lib/a.py", ".env"},
		},
		"given a .gitignore file, then what it matches stays": {
			files: map[string]string{".gitignore": "# data\n*.log\n/data/\n!keep.log\n", "a.log": "", "keep.log": "", "data/x": "", "lib/data/x": "", "lib/b.log": ""},
			want:  []string{".gitignore", "keep.log", "lib/data/x"},
		},
		"given one further down, then it holds there": {
			files: map[string]string{"lib/.gitignore": "/out\n", "lib/out": "", "out": "", "lib/sub/out": ""},
			want:  []string{"lib/.gitignore", "out", "lib/sub/out"},
		},
		"given .gitignore files do not matter, then all is packed": {
			files: map[string]string{".gitignore": "*", "main.py": ""}, ignore: workdir.NoGitignoreFiles, want: []string{".gitignore", "main.py"},
		},
		"given excludes, then what they match stays": {
			files:    map[string]string{"my_file.txt": "", "subdir/a": "", "path/to/dir/a": "", "x/path/to/dir/a": "", "x/subdir/a": "", "x/b.log": ""},
			excludes: []string{"my_file.txt", "/subdir/", "path/to/dir", "*.log"},
			want:     []string{"x/path/to/dir/a", "x/subdir/a"},
		},
		"given a .rayignore file, then it holds also where .gitignore files do not": {
			files: map[string]string{".gitignore": "*", ".rayignore": "data\n", "data/x": "", "main.py": ""}, ignore: workdir.NoGitignoreFiles,
			want: []string{".gitignore", ".rayignore", "main.py"},
		},
		"given a .gitignore file that brings back what is excluded, then it stays": {
			files: map[string]string{".gitignore": "!big.bin\n", "big.bin": "", "main.py": ""}, excludes: []string{"*.bin"},
			want: []string{".gitignore", "main.py"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, pack := contents(t, tree(t, tc.files), tc.excludes, tc.ignore)
			want := map[string]string{}
			for _, file := range tc.want {
				want[file] = tc.files[file]
			}
			if diff := cmp.Diff(want, got); diff != "" || pack.Files != len(want) {
				t.Errorf("packed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsLeftOutOfEveryWorkingDirectory(t *testing.T) {
	cases := map[string]struct {
		variable map[string]string
		excludes []string
		want     []string
	}{
		"given nothing else is said, then what Ray leaves out":       {want: []string{"lib/a.py", "main.py", "mine/x"}},
		"given the user brings one back, then it is packed":          {excludes: []string{"!.git"}, want: []string{".git/HEAD", "lib/a.py", "main.py", "mine/x"}},
		"given the variable, then what it names":                     {variable: map[string]string{"RAY_OVERRIDE_RUNTIME_ENV_DEFAULT_EXCLUDES": " mine, .git ,"}, want: []string{".venv/x", "lib/__pycache__/a.pyc", "lib/a.py", "main.py", "venv/x"}},
		"given the variable and nothing in it, then nothing is left": {variable: map[string]string{"RAY_OVERRIDE_RUNTIME_ENV_DEFAULT_EXCLUDES": ""}, want: []string{".git/HEAD", ".venv/x", "lib/__pycache__/a.pyc", "lib/a.py", "main.py", "mine/x", "venv/x"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			root := tree(t, map[string]string{"main.py": "", ".git/HEAD": "", ".venv/x": "", "venv/x": "", "lib/a.py": "", "lib/__pycache__/a.pyc": "", "mine/x": ""})
			lookup := func(name string) (string, bool) {
				value, given := tc.variable[name]
				return value, given
			}
			got, _ := contents(t, root, slices.Concat(workdir.DefaultExcludes(lookup), tc.excludes), workdir.GitignoreFiles)
			if diff := cmp.Diff(tc.want, slices.Sorted(maps.Keys(got))); diff != "" {
				t.Errorf("packed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEmptyDirectoriesArePacked(t *testing.T) {
	root := tree(t, map[string]string{"main.py": "", ".gitignore": "out\n"})
	for _, dir := range []string{"logs/old", "out"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	got, with := contents(t, root, nil, workdir.GitignoreFiles)
	if diff := cmp.Diff(map[string]string{"main.py": "", ".gitignore": "out\n", "logs/old/": ""}, got); diff != "" {
		t.Errorf("packed (-want +got):\n%s", diff)
	}
	if err := os.Remove(filepath.Join(root, "logs/old")); err != nil {
		t.Fatal(err)
	}
	if _, without := contents(t, root, nil, workdir.GitignoreFiles); without.Name == with.Name {
		t.Error("the package with another directory has the same name")
	}
}

func TestLinksAreFollowed(t *testing.T) {
	outside := tree(t, map[string]string{"shared.py": "shared"})
	root := tree(t, map[string]string{"main.py": ""})
	for link, target := range map[string]string{"lib": outside, "loop": root, "nothing": filepath.Join(root, "gone")} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	got, _ := contents(t, root, nil, workdir.GitignoreFiles)
	if diff := cmp.Diff(map[string]string{"main.py": "", "lib/shared.py": "shared"}, got); diff != "" {
		t.Errorf("packed (-want +got):\n%s", diff)
	}
}

func TestTheNameFollowsFromTheContent(t *testing.T) {
	base := map[string]string{"main.py": "print(1)"}
	root := tree(t, base)
	_, first := contents(t, root, nil, workdir.GitignoreFiles)
	if err := os.Chtimes(filepath.Join(root, "main.py"), time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if _, again := contents(t, root, nil, workdir.GitignoreFiles); again.Name != first.Name {
		t.Errorf("the same files with other times are called %s and %s", first.Name, again.Name)
	}
	for what, files := range map[string]map[string]string{
		"another content": {"main.py": "print(2)"}, "another name": {"main2.py": "print(1)"}, "another file": {"main.py": "print(1)", "a": ""},
	} {
		if _, other := contents(t, tree(t, files), nil, workdir.GitignoreFiles); other.Name == first.Name {
			t.Errorf("%s has the same name", what)
		}
	}
	if !strings.HasPrefix(first.Name, "_ray_pkg_") || !strings.HasSuffix(first.Name, ".zip") {
		t.Errorf("Ray does not know packages with names like %q", first.Name)
	}
}

func TestAnArchiveIsTakenAsItIs(t *testing.T) {
	path := filepath.Join(tree(t, map[string]string{"mine.zip": "PK"}), "mine.zip")
	pack, err := workdir.Pack(t.Context(), path, nil, workdir.GitignoreFiles)
	if err != nil {
		t.Fatal(err)
	}
	if pack.Path != path || pack.Size != 2 {
		t.Errorf("got %+v", pack)
	}
	if err := pack.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the user's own file is gone: %v", err)
	}
}

// cancelled is a context that ends when it is asked for the n-th time whether it has.
type cancelled struct {
	context.Context
	left int
}

// Err tells whether it has ended.
func (c *cancelled) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

func TestPackingCanBeInterrupted(t *testing.T) {
	root := tree(t, map[string]string{"main.py": "print(1)", "lib/a.py": "a"})
	archive := filepath.Join(tree(t, map[string]string{"mine.zip": "PK"}), "mine.zip")
	cases := map[string]struct {
		path  string
		after int
	}{
		"given it comes at once, then nothing is listed":            {root, 0},
		"given it comes while files are packed, then that is ended": {root, 3},
		"given an archive, then it is not read":                     {archive, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			_, err := workdir.Pack(&cancelled{t.Context(), tc.after}, tc.path, nil, workdir.GitignoreFiles)
			if !errors.Is(err, context.Canceled) {
				t.Errorf("Pack returned %v", err)
			}
			if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) != 0 {
				t.Errorf("left behind %v, %v", left, err)
			}
		})
	}
}

func TestWhatCannotBePackedIsSaid(t *testing.T) {
	root := tree(t, map[string]string{"main.py": ""})
	cases := map[string]struct {
		path     string
		excludes []string
		want     string
	}{
		"given no directory, then its path is said": {filepath.Join(root, "gone"), nil, filepath.Join(root, "gone") + " does not exist"},
		"given a file, then that is said":           {filepath.Join(root, "main.py"), nil, "is a file"},
		"given nothing is left, then that is said":  {root, []string{"*"}, "holds no files"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := workdir.Pack(t.Context(), tc.path, tc.excludes, workdir.GitignoreFiles); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Pack returned %v", err)
			}
		})
	}
}
