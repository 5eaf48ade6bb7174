// Command s3server is an S3 server for tests and walk-throughs: one process, one
// access key, objects as files in a folder. It is VersityGW with the few settings
// that those need.
//
// The credentials that it accepts come from AWS_ACCESS_KEY_ID and
// AWS_SECRET_ACCESS_KEY, the names that S3 clients read: one Secret serves both
// sides. GET /healthz answers 200 once it serves.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

const (
	// maxRequests is far above what tests send, and low enough to need little memory.
	maxRequests = 1000
	// maxParts is the limit of S3 itself for the parts of one upload.
	maxParts = 10000
)

func main() {
	listen := flag.String("listen", ":9000", "`address` to listen on")
	data := flag.String("data", "/data", "`folder` for the objects")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *listen, *data); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "s3server: "+err.Error())
		os.Exit(1)
	}
}

func run(ctx context.Context, listen, data string) error {
	access, secret := os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY")
	if access == "" || secret == "" {
		return errors.New("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY must be set to the credentials to accept")
	}
	// VersityGW compares the folders as absolute paths.
	data, err := filepath.Abs(data)
	if err != nil {
		return fmt.Errorf("making the folder %s absolute: %w", data, err)
	}
	buckets, metadata := filepath.Join(data, "buckets"), filepath.Join(data, "metadata")
	for _, dir := range []string{buckets, metadata} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("making the folder %s: %w", dir, err)
		}
	}
	// Metadata goes into files of its own because a memory volume may not take
	// extended attributes.
	store, err := meta.NewSideCar(metadata)
	if err != nil {
		return fmt.Errorf("opening the metadata in %s: %w", metadata, err)
	}
	backend, err := posix.New(buckets, store, posix.PosixOpts{SideCarDir: metadata, Concurrency: maxRequests})
	if err != nil {
		return fmt.Errorf("opening the buckets in %s: %w", buckets, err)
	}
	return embedgw.RunVersityGW(ctx, backend, &embedgw.Config{
		RootUserAccess:    access,
		RootUserSecret:    secret,
		Ports:             []string{listen},
		MaxConnections:    maxRequests,
		MaxRequests:       maxRequests,
		MultipartMaxParts: maxParts,
		HealthPath:        "/healthz",
	})
}
