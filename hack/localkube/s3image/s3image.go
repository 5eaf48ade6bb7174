// Package s3image builds the image of an S3 server for tests and walk-throughs
// from the Go module hack/s3server.
package s3image

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/heliostat-io/heliostat/hack/localkube/image"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/progress"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/state"
)

// Name is the reference of the image. Its server listens on port 9000, keeps
// objects in /data and takes credentials as package main of hack/s3server says.
const Name = "docker.io/heliostat/s3server:dev"

// sourceDir is where the module lies in the repository.
const sourceDir = "hack/s3server"

// FindSource returns the folder of the S3 server's module: hack/s3server in dir
// or in the nearest folder above it.
func FindSource(dir string) (string, error) {
	start, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("making %s absolute: %w", dir, err)
	}
	for at := start; ; at = filepath.Dir(at) {
		source := filepath.Join(at, sourceDir)
		if _, err := os.Stat(filepath.Join(source, "go.mod")); err == nil {
			return source, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("there is no %s in %s or above it: run this command inside the repository, or say --source", sourceDir, start)
		}
	}
}

// Build returns the path of the image's archive in the folder dir, which it makes
// from the module in source unless dir has one of the same sources.
func Build(ctx context.Context, source, dir string, log *progress.Log) (string, error) {
	key, err := cacheKey(source)
	if err != nil {
		return "", err
	}
	archive := filepath.Join(dir, "s3server-"+key+".tar")
	unlock, err := state.Lock(ctx, filepath.Join(dir, "s3server.lock"), func() {
		log.Printf("waiting for another build of the S3 server's image")
	})
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(archive); err == nil {
		log.Printf("S3 server's image: cached")
		return archive, nil
	}
	work, err := os.MkdirTemp(dir, ".s3server-*")
	if err != nil {
		return "", fmt.Errorf("making a folder to build the S3 server in: %w", err)
	}
	defer os.RemoveAll(work)
	program := filepath.Join(work, "s3server")
	log.Printf("S3 server's image: compiling (two to four minutes the first time)")
	if err := compile(ctx, source, program); err != nil {
		return "", err
	}
	err = image.PackBinary(ctx, image.Binary{
		Names: []string{Name}, File: program, Entrypoint: []string{"/s3server"}, Writable: []string{"/data"},
	}, archive)
	if err != nil {
		return "", err
	}
	log.Printf("S3 server's image: built")
	return archive, nil
}

func compile(ctx context.Context, source, program string) error {
	var output bytes.Buffer
	build := exec.CommandContext(ctx, "go", "build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", program, ".")
	build.Dir = source
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOOS=linux", "GOARCH="+runtime.GOARCH)
	build.Stdout, build.Stderr = &output, &output
	err := build.Run()
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("compiling the S3 server needs Go: %w", err)
	}
	if err != nil {
		return fmt.Errorf("compiling the S3 server in %s: %w; go build says:\n%s", source, err, bytes.TrimSpace(output.Bytes()))
	}
	return nil
}

// cacheKey names the image by all that goes into the program.
func cacheKey(source string) (string, error) {
	files, err := filepath.Glob(filepath.Join(source, "*"))
	if err != nil {
		return "", fmt.Errorf("listing the sources of the S3 server: %w", err)
	}
	hash := sha256.New()
	fmt.Fprintln(hash, runtime.GOARCH, runtime.Version())
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("reading the sources of the S3 server: %w", err)
		}
		fmt.Fprintln(hash, filepath.Base(file), len(content))
		hash.Write(content)
	}
	return hex.EncodeToString(hash.Sum(nil))[:16], nil
}
