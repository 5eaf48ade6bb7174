package chart

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

const (
	chartPath        = "../../charts/heliostat"
	releaseName      = "ray"
	releaseNamespace = "ray-system"
)

// rendered is what one set of values gives.
type rendered struct {
	objects []unstructured.Unstructured
	notes   string
}

// render renders the chart with values written as YAML, after the checks that helm install makes.
func render(t *testing.T, values string) rendered {
	t.Helper()
	r, err := tryRender(t, values)
	if err != nil {
		t.Fatalf("rendering with values\n%s\n%v", values, err)
	}
	return r
}

func tryRender(t *testing.T, values string) (rendered, error) {
	t.Helper()
	return renderFor(t, values, "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy", "heliostat.io/v1alpha1/Holder")
}

// renderFor renders for an API server that serves these kinds, besides those that every one has.
func renderFor(t *testing.T, values string, served ...string) (rendered, error) {
	t.Helper()
	chart, err := loader.Load(chartPath)
	if err != nil {
		t.Fatalf("loading the chart: %v", err)
	}
	given := map[string]any{}
	if err := yaml.Unmarshal([]byte(values), &given); err != nil {
		t.Fatalf("parsing the values: %v", err)
	}
	capabilities := *common.DefaultCapabilities
	capabilities.APIVersions = append(common.VersionSet{"v1", "apps/v1"}, served...)
	all, err := util.ToRenderValues(chart, given, common.ReleaseOptions{
		Name: releaseName, Namespace: releaseNamespace, Revision: 1, IsInstall: true,
	}, &capabilities)
	if err != nil {
		return rendered{}, err
	}
	files, err := engine.Engine{Strict: true}.RenderWithContext(t.Context(), chart, all)
	if err != nil {
		return rendered{}, err
	}

	var r rendered
	for _, name := range slices.Sorted(maps.Keys(files)) {
		switch base := path.Base(name); {
		case base == "NOTES.txt":
			r.notes = files[name]
		case !strings.HasPrefix(base, "_"):
			r.objects = append(r.objects, objectsIn(t, name, files[name])...)
		}
	}
	return r, nil
}

// objectsIn reads the documents of one rendered template; keys that stand there twice are an error.
func objectsIn(t *testing.T, name, text string) []unstructured.Unstructured {
	t.Helper()
	var objects []unstructured.Unstructured
	documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatalf("%s: splitting the documents: %v", name, err)
		}
		var content map[string]any
		if err := yaml.UnmarshalStrict(document, &content); err != nil {
			t.Fatalf("%s: parsing\n%s\n%v", name, document, err)
		}
		if len(content) > 0 {
			objects = append(objects, unstructured.Unstructured{Object: content})
		}
	}
}

// names returns kind, namespace (if any) and name of every object, sorted.
func (r rendered) names() []string {
	var names []string
	for _, o := range r.objects {
		names = append(names, path.Join(o.GetKind(), o.GetNamespace(), o.GetName()))
	}
	slices.Sort(names)
	return names
}

// into decodes the object with the given path (see names) strictly, so that a misspelt field fails the test.
func (r rendered) into(t *testing.T, name string, object any) {
	t.Helper()
	for _, o := range r.objects {
		if path.Join(o.GetKind(), o.GetNamespace(), o.GetName()) != name {
			continue
		}
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := yaml.UnmarshalStrict(bytes.Clone(text), object); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, text)
		}
		return
	}
	t.Fatalf("%s is not among the objects:\n%s", name, strings.Join(r.names(), "\n"))
}

func (r rendered) has(name string) bool { return slices.Contains(r.names(), name) }

// deployment returns the operator's Deployment, whatever fullnameOverride says.
func (r rendered) deployment(t *testing.T) appsv1.Deployment {
	t.Helper()
	var d appsv1.Deployment
	for _, name := range r.names() {
		if strings.HasPrefix(name, "Deployment/") {
			r.into(t, name, &d)
			return d
		}
	}
	t.Fatal("there is no Deployment")
	return d
}

// container returns the operator's container.
func (r rendered) container(t *testing.T) corev1.Container {
	t.Helper()
	containers := r.deployment(t).Spec.Template.Spec.Containers
	if len(containers) != 1 {
		t.Fatalf("%d containers, want 1", len(containers))
	}
	return containers[0]
}

// rights turns rules into lines "group/resource[name]: verbs", sorted. The core group has an empty name.
func rights(rules []rbacv1.PolicyRule) []string {
	var lines []string
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				if len(rule.ResourceNames) > 0 {
					resource += "[" + strings.Join(rule.ResourceNames, " ") + "]"
				}
				verbs := slices.Sorted(slices.Values(rule.Verbs))
				lines = append(lines, group+"/"+resource+": "+strings.Join(verbs, " "))
			}
		}
	}
	slices.Sort(lines)
	return lines
}
