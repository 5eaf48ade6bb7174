package create

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/blueprint"
)

const (
	// maxClusterName leaves room for what the operator appends to make names of Services (spec/raycluster.md, section 17).
	maxClusterName = 53
	// maxHosts is what the API takes.
	maxHosts = 4096

	selectorTPUAccelerator = "cloud.google.com/gke-tpu-accelerator"
	selectorTPUTopology    = "cloud.google.com/gke-tpu-topology"
)

// problem is a value that breaks a rule.
type problem struct {
	// key is the place in the configuration file, for example worker-groups[0].cpu.
	key   string
	value string
	// rule says what the value must be.
	rule string
}

func (p *problem) Error() string { return fmt.Sprintf("%s %q: %s", p.key, p.value, p.rule) }

// checks collects the first problem.
type checks struct{ first *problem }

func (c *checks) require(ok bool, key, value, rule string) {
	if !ok && c.first == nil {
		c.first = &problem{key: key, value: value, rule: rule}
	}
}

// result is the first problem, or nil.
func (c *checks) result() *problem { return c.first }

// validate returns the first value that breaks a rule, or nil.
func (c *config) validate() *problem {
	v := &checks{}
	v.clusterName("name", c.Name)
	v.labels("labels", c.Labels)
	v.annotations("annotations", c.Annotations)
	v.require(versionForm().MatchString(c.RayVersion), "ray-version", c.RayVersion, "it must be a version of Ray, such as "+blueprint.RayVersion)
	v.image(c.Image)
	if c.ServiceAccount != "" {
		v.text("service-account", c.ServiceAccount, validation.IsDNS1123Subdomain(c.ServiceAccount))
	}
	v.node("head.", c.Head)
	seen := map[string]bool{}
	for i := range c.WorkerGroups {
		prefix := fmt.Sprintf("worker-groups[%d].", i)
		v.group(prefix, &c.WorkerGroups[i])
		name := c.WorkerGroups[i].Name
		v.require(!seen[name], prefix+"name", name, "it must be different from the names of the other groups")
		seen[name] = true
	}
	if c.Autoscaler != nil {
		version := c.Autoscaler.Version
		v.require(version == "v1" || version == "v2", "autoscaler.version", version, "it must be v1 or v2")
	}
	if c.GKE != nil && c.GKE.GCSFuse != nil {
		v.gcsFuse("gke.gcsfuse.", c.GKE.GCSFuse)
	}
	return v.result()
}

// versionForm is that of the tag of an image, because the image follows the version.
func versionForm() *regexp.Regexp { return regexp.MustCompile(`^[0-9A-Za-z_][0-9A-Za-z_.-]{0,127}$`) }

func (c *checks) clusterName(key, name string) {
	c.require(name != "", key, name, "it must be given")
	c.require(len(name) <= maxClusterName, key, name,
		fmt.Sprintf("it must have at most %d characters, because names of Services are made from it", maxClusterName))
	c.text(key, name, validation.IsDNS1035Label(name))
}

func (c *checks) image(image string) {
	c.require(image != "" && !strings.ContainsAny(image, " \t\n"), "image", image, "it must be the name of an image")
}

// text takes the findings of the API machinery's own rules.
func (c *checks) text(key, value string, findings []string) {
	c.require(len(findings) == 0, key, value, strings.Join(findings, "; "))
}

func (c *checks) labels(key string, labels map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		c.text(key, name, validation.IsQualifiedName(name))
		c.text(key, name+"="+labels[name], validation.IsValidLabelValue(labels[name]))
	}
}

func (c *checks) annotations(key string, annotations map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(annotations)) {
		c.text(key, name, validation.IsQualifiedName(strings.ToLower(name)))
	}
}

func (c *checks) node(prefix string, n node) {
	c.quantity(prefix+"cpu", n.CPU, false)
	c.quantity(prefix+"memory", n.Memory, false)
	c.quantity(prefix+"gpu", n.GPU, true)
	c.quantity(prefix+"ephemeral-storage", n.EphemeralStorage, false)
	for _, name := range slices.Sorted(maps.Keys(n.RayStartParams)) {
		c.require(name != "" && !strings.HasPrefix(name, "-"), prefix+"ray-start-params", name,
			"it must be a flag of ray start without its leading dashes, such as num-cpus")
	}
	c.labels(prefix+"node-selectors", n.NodeSelectors)
}

// quantity judges an amount that is given.
func (c *checks) quantity(key string, a amount, whole bool) {
	if a == "" {
		return
	}
	quantity, err := resource.ParseQuantity(string(a))
	c.require(err == nil, key, string(a), "it must be a quantity, such as 2, 500m or 4Gi")
	if err != nil {
		return
	}
	c.require(quantity.Sign() >= 0, key, string(a), "it must not be negative")
	if whole {
		_, exact := quantity.AsInt64()
		c.require(exact, key, string(a), "it must be a whole number")
	}
}

func (c *checks) group(prefix string, g *group) {
	c.require(groupForm().MatchString(g.Name), prefix+"name", g.Name,
		"it must be the name of a group: letters, digits, '-', '_' and '.', with a letter or digit at both ends, at most 63")
	c.require(g.Name != rayv1.HeadGroupName, prefix+"name", g.Name, "it is the name of the head's own group")
	c.node(prefix, g.node)
	c.quantity(prefix+"tpu", g.TPU, true)
	c.replicas(prefix, g)
	hosts := *g.NumOfHosts
	if g.hasTPU() {
		const rule = "a group with TPUs must have the node selector "
		c.require(g.NodeSelectors[selectorTPUAccelerator] != "", prefix+"tpu", string(g.TPU), rule+selectorTPUAccelerator)
		c.require(g.NodeSelectors[selectorTPUTopology] != "", prefix+"tpu", string(g.TPU), rule+selectorTPUTopology)
	}
	c.require(hosts >= 1 && hosts <= maxHosts, prefix+"num-of-hosts", fmt.Sprint(hosts), fmt.Sprintf("it must be from 1 to %d", maxHosts))
}

func (c *checks) replicas(prefix string, g *group) {
	replicas := *g.Replicas
	c.require(replicas >= 0, prefix+"replicas", fmt.Sprint(replicas), "it must not be negative")
	if g.MinReplicas == nil || g.MaxReplicas == nil {
		return
	}
	least, most := *g.MinReplicas, *g.MaxReplicas
	c.require(least >= 0, prefix+"min-replicas", fmt.Sprint(least), "it must not be negative")
	c.require(most >= 0, prefix+"max-replicas", fmt.Sprint(most), "it must not be negative")
	c.require(least <= most, prefix+"min-replicas", fmt.Sprint(least), fmt.Sprintf("it must not be greater than the maximum, which is %d", most))
	c.require(replicas >= least, prefix+"replicas", fmt.Sprint(replicas), fmt.Sprintf("it must not be less than the minimum, which is %d", least))
	c.require(replicas <= most, prefix+"replicas", fmt.Sprint(replicas), fmt.Sprintf("it must not be greater than the maximum, which is %d", most))
}

func groupForm() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)
}

func (g *group) hasTPU() bool {
	quantity, err := resource.ParseQuantity(string(g.TPU))
	return err == nil && quantity.Sign() > 0
}

func (c *checks) gcsFuse(prefix string, f *gcsFuse) {
	c.require(f.BucketName != "", prefix+"bucket-name", f.BucketName, "it must be given")
	c.require(f.MountPath != "", prefix+"mount-path", f.MountPath, "it must be given")
	c.require(path.IsAbs(f.MountPath), prefix+"mount-path", f.MountPath, "it must start with a slash")
	if f.Resources != nil {
		c.quantity(prefix+"resources.cpu", f.Resources.CPU, false)
		c.quantity(prefix+"resources.memory", f.Resources.Memory, false)
		c.quantity(prefix+"resources.ephemeral-storage", f.Resources.EphemeralStorage, false)
	}
}
