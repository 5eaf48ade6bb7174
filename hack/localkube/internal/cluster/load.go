package cluster

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/heliostat-io/heliostat/hack/localkube/internal/netplan"
)

// Load imports image archives into all nodes of the cluster. Images that a node
// has already are left as they are.
func (m Manager) Load(ctx context.Context, archives []string) error {
	if err := requireRoot(); err != nil {
		return err
	}
	cluster, err := m.running()
	if err != nil {
		return err
	}
	for _, archive := range archives {
		if err := m.loadOne(ctx, archive, cluster.Nodes); err != nil {
			return err
		}
	}
	return nil
}

// loadOne imports one archive into all nodes at the same time.
func (m Manager) loadOne(ctx context.Context, archive string, nodes int) error {
	contents, err := readIndex(archive)
	if err != nil {
		return err
	}
	start := time.Now()
	problems := make([]error, nodes)
	imported := make([]bool, nodes)
	var loading sync.WaitGroup
	for n := 1; n <= nodes; n++ {
		loading.Go(func() {
			done, err := m.importInto(ctx, n, archive, contents)
			if err != nil {
				problems[n-1] = fmt.Errorf("importing %s into %s: %w", archive, netplan.NodeName(n), err)
			}
			imported[n-1] = done
		})
	}
	loading.Wait()
	if err := errors.Join(problems...); err != nil {
		return err
	}
	count := 0
	for _, done := range imported {
		if done {
			count++
		}
	}
	what := contents.title(archive)
	if count == 0 {
		m.Log.Printf("all nodes have %s already", what)
		return nil
	}
	m.Log.Printf("loaded %s into %d of %d nodes in %.1fs", what, count, nodes, time.Since(start).Seconds())
	return nil
}

// importInto imports an archive into one node unless the node has all of its
// images, and reports whether it had to.
func (m Manager) importInto(ctx context.Context, n int, archive string, contents index) (bool, error) {
	node := m.runtime(n)
	present, err := node.images(ctx)
	if err != nil {
		return false, err
	}
	if contents.containedIn(present) {
		return false, nil
	}
	return true, node.importArchive(ctx, archive)
}

// index is what is read of an OCI archive's index.json.
type index struct {
	Manifests []struct {
		Digest      string
		Annotations map[string]string
	}
}

// nameAnnotation holds the full name under which containerd imports an image.
const nameAnnotation = "io.containerd.image.name"

func (i index) names() []string {
	var names []string
	for _, manifest := range i.Manifests {
		if name := manifest.Annotations[nameAnnotation]; name != "" {
			names = append(names, name)
		}
	}
	return names
}

// title is what people are told about: an image may have many names.
func (i index) title(archive string) string {
	names := i.names()
	switch len(names) {
	case 0:
		return filepath.Base(archive)
	case 1:
		return names[0]
	default:
		return fmt.Sprintf("%s (and %d more names)", names[0], len(names)-1)
	}
}

// containedIn reports whether all images of the archive are among those of a
// node, by name and digest. If an image has no full name nobody can tell.
func (i index) containedIn(present map[string]string) bool {
	for _, manifest := range i.Manifests {
		name := manifest.Annotations[nameAnnotation]
		if name == "" || present[name] != manifest.Digest {
			return false
		}
	}
	return len(i.Manifests) > 0
}

// readIndex reads index.json of an OCI archive. It may stand at the end, behind
// gigabytes of layers, which are skipped without being read.
func readIndex(archive string) (index, error) {
	file, err := os.Open(archive)
	if err != nil {
		return index{}, fmt.Errorf("opening image archive: %w", err)
	}
	defer file.Close()
	entries := tar.NewReader(file)
	for {
		entry, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return index{}, fmt.Errorf("%s is not an OCI image archive: it has no index.json", archive)
		}
		if err != nil {
			return index{}, fmt.Errorf("reading image archive %s: %w", archive, err)
		}
		if filepath.Clean(entry.Name) != "index.json" {
			continue
		}
		var contents index
		if err := json.NewDecoder(entries).Decode(&contents); err != nil {
			return index{}, fmt.Errorf("reading index.json of image archive %s: %w", archive, err)
		}
		return contents, nil
	}
}
