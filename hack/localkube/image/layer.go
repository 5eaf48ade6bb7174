package image

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// inode names a file on this machine, so that hard links are seen as such.
type inode struct {
	device, number uint64
}

// layerWriter turns a directory into the tar stream of one layer.
type layerWriter struct {
	tar       *tar.Writer
	root      string
	rootOwned bool
	// seen holds the path inside the layer of every file with several names.
	seen map[inode]string
}

// writeLayer writes all of root to w, parents before children, sorted by name.
func writeLayer(ctx context.Context, w io.Writer, root string, rootOwned bool) error {
	l := &layerWriter{tar: tar.NewWriter(w), root: root, rootOwned: rootOwned, seen: map[inode]string{}}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("reading %s: %w", path, err)
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("packing %s: %w", root, err)
		}
		if path == root {
			return nil
		}
		if err := l.add(path, entry); err != nil {
			return fmt.Errorf("packing %s: %w", path, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return l.tar.Close()
}

func (l *layerWriter) add(path string, entry fs.DirEntry) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	if info.Mode()&(fs.ModeSocket|fs.ModeDevice|fs.ModeNamedPipe) != 0 {
		return nil
	}
	header, err := l.header(path, info)
	if err != nil {
		return err
	}
	if err := l.tar.WriteHeader(header); err != nil {
		return err
	}
	if header.Typeflag != tar.TypeReg {
		return nil
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(l.tar, file)
	return err
}

func (l *layerWriter) header(path string, info fs.FileInfo) (*tar.Header, error) {
	target := ""
	if info.Mode()&fs.ModeSymlink != 0 {
		var err error
		if target, err = os.Readlink(path); err != nil {
			return nil, err
		}
	}
	header, err := tar.FileInfoHeader(info, target)
	if err != nil {
		return nil, err
	}
	name, err := filepath.Rel(l.root, path)
	if err != nil {
		return nil, err
	}
	header.Name = filepath.ToSlash(name)
	if info.IsDir() {
		header.Name += "/"
	}
	header.ModTime, header.AccessTime, header.ChangeTime = fixedTime(), time.Time{}, time.Time{}
	// Names of users are those of this machine, not of the image.
	header.Uname, header.Gname = "", ""
	header.Format = tar.FormatPAX
	if l.rootOwned {
		header.Uid, header.Gid = 0, 0
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && info.Mode().IsRegular() && stat.Nlink > 1 {
		id := inode{device: stat.Dev, number: stat.Ino}
		if first, found := l.seen[id]; found {
			header.Typeflag, header.Linkname, header.Size = tar.TypeLink, first, 0
		} else {
			l.seen[id] = header.Name
		}
	}
	return header, nil
}
