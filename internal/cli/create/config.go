package create

import (
	"encoding/json"
	"errors"
	"fmt"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/heliostat-io/heliostat/internal/cli/blueprint"
)

// none is the amount of what is not asked for.
const none = "0"

// config describes a RayCluster. It is the content of the configuration file, and flags are read into it.
type config struct {
	Namespace      string            `json:"namespace"`
	Name           string            `json:"name"`
	Labels         map[string]string `json:"labels"`
	Annotations    map[string]string `json:"annotations"`
	RayVersion     string            `json:"ray-version"`
	Image          string            `json:"image"`
	ServiceAccount string            `json:"service-account"`
	Head           node              `json:"head"`
	// WorkerGroups that are absent are one group with all defaults; an empty list means that there are no workers.
	WorkerGroups []group     `json:"worker-groups"`
	Autoscaler   *autoscaler `json:"autoscaler"`
	GKE          *gke        `json:"gke"`
}

// node describes what the head has, and each worker of a group.
type node struct {
	CPU              amount            `json:"cpu"`
	GPU              amount            `json:"gpu"`
	Memory           amount            `json:"memory"`
	EphemeralStorage amount            `json:"ephemeral-storage"`
	RayStartParams   map[string]string `json:"ray-start-params"`
	NodeSelectors    map[string]string `json:"node-selectors"`
}

type group struct {
	node       `json:",inline"`
	Name       string `json:"name"`
	Replicas   *int32 `json:"replicas"`
	NumOfHosts *int32 `json:"num-of-hosts"`
	TPU        amount `json:"tpu"`
	// MinReplicas and MaxReplicas come from flags only. Unset leaves the bounds to the API: 0 and 2147483647.
	MinReplicas *int32 `json:"-"`
	MaxReplicas *int32 `json:"-"`
}

type autoscaler struct {
	Version string `json:"version"`
}

// gke holds what is special to Google Kubernetes Engine.
type gke struct {
	GCSFuse *gcsFuse `json:"gcsfuse"`
}

// gcsFuse mounts a bucket of Google Cloud Storage into every Ray container.
type gcsFuse struct {
	BucketName               string         `json:"bucket-name"`
	MountPath                string         `json:"mount-path"`
	MountOptions             string         `json:"mount-options"`
	DisableMetrics           *bool          `json:"disable-metrics"`
	MetadataPrefetchOnMount  *bool          `json:"gcsfuse-metadata-prefetch-on-mount"`
	SkipCSIBucketAccessCheck *bool          `json:"skip-csi-bucket-access-check"`
	Resources                *fuseResources `json:"resources"`
}

// fuseResources are the limits of the container that GKE adds for the mount.
type fuseResources struct {
	CPU              amount `json:"cpu"`
	Memory           amount `json:"memory"`
	EphemeralStorage amount `json:"ephemeral-storage"`
}

// amount is a quantity as it was written, for messages. In a file it may be a number as well as text.
type amount string

// UnmarshalJSON takes text and numbers.
func (a *amount) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		*a = amount(text)
		return nil
	}
	var number json.Number
	if err := json.Unmarshal(data, &number); err != nil {
		return fmt.Errorf("%s is neither a quantity nor a number", data)
	}
	*a = amount(number)
	return nil
}

// parse reads a configuration file. A key that it does not know is an error, and so is one that stands there twice.
func parse(text []byte) (*config, error) {
	document, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, err
	}
	c := &config{}
	unknown, err := kjson.UnmarshalStrict(document, c)
	if err != nil {
		return nil, err
	}
	if len(unknown) > 0 {
		return nil, errors.Join(unknown...)
	}
	c.setDefaults()
	return c, nil
}

// setDefaults completes what is not given.
func (c *config) setDefaults() {
	setDefault(&c.RayVersion, blueprint.RayVersion)
	setDefault(&c.Image, blueprint.Image(c.RayVersion))
	c.Head.setDefaults()
	if c.WorkerGroups == nil {
		c.WorkerGroups = []group{{}}
	}
	for i := range c.WorkerGroups {
		c.WorkerGroups[i].setDefaults()
	}
	// The other groups must be told apart by names that somebody chose.
	if len(c.WorkerGroups) == 1 {
		setDefault(&c.WorkerGroups[0].Name, blueprint.Group)
	}
}

func (n *node) setDefaults() {
	setDefault(&n.CPU, blueprint.CPU)
	setDefault(&n.Memory, blueprint.Memory)
	setDefault(&n.GPU, blueprint.GPU)
}

func (g *group) setDefaults() {
	g.node.setDefaults()
	setDefault(&g.TPU, none)
	if g.Replicas == nil {
		g.Replicas = new(int32(1))
	}
	if g.NumOfHosts == nil {
		g.NumOfHosts = new(int32(1))
	}
}

func setDefault[T ~string](value *T, standard T) {
	if *value == "" {
		*value = standard
	}
}
