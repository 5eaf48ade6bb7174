package log

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
)

const (
	// maxFile is the size of the largest file that is written, in bytes.
	maxFile = 4 << 30
	// maxFiles is how many files a Pod may have.
	maxFiles = 100_000
)

// errTooLarge says that a Pod sent more than is written.
var errTooLarge = errors.New("it is larger than what is written here")

// extract writes the regular files of an archive. The archive comes from a Pod, which runs code of its user, so nothing of
// it is believed: names cannot lead out of root, links and devices are left out, and sizes are bounded.
func extract(root *os.Root, archive io.Reader) error {
	entries := tar.NewReader(archive)
	for count := 0; ; count++ {
		entry, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the archive: %w", err)
		}
		if count >= maxFiles {
			return fmt.Errorf("the archive has more than %d files: %w", maxFiles, errTooLarge)
		}
		if entry.Typeflag != tar.TypeReg {
			continue
		}
		name, err := local(entry.Name)
		if err != nil {
			return err
		}
		if entry.Size > maxFile {
			return fmt.Errorf("%s has %d bytes: %w", name, entry.Size, errTooLarge)
		}
		if dir := path.Dir(name); dir != "." {
			if err := root.MkdirAll(dir, 0o750); err != nil {
				return fmt.Errorf("make the directory of %s: %w", name, err)
			}
		}
		if err := save(root, name, entries, entry.Size); err != nil {
			return err
		}
	}
}

// local is the name of an entry below the root. One that would lead out of it is refused.
func local(name string) (string, error) {
	clean := path.Clean(strings.TrimPrefix(name, "./"))
	if path.IsAbs(clean) || clean == ".." || strings.HasPrefix(clean, "../") || strings.Contains(clean, `\`) {
		return "", fmt.Errorf("the archive names a file outside of it: %q", name)
	}
	return clean, nil
}

// save writes a file of at most limit bytes.
func save(root *os.Root, name string, from io.Reader, limit int64) (err error) {
	file, err := root.Create(name)
	if err != nil {
		return fmt.Errorf("make %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	written, err := io.CopyN(file, from, limit)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if written < limit {
		return nil
	}
	// A file that fills the limit may go on.
	if n, err := from.Read(make([]byte, 1)); n > 0 {
		return fmt.Errorf("%s: %w", name, errors.Join(errTooLarge, err))
	}
	return nil
}
