package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/heliostat-io/heliostat/hack/localkube/image"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/progress"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/state"
	"github.com/heliostat-io/heliostat/hack/localkube/rayimage"
	"github.com/heliostat-io/heliostat/hack/localkube/s3image"
)

func newImageCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "image",
		Short: "Make container images without any registry",
		Long: `Make container images without any registry, as OCI archives for "localkube load".
Images that take long to make are kept in the cache under a name that follows
from their content, and made again only when their recipe changes.`,
	}
	command.AddCommand(newRayImageCommand(), newS3ImageCommand(), newBinaryImageCommand())
	return command
}

func newRayImageCommand() *cobra.Command {
	var output string
	var list bool
	command := &cobra.Command{
		Use:   "ray",
		Short: "Make an image with Ray " + rayimage.RayVersion + " and print the archive's path",
		Long: `Make an image with Ray ` + rayimage.RayVersion + ` from Debian and Python packages, and print the path of
its archive. It is loaded under the names of the upstream Ray images that samples
use, so that they run unedited; --list-names prints them all. For manifests of
your own there is ` + rayimage.Name() + `.

Making it takes one to three minutes and needs root and Debian or Ubuntu; after
that it is cached. At run time it needs no network: pip in a runtime_env finds
the packages of the upstream samples in the image.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if list {
				for _, name := range rayimage.Names() {
					fmt.Fprintln(cmd.OutOrStdout(), name)
				}
				return nil
			}
			return fromCache(cmd, output, rayimage.Build)
		},
	}
	addOutputFlag(command, &output)
	command.Flags().BoolVar(&list, "list-names", false, "only print the names that the image is loaded under")
	return command
}

func newS3ImageCommand() *cobra.Command {
	var output, source string
	command := &cobra.Command{
		Use:   "s3",
		Short: "Make an image with an S3 server and print the archive's path",
		Long: `Make the image ` + s3image.Name + ` from the Go module
hack/s3server, and print the path of its archive. The server listens on port
9000, keeps its objects in /data, and accepts the credentials in its environment
variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if source == "" {
				found, err := s3image.FindSource(".")
				if err != nil {
					return err
				}
				source = found
			}
			return fromCache(cmd, output, func(ctx context.Context, dir string, log *progress.Log) (string, error) {
				return s3image.Build(ctx, source, dir, log)
			})
		},
	}
	addOutputFlag(command, &output)
	command.Flags().StringVar(&source, "source", "", "`folder` of the S3 server's Go module (default hack/s3server here or above)")
	return command
}

func newBinaryImageCommand() *cobra.Command {
	var binary image.Binary
	var output string
	command := &cobra.Command{
		Use:   "binary --name NAME --binary FILE --output FILE",
		Short: "Make an image that holds one statically linked program",
		Long: `Make an image that holds one statically linked program and nothing else. It is
run by user and group ` + image.NonRoot + `.`,
		Example: `  CGO_ENABLED=0 go build -o /tmp/manager ./cmd/heliostat
  localkube image binary --name docker.io/heliostat/operator:dev --binary /tmp/manager -o operator.tar`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log := progress.New(cmd.ErrOrStderr())
			if err := image.PackBinary(cmd.Context(), binary, output); err != nil {
				return err
			}
			info, err := os.Stat(output)
			if err != nil {
				return fmt.Errorf("looking at the archive: %w", err)
			}
			log.Printf("image %s: %.1f MB in %s", binary.Names[0], float64(info.Size())/1e6, output)
			return nil
		},
	}
	flags := command.Flags()
	flags.StringArrayVar(&binary.Names, "name", nil, "`reference` of the image with registry and tag; can be given several times")
	flags.StringVar(&binary.File, "binary", "", "`file` of the program")
	flags.StringArrayVar(&binary.Entrypoint, "entrypoint", []string{"/manager"}, "`path` of the program in the image; given again, an argument of the program")
	flags.StringVarP(&output, "output", "o", "", "archive `file` to write")
	for _, name := range []string{"name", "binary", "output"} {
		// It fails only for a flag that does not exist.
		_ = command.MarkFlagRequired(name)
	}
	return command
}

func addOutputFlag(command *cobra.Command, output *string) {
	command.Flags().StringVarP(output, "output", "o", "", "`file` to put the archive at, besides the cache")
}

// fromCache builds an image into the cache and prints where its archive is.
func fromCache(cmd *cobra.Command, output string, build func(context.Context, string, *progress.Log) (string, error)) error {
	cache, err := state.CacheDir()
	if err != nil {
		return err
	}
	dir := state.ImagesDir(cache)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making the folder for images: %w", err)
	}
	archive, err := build(cmd.Context(), dir, progress.New(cmd.ErrOrStderr()))
	if err != nil {
		return err
	}
	if output != "" {
		if err := linkOrCopy(archive, output); err != nil {
			return fmt.Errorf("putting the image archive at %s: %w", output, err)
		}
		archive = output
	}
	fmt.Fprintln(cmd.OutOrStdout(), archive)
	return nil
}

// linkOrCopy makes file another name of archive where the file system can do
// that, since some archives are large, and a copy elsewhere.
func linkOrCopy(archive, file string) error {
	part := filepath.Join(filepath.Dir(file), "."+filepath.Base(file)+".part")
	if err := os.Remove(part); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Link(archive, part); err != nil {
		if err := copyFile(archive, part); err != nil {
			return err
		}
	}
	// Renaming onto another name of the same file does nothing, so part may stay.
	defer os.Remove(part)
	return os.Rename(part, file)
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}
