package image

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
)

// Media types of the OCI image specification, version 1.
const (
	mediaTypeIndex    = "application/vnd.oci.image.index.v1+json"
	mediaTypeManifest = "application/vnd.oci.image.manifest.v1+json"
	mediaTypeConfig   = "application/vnd.oci.image.config.v1+json"
	mediaTypeLayer    = "application/vnd.oci.image.layer.v1.tar"
)

// containerd reads an image's whole name from the first annotation; other tools
// read its tag from the second.
const (
	annotationName = "io.containerd.image.name"
	annotationTag  = "org.opencontainers.image.ref.name"
)

// tarBlock is the size in bytes that headers and contents of a tar file are
// rounded up to.
const tarBlock = 512

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        descriptor   `json:"config"`
	Layers        []descriptor `json:"layers"`
}

type index struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Manifests     []descriptor `json:"manifests"`
}

type imageConfig struct {
	platform
	Config containerConfig `json:"config"`
	RootFS rootFS          `json:"rootfs"`
}

type containerConfig struct {
	User       string   `json:"User,omitempty"`
	Env        []string `json:"Env"`
	Entrypoint []string `json:"Entrypoint,omitempty"`
	Cmd        []string `json:"Cmd,omitempty"`
	WorkingDir string   `json:"WorkingDir"`
}

type rootFS struct {
	Type    string   `json:"type"`
	DiffIDs []string `json:"diff_ids"`
}

// writeArchive writes the layer first and everything that speaks of its digest
// behind it, so that a layer of several hundred megabytes is written only once.
func writeArchive(ctx context.Context, file *os.File, spec Spec) error {
	layer, err := writeLayerBlob(ctx, file, spec)
	if err != nil {
		return err
	}
	host := platform{Architecture: runtime.GOARCH, OS: "linux"}
	out := tar.NewWriter(file)
	config, err := writeJSONBlob(out, mediaTypeConfig, imageConfig{
		platform: host,
		Config:   spec.containerConfig(),
		// The layer is not compressed, so its digest is its diff ID too.
		RootFS: rootFS{Type: "layers", DiffIDs: []string{layer.Digest}},
	})
	if err != nil {
		return err
	}
	image, err := writeJSONBlob(out, mediaTypeManifest, manifest{
		SchemaVersion: 2, MediaType: mediaTypeManifest, Config: config, Layers: []descriptor{layer},
	})
	if err != nil {
		return err
	}
	image.Platform = &host
	names := index{SchemaVersion: 2, MediaType: mediaTypeIndex}
	for _, name := range spec.Names {
		named := image
		named.Annotations = map[string]string{annotationName: name, annotationTag: name[strings.LastIndex(name, ":")+1:]}
		names.Manifests = append(names.Manifests, named)
	}
	encoded, err := json.Marshal(names)
	if err != nil {
		return fmt.Errorf("encoding the image index: %w", err)
	}
	if err := writeEntry(out, "index.json", encoded); err != nil {
		return err
	}
	if err := writeEntry(out, "oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)); err != nil {
		return err
	}
	return out.Close()
}

// writeLayerBlob writes the layer and, once digest and size are known, the tar
// header in front of it. It leaves the file at the end of the entry.
func writeLayerBlob(ctx context.Context, file *os.File, spec Spec) (descriptor, error) {
	if _, err := file.Seek(tarBlock, io.SeekStart); err != nil {
		return descriptor{}, fmt.Errorf("leaving room for the layer's header: %w", err)
	}
	hash := sha256.New()
	buffered := bufio.NewWriterSize(file, 1<<20)
	if err := writeLayer(ctx, io.MultiWriter(buffered, hash), spec.Root, spec.RootOwned); err != nil {
		return descriptor{}, err
	}
	if err := buffered.Flush(); err != nil {
		return descriptor{}, fmt.Errorf("writing the layer: %w", err)
	}
	end, err := file.Seek(0, io.SeekCurrent)
	if err != nil {
		return descriptor{}, fmt.Errorf("measuring the layer: %w", err)
	}
	// A tar stream is a whole number of blocks already: nothing to pad.
	layer := descriptor{
		MediaType: mediaTypeLayer,
		Digest:    "sha256:" + hex.EncodeToString(hash.Sum(nil)),
		Size:      end - tarBlock,
	}
	var block bytes.Buffer
	// GNU's format keeps sizes over 8 GiB within the one block that was left free.
	header := entryHeader(blobPath(layer.Digest), layer.Size)
	header.Format = tar.FormatGNU
	if err := tar.NewWriter(&block).WriteHeader(header); err != nil {
		return descriptor{}, fmt.Errorf("encoding the layer's header: %w", err)
	}
	if block.Len() != tarBlock {
		return descriptor{}, fmt.Errorf("the layer's header takes %d bytes instead of %d", block.Len(), tarBlock)
	}
	if _, err := file.WriteAt(block.Bytes(), 0); err != nil {
		return descriptor{}, fmt.Errorf("writing the layer's header: %w", err)
	}
	return layer, nil
}

func (s Spec) containerConfig() containerConfig {
	config := containerConfig{
		User: s.User, Env: s.Env, Entrypoint: s.Entrypoint, Cmd: s.Cmd, WorkingDir: s.WorkingDir,
	}
	if config.WorkingDir == "" {
		config.WorkingDir = "/"
	}
	for _, pair := range config.Env {
		if strings.HasPrefix(pair, "PATH=") {
			return config
		}
	}
	config.Env = append([]string{DefaultPath}, config.Env...)
	return config
}

func writeJSONBlob(out *tar.Writer, mediaType string, value any) (descriptor, error) {
	encoded, err := json.Marshal(value)
	if err != nil {
		return descriptor{}, fmt.Errorf("encoding %s: %w", mediaType, err)
	}
	sum := sha256.Sum256(encoded)
	blob := descriptor{MediaType: mediaType, Digest: "sha256:" + hex.EncodeToString(sum[:]), Size: int64(len(encoded))}
	return blob, writeEntry(out, blobPath(blob.Digest), encoded)
}

func blobPath(digest string) string {
	return "blobs/" + strings.Replace(digest, ":", "/", 1)
}

func entryHeader(name string, size int64) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: size, ModTime: fixedTime()}
}

func writeEntry(out *tar.Writer, name string, content []byte) error {
	if err := out.WriteHeader(entryHeader(name, int64(len(content)))); err != nil {
		return fmt.Errorf("writing header of %s: %w", name, err)
	}
	if _, err := out.Write(content); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}
