package workdir

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
)

// Ignore says whether .gitignore files matter. Ray's own .rayignore files always do.
type Ignore int

// The two ways to treat .gitignore files.
const (
	// GitignoreFiles leaves out what .gitignore files match. It is Ray's default.
	GitignoreFiles Ignore = iota
	// NoGitignoreFiles packs that, too, as RAY_RUNTIME_ENV_IGNORE_GITIGNORE=1 makes Ray do.
	NoGitignoreFiles
)

// overrideExcludes is the variable by which Ray's users say what is left out without being asked for.
const overrideExcludes = "RAY_OVERRIDE_RUNTIME_ENV_DEFAULT_EXCLUDES"

// DefaultExcludes are the patterns of what Ray leaves out of every working directory, before those of the user. lookup
// reads a variable of the environment, as os.LookupEnv does: RAY_OVERRIDE_RUNTIME_ENV_DEFAULT_EXCLUDES holds other patterns,
// separated by commas; when it is empty, there are none.
func DefaultExcludes(lookup func(name string) (string, bool)) []string {
	list, given := lookup(overrideExcludes)
	if !given {
		return []string{".git", ".venv", "venv", "__pycache__"}
	}
	var patterns []string
	for pattern := range strings.SplitSeq(list, ",") {
		if pattern = strings.TrimSpace(pattern); pattern != "" {
			patterns = append(patterns, pattern)
		}
	}
	return patterns
}

// files are the names of the files that say what to leave out, in the order in which they are read.
func (i Ignore) files() []string {
	if i == NoGitignoreFiles {
		return []string{".rayignore"}
	}
	return []string{".gitignore", ".rayignore"}
}

// lister collects the files of a tree.
type lister struct {
	ignore   Ignore
	excludes []gitignore.Pattern
	files    []file
}

// list returns the files and the empty directories to pack, in the order of their names.
func list(ctx context.Context, root string, excludes []string, ignore Ignore) ([]file, error) {
	l := &lister{ignore: ignore}
	for _, pattern := range excludes {
		l.excludes = append(l.excludes, gitignore.ParsePattern(pattern, nil))
	}
	if err := l.directory(ctx, root, nil, nil, nil); err != nil {
		return nil, err
	}
	slices.SortFunc(l.files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return l.files, nil
}

// directory collects the files of one directory and of those below it. at is its path in the package, above are the actual
// paths of it and of all directories that led there, and patterns are those of the .gitignore files on the way.
func (l *lister) directory(ctx context.Context, dir string, at, above []string, patterns []gitignore.Pattern) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("read the working directory: %w", err)
	}
	actual, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return fmt.Errorf("read the working directory: %w", err)
	}
	if actual, err = filepath.Abs(actual); err != nil {
		return fmt.Errorf("read the working directory: %w", err)
	}
	if slices.Contains(above, actual) {
		return nil // A link that leads back up would never end.
	}
	above = append(slices.Clip(above), actual)
	for _, name := range l.ignore.files() {
		own, err := readIgnored(filepath.Join(dir, name), at)
		if err != nil {
			return err
		}
		patterns = slices.Concat(patterns, own)
	}
	ignored := gitignore.NewMatcher(patterns)
	// The two lists are asked one by one: a "!" in a .gitignore file must not bring back what the user excludes.
	excluded := gitignore.NewMatcher(l.excludes)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("read the working directory: %w", err)
	}
	if len(entries) == 0 && len(at) > 0 {
		info, err := os.Stat(dir)
		if err != nil {
			return fmt.Errorf("read the working directory: %w", err)
		}
		l.files = append(l.files, file{name: path.Join(at...) + "/", path: dir, info: info})
	}
	for _, entry := range entries {
		full, name := filepath.Join(dir, entry.Name()), append(slices.Clip(at), entry.Name())
		info, err := os.Stat(full)
		if errors.Is(err, os.ErrNotExist) {
			continue // a link to nothing
		}
		if err != nil {
			return fmt.Errorf("read the working directory: %w", err)
		}
		switch {
		case ignored.Match(name, info.IsDir()), excluded.Match(name, info.IsDir()):
		case info.IsDir():
			if err := l.directory(ctx, full, name, above, patterns); err != nil {
				return err
			}
		case info.Mode().IsRegular():
			l.files = append(l.files, file{name: path.Join(name...), path: full, info: info})
		}
	}
	return nil
}

// readIgnored reads the patterns of a file, which hold for the directory at and all below. A file that is not there has
// none.
func readIgnored(file string, at []string) ([]gitignore.Pattern, error) {
	content, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what not to upload: %w", err)
	}
	var patterns []gitignore.Pattern
	for lines := bufio.NewScanner(bytes.NewReader(content)); lines.Scan(); {
		line := strings.TrimRight(lines.Text(), "\r")
		if strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#") {
			patterns = append(patterns, gitignore.ParsePattern(line, at))
		}
	}
	return patterns, nil
}
