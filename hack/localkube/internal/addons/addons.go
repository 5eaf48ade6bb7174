// Package addons renders the objects that a fresh cluster gets: DNS, and storage
// for PersistentVolumeClaims.
package addons

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"

	"github.com/heliostat-io/heliostat/hack/localkube/internal/component"
)

// StorageClass is the name of the default StorageClass.
const StorageClass = "localkube"

// Volumes is how many PersistentVolumes a cluster has.
const Volumes = 30

// capacity is what each volume claims to hold. Nobody enforces it; it is large
// so that any claim fits.
const capacity = "100Gi"

//go:embed dns.yaml
var dnsTemplate string

// DNS returns the manifest of the cluster's DNS server.
func DNS(ip netip.Addr) string {
	return strings.NewReplacer("DNS_IP", ip.String(), "IMAGE", component.CoreDNSImage).Replace(dnsTemplate)
}

type object = map[string]any

// VolumeDir is the folder behind volume number n, counted from 1.
func VolumeDir(root string, n int) string {
	return filepath.Join(root, volumeName(n))
}

func volumeName(n int) string { return fmt.Sprintf("localkube-%02d", n) }

// Storage returns the manifest, in JSON, of the default StorageClass and its
// volumes. The volumes are folders of this machine, which all nodes are: so one
// volume may be mounted on several nodes at once, as ReadWriteMany asks.
func Storage(root string) (string, error) {
	items := []object{{
		"apiVersion": "storage.k8s.io/v1",
		"kind":       "StorageClass",
		"metadata": object{
			"name":        StorageClass,
			"annotations": object{"storageclass.kubernetes.io/is-default-class": "true"},
		},
		// Volumes are made beforehand, not on demand.
		"provisioner":       "kubernetes.io/no-provisioner",
		"reclaimPolicy":     "Retain",
		"volumeBindingMode": "Immediate",
	}}
	for n := 1; n <= Volumes; n++ {
		items = append(items, object{
			"apiVersion": "v1",
			"kind":       "PersistentVolume",
			"metadata":   object{"name": volumeName(n)},
			"spec": object{
				"storageClassName":              StorageClass,
				"capacity":                      object{"storage": capacity},
				"accessModes":                   []string{"ReadWriteOnce", "ReadWriteMany", "ReadOnlyMany"},
				"persistentVolumeReclaimPolicy": "Retain",
				"hostPath":                      object{"path": VolumeDir(root, n), "type": "Directory"},
			},
		})
	}
	encoded, err := json.MarshalIndent(object{"apiVersion": "v1", "kind": "List", "items": items}, "", "  ")
	if err != nil {
		return "", fmt.Errorf("encoding the cluster's volumes: %w", err)
	}
	return string(encoded), nil
}
