package image

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// NonRoot is the user and group of images made by PackBinary. It is numeric so
// that a Pod with `runAsNonRoot: true` may run them.
const NonRoot = "65532:65532"

// Binary describes an image that holds one program and nothing to run it with:
// no shell, no libraries, no certificates.
type Binary struct {
	// Names are the references of the image, as in Spec.
	Names []string

	// File is the program on this machine. It must be linked statically.
	File string

	// Entrypoint is the absolute path that the program gets in the image,
	// followed by arguments that it always gets.
	Entrypoint []string

	// Writable lists folders besides /tmp that every user may write to.
	Writable []string
}

// PackBinary writes an image with one program to the archive outFile. It is run
// by the user NonRoot.
func PackBinary(ctx context.Context, binary Binary, outFile string) error {
	if err := binary.validate(); err != nil {
		return fmt.Errorf("image of program %s: %w", binary.File, err)
	}
	root, err := os.MkdirTemp(filepath.Dir(outFile), ".image-root-*")
	if err != nil {
		return fmt.Errorf("making a folder for the image of %s: %w", binary.File, err)
	}
	defer os.RemoveAll(root)
	if err := binary.fill(root); err != nil {
		return fmt.Errorf("collecting the files for the image of %s: %w", binary.File, err)
	}
	return Pack(ctx, Spec{
		Names:      binary.Names,
		Root:       root,
		RootOwned:  true,
		Entrypoint: binary.Entrypoint,
		User:       NonRoot,
	}, outFile)
}

func (b Binary) validate() error {
	if len(b.Entrypoint) == 0 || !filepath.IsAbs(b.Entrypoint[0]) {
		return fmt.Errorf("entrypoint %q must begin with an absolute path", b.Entrypoint)
	}
	program, err := elf.Open(b.File)
	if err != nil {
		return fmt.Errorf("reading it as a program: %w", err)
	}
	defer program.Close()
	for _, segment := range program.Progs {
		if segment.Type == elf.PT_INTERP {
			return errors.New("it is linked dynamically, and the image has no libraries: build it with CGO_ENABLED=0")
		}
	}
	return nil
}

// fill makes the root file system of the image. It sets every mode by itself, so
// that the umask of this process does not show in the image.
func (b Binary) fill(root string) error {
	etc := filepath.Join(root, "etc")
	if err := makeDir(etc, 0o755); err != nil {
		return err
	}
	users := "root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/tmp:/sbin/nologin\n"
	if err := writeText(filepath.Join(etc, "passwd"), users); err != nil {
		return err
	}
	if err := writeText(filepath.Join(etc, "group"), "root:x:0:\nnonroot:x:65532:\n"); err != nil {
		return err
	}
	for _, path := range append([]string{"tmp"}, b.Writable...) {
		if err := makeDir(filepath.Join(root, path), 0o777|fs.ModeSticky); err != nil {
			return err
		}
	}
	return copyProgram(b.File, filepath.Join(root, b.Entrypoint[0]))
}

func makeDir(dir string, mode fs.FileMode) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.Chmod(dir, mode)
}

func writeText(file, text string) error {
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return err
	}
	return os.Chmod(file, 0o644)
}

func copyProgram(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := makeDir(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return errors.Join(out.Chmod(0o755), out.Close())
}
