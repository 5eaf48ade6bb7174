// Package state knows where localkube keeps things, and what it remembers of a
// cluster between two calls.
package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

// EnvCache is the environment variable that names the cache folder.
const EnvCache = "HELIOSTAT_CACHE"

// runRoot holds what belongs to running clusters: sockets, namespaces, process
// records. It is the same for every cache folder, and it is gone after a reboot
// as the processes are.
const runRoot = "/run/localkube"

// maxDir is how long the path of a cluster's folder may be. The kubelet makes
// Unix sockets in it, whose paths the kernel limits to 107 bytes; the longest
// is "/n99/kubelet/device-plugins/kubelet.sock".
const maxDir = 107 - 41

// CacheDir returns the folder for everything worth keeping between two runs:
// $HELIOSTAT_CACHE, or else "heliostat" in $XDG_CACHE_HOME or ~/.cache.
func CacheDir() (string, error) {
	if dir := os.Getenv(EnvCache); dir != "" {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return "", fmt.Errorf("making %s=%s absolute: %w", EnvCache, dir, err)
		}
		return abs, nil
	}
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding a cache folder (set %s to choose one): %w", EnvCache, err)
	}
	return filepath.Join(base, "heliostat"), nil
}

// BinDir is where built programs are kept, one folder a version of the sources.
func BinDir(cache string) string { return filepath.Join(cache, "bin") }

// ImagesDir is where image archives are kept.
func ImagesDir(cache string) string { return filepath.Join(cache, "images") }

// LockFile is held while a cluster is brought up or down. There is one for all
// clusters of the machine since they share address ranges and sysctls.
func LockFile() string { return filepath.Join(runRoot, "lock") }

// SysctlFile remembers the kernel settings from before the first cluster.
func SysctlFile() string { return filepath.Join(runRoot, "sysctls.json") }

// Dirs are the two folders of one cluster.
type Dirs struct {
	// Name is the cluster's.
	Name string
	// Big is on disk: data, logs, image stores, volumes.
	Big string
	// Run is under /run: sockets, namespaces, process records.
	Run string
}

// ForCluster returns the folders of the cluster called name.
func ForCluster(cache, name string) (Dirs, error) {
	if !regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,18}[a-z0-9])?$`).MatchString(name) {
		return Dirs{}, fmt.Errorf("cluster name %q: use 1 to 20 lower-case letters, digits and inner dashes", name)
	}
	dirs := Dirs{Name: name, Big: filepath.Join(cache, "clusters", name), Run: filepath.Join(runRoot, "clusters", name)}
	if len(dirs.Big) > maxDir {
		return Dirs{}, fmt.Errorf("the folder %s has a path of %d bytes, and sockets in it can do with %d at most: set %s to a shorter path",
			dirs.Big, len(dirs.Big), maxDir, EnvCache)
	}
	return dirs, nil
}

// Records holds one file a process, see package proc.
func (d Dirs) Records() string { return filepath.Join(d.Run, "processes") }

// Logs holds one file a process. It outlives the cluster until the next start.
func (d Dirs) Logs() string { return filepath.Join(d.Big, "log") }

// PKI holds keys, certificates and kubeconfigs.
func (d Dirs) PKI() string { return filepath.Join(d.Big, "pki") }

// Kubeconfig is the administrator's.
func (d Dirs) Kubeconfig() string { return filepath.Join(d.PKI(), "admin.conf") }

// Etcd is etcd's data folder.
func (d Dirs) Etcd() string { return filepath.Join(d.Big, "etcd") }

// Volumes holds the folders behind the PersistentVolumes.
func (d Dirs) Volumes() string { return filepath.Join(d.Big, "volumes") }

// NetNS holds the network namespaces.
func (d Dirs) NetNS() string { return filepath.Join(d.Run, "netns") }

// Node returns the two folders of node number n, counted from 1.
func (d Dirs) Node(n int) (big, run string) {
	short := fmt.Sprintf("n%d", n)
	return filepath.Join(d.Big, short), filepath.Join(d.Run, short)
}

// ImageStore is the containerd root of node n. It is kept when a cluster goes
// down, so that the next one need not import its images again.
func (d Dirs) ImageStore(n int) string {
	big, _ := d.Node(n)
	return filepath.Join(big, "containerd")
}

// MaxNodes is the most nodes that a cluster may have.
const MaxNodes = 20

// Cluster is what is remembered of a cluster. It is written before anything
// else is touched, so that cleaning up never has to guess.
type Cluster struct {
	// Dir is Dirs.Big of the cluster; two cache folders may not use one name
	// at the same time.
	Dir string `json:"dir"`
	// Index picks the address ranges and interface names, see package netplan.
	Index int `json:"index"`
	// Nodes is the number of nodes.
	Nodes int `json:"nodes"`
	// Kube is the kube program that it was started with.
	Kube string `json:"kube"`
	// FastNodeLoss is whether a lost node is noticed within seconds.
	FastNodeLoss bool `json:"fastNodeLoss"`
	// Up is set once everything was seen to be ready.
	Up bool `json:"up"`
}

func (d Dirs) clusterFile() string { return filepath.Join(d.Run, "cluster.json") }

// Load returns what is remembered of the cluster, or nil when it is not there.
func (d Dirs) Load() (*Cluster, error) {
	raw, err := os.ReadFile(d.clusterFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading what is known of cluster %s: %w", d.Name, err)
	}
	var cluster Cluster
	if err := json.Unmarshal(raw, &cluster); err != nil {
		return nil, fmt.Errorf("reading what is known of cluster %s in %s: %w", d.Name, d.clusterFile(), err)
	}
	return &cluster, nil
}

// Save remembers the cluster.
func (d Dirs) Save(cluster Cluster) error {
	if err := os.MkdirAll(d.Run, 0o755); err != nil {
		return fmt.Errorf("making the folder for cluster %s: %w", d.Name, err)
	}
	if err := WriteJSON(d.clusterFile(), cluster); err != nil {
		return fmt.Errorf("remembering cluster %s: %w", d.Name, err)
	}
	return nil
}

// Others returns the remembered clusters of this machine except d's own, by
// name. One whose record cannot be read is left out.
func (d Dirs) Others() (map[string]Cluster, error) {
	files, err := filepath.Glob(filepath.Join(runRoot, "clusters", "*", "cluster.json"))
	if err != nil {
		return nil, fmt.Errorf("looking for other clusters: %w", err)
	}
	others := map[string]Cluster{}
	for _, file := range files {
		run := filepath.Dir(file)
		if run == d.Run {
			continue
		}
		other := Dirs{Name: filepath.Base(run), Run: run}
		if cluster, err := other.Load(); err == nil && cluster != nil {
			others[other.Name] = *cluster
		}
	}
	return others, nil
}

// WriteJSON writes value to file so that a reader sees all of it or none.
func WriteJSON(file string, value any) error {
	raw, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding %s: %w", file, err)
	}
	part, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*")
	if err != nil {
		return fmt.Errorf("creating %s: %w", file, err)
	}
	defer os.Remove(part.Name())
	if _, err := part.Write(append(raw, '\n')); err != nil {
		part.Close()
		return fmt.Errorf("writing %s: %w", file, err)
	}
	if err := part.Close(); err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	if err := os.Rename(part.Name(), file); err != nil {
		return fmt.Errorf("putting %s in place: %w", file, err)
	}
	return nil
}
