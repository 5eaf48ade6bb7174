// Package workdir makes of a directory the package that Ray unpacks as a job's working directory. What is left out, and how
// links are treated, is as Ray's documentation says of runtime_env (docs.ray.io, "Environment dependencies").
package workdir

import (
	"archive/zip"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
)

// Package is an upload that stands ready in a file of this machine.
type Package struct {
	// Name follows from the content: like content has like names, and needs to be uploaded once.
	Name string
	// Path is where the file is.
	Path string
	// Size is that of the file, in bytes.
	Size int64
	// Files is the number of files and empty directories in it, 0 when they were not counted.
	Files int

	temporary bool
}

// Remove deletes the file unless it is one of the user's.
func (p *Package) Remove() error {
	if !p.temporary {
		return nil
	}
	if err := os.Remove(p.Path); err != nil {
		return fmt.Errorf("delete the package: %w", err)
	}
	return nil
}

// file is one file to pack, or one empty directory.
type file struct {
	// name is its path in the package, with slashes. That of a directory ends with one.
	name string
	path string
	info os.FileInfo
}

// Check says what is wrong with a path as a working directory, and costs nothing.
func Check(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("the working directory %s does not exist", path)
	case err != nil:
		return fmt.Errorf("the working directory %s cannot be used: %w", path, err)
	case !info.IsDir() && !isArchive(path):
		return fmt.Errorf("the working directory %s is a file: it must be a directory or a .zip file", path)
	default:
		return nil
	}
}

func isArchive(path string) bool { return strings.EqualFold(filepath.Ext(path), ".zip") }

// Pack packs a directory without what the patterns in excludes match, written as in .gitignore files, without what
// .rayignore files in it match, and, where ignore says so, without what .gitignore files in it match. A .zip file is taken as it is. The error names
// the largest files when the package is larger than Ray takes. The context ends it, and then nothing is left behind.
func Pack(ctx context.Context, path string, excludes []string, ignore Ignore) (*Package, error) {
	if err := Check(path); err != nil {
		return nil, err
	}
	if isArchive(path) {
		return archive(ctx, path)
	}
	files, err := list(ctx, path, excludes, ignore)
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("the working directory %s holds no files to upload", path)
	}
	return pack(ctx, path, files)
}

// archive takes the user's own archive.
func archive(ctx context.Context, path string) (*Package, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the archive: %w", err)
	}
	defer f.Close()
	hash := sha256.New()
	size, err := io.Copy(hash, until(ctx, f))
	if err != nil {
		return nil, fmt.Errorf("read the archive %s: %w", path, err)
	}
	if size > dashboard.MaxPackage {
		return nil, fmt.Errorf("the archive %s has %s, Ray takes %s at most", path, bytesOf(size), bytesOf(dashboard.MaxPackage))
	}
	return &Package{Name: nameOf(hash.Sum(nil)), Path: path, Size: size}, nil
}

// nameOf is how Ray names packages of working directories.
func nameOf(hash []byte) string { return "_ray_pkg_" + hex.EncodeToString(hash[:16]) + ".zip" }

// pack writes the files into an archive.
func pack(ctx context.Context, root string, files []file) (pack *Package, err error) {
	out, err := os.CreateTemp("", "kubectl-ray-*.zip")
	if err != nil {
		return nil, fmt.Errorf("make a file for the package: %w", err)
	}
	defer func() {
		err = errors.Join(err, out.Close())
		if err != nil {
			err = errors.Join(err, os.Remove(out.Name()))
			pack = nil
		}
	}()
	hash := sha256.New()
	archive := zip.NewWriter(out)
	for _, f := range files {
		if err := add(ctx, archive, hash, f); err != nil {
			return nil, err
		}
		if position, err := out.Seek(0, io.SeekCurrent); err != nil || position > dashboard.MaxPackage {
			return nil, errors.Join(err, tooLarge(root, files))
		}
	}
	if err := archive.Close(); err != nil {
		return nil, fmt.Errorf("write the package: %w", err)
	}
	info, err := out.Stat()
	if err != nil {
		return nil, fmt.Errorf("write the package: %w", err)
	}
	if info.Size() > dashboard.MaxPackage {
		return nil, tooLarge(root, files)
	}
	return &Package{Name: nameOf(hash.Sum(nil)), Path: out.Name(), Size: info.Size(), Files: len(files), temporary: true}, nil
}

// packed is the time of every file in a package. Were it the real one, a fresh clone of the same sources would be another
// package.
func packed() time.Time { return time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC) }

// add writes one file into the archive and takes it into the hash.
func add(ctx context.Context, archive *zip.Writer, hash io.Writer, f file) error {
	header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: packed()}
	header.SetMode(f.info.Mode() & (fs.ModePerm | fs.ModeDir))
	to, err := archive.CreateHeader(header)
	if err != nil {
		return fmt.Errorf("pack %s: %w", f.path, err)
	}
	if f.info.IsDir() {
		// The slash at the end of its name tells it from an empty file.
		if _, err := fmt.Fprintf(hash, "%d:%s %o\n", len(f.name), f.name, f.info.Mode().Perm()); err != nil {
			return fmt.Errorf("pack %s: %w", f.path, err)
		}
		return nil
	}
	from, err := os.Open(f.path)
	if err != nil {
		return fmt.Errorf("pack the working directory: %w", err)
	}
	defer from.Close()
	content := sha256.New()
	size, err := io.Copy(io.MultiWriter(to, content), until(ctx, from))
	if err != nil {
		return fmt.Errorf("pack %s: %w", f.path, err)
	}
	if _, err := fmt.Fprintf(hash, "%d:%s %o %d %x\n", len(f.name), f.name, f.info.Mode().Perm(), size, content.Sum(nil)); err != nil {
		return fmt.Errorf("pack %s: %w", f.path, err)
	}
	return nil
}

// readerFunc is a function that reads.
type readerFunc func([]byte) (int, error)

// Read calls the function.
func (f readerFunc) Read(into []byte) (int, error) { return f(into) }

// until reads until the context ends.
func until(ctx context.Context, from io.Reader) io.Reader {
	return readerFunc(func(into []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return from.Read(into)
	})
}

// named is how many of the largest files an error names.
const named = 5

// tooLarge names what to leave out.
func tooLarge(root string, files []file) error {
	files = slices.Clone(files)
	slices.SortStableFunc(files, func(a, b file) int { return cmp.Compare(b.info.Size(), a.info.Size()) })
	var largest []string
	for _, f := range files[:min(named, len(files))] {
		largest = append(largest, fmt.Sprintf("%s (%s)", f.name, bytesOf(f.info.Size())))
	}
	return fmt.Errorf("the working directory %s is larger than the %s that Ray takes, even compressed; leave files out with a .gitignore or .rayignore file "+
		"or with excludes in the runtime environment; the largest are %s", root, bytesOf(dashboard.MaxPackage), strings.Join(largest, ", "))
}

// bytesOf is a number of bytes as Kubernetes writes it, for example 100Mi, rounded.
func bytesOf(size int64) string {
	for unit := int64(1 << 30); unit > 1; unit >>= 10 {
		if size >= unit {
			size = size / unit * unit
			break
		}
	}
	return resource.NewQuantity(size, resource.BinarySI).String() + "B"
}
