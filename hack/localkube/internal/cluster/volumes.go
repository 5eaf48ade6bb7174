package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/heliostat-io/heliostat/hack/localkube/internal/addons"
	"github.com/heliostat-io/heliostat/hack/localkube/internal/state"
)

// volume is what is looked at of a PersistentVolume.
type volume struct {
	Metadata struct{ Name string }
	Spec     struct {
		StorageClassName string
		HostPath         *struct{ Path string }
	}
	Status struct{ Phase string }
}

// renewVolumes empties the volumes whose claims were deleted and makes them
// available again. Kubernetes itself never does so with the policy Retain; its
// policy Recycle is deprecated, and mixes up volumes that are released at the
// same time.
//
// A volume is released only when its claim is gone, and a claim goes only when
// no Pod uses it: nobody writes to the folder any more.
func (m Manager) renewVolumes(ctx context.Context, cluster state.Cluster) error {
	output, err := m.kubectl(ctx, cluster.Kube, "get", "persistentvolumes", "--output=json").Output()
	if err != nil {
		return fmt.Errorf("listing the volumes: %w", err)
	}
	var list struct{ Items []volume }
	if err := json.Unmarshal(output, &list); err != nil {
		return fmt.Errorf("reading the list of volumes: %w", err)
	}
	used := usedUp(list.Items, m.Dirs.Volumes())
	if len(used) == 0 {
		return nil
	}
	for _, one := range used {
		remove := m.kubectl(ctx, cluster.Kube, "delete", "persistentvolume", one.Metadata.Name, "--timeout=30s")
		if output, err := remove.CombinedOutput(); err != nil {
			return fmt.Errorf("removing the used volume %s: %w\n%s", one.Metadata.Name, err, output)
		}
		if err := os.RemoveAll(one.Spec.HostPath.Path); err != nil {
			return fmt.Errorf("emptying the volume %s: %w", one.Metadata.Name, err)
		}
	}
	if err := m.addVolumes(ctx, cluster.Kube); err != nil {
		return err
	}
	m.Log.Printf("emptied %d used volumes", len(used))
	return nil
}

// usedUp returns the volumes of ours that were released.
func usedUp(all []volume, root string) []volume {
	var used []volume
	for _, one := range all {
		ours := one.Spec.StorageClassName == addons.StorageClass &&
			one.Spec.HostPath != nil && filepath.Dir(one.Spec.HostPath.Path) == root
		if ours && one.Status.Phase == "Released" {
			used = append(used, one)
		}
	}
	return used
}

// addVolumes makes the folders of all volumes and adds the volumes, and their
// StorageClass, to the cluster.
func (m Manager) addVolumes(ctx context.Context, kube string) error {
	for n := 1; n <= addons.Volumes; n++ {
		if err := openVolume(addons.VolumeDir(m.Dirs.Volumes(), n)); err != nil {
			return err
		}
	}
	manifest, err := addons.Storage(m.Dirs.Volumes())
	if err != nil {
		return err
	}
	return m.apply(ctx, kube, "the volumes", manifest)
}

// openVolume makes a folder that every user may write to, as most containers do
// not run as root.
func openVolume(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("making a volume: %w", err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		return fmt.Errorf("opening a volume for all users: %w", err)
	}
	return nil
}

// apply adds the objects of a manifest to the cluster.
func (m Manager) apply(ctx context.Context, kube, what, manifest string) error {
	// The API server checks the objects itself; what kubectl would check them
	// with before, it computes only when it is asked, which takes a while.
	apply := m.kubectl(ctx, kube, "apply", "--server-side", "--validate=false", "--field-manager=localkube", "--filename=-")
	apply.Stdin = strings.NewReader(manifest)
	if output, err := apply.CombinedOutput(); err != nil {
		return fmt.Errorf("adding %s to the cluster: %w\n%s", what, err, output)
	}
	return nil
}
