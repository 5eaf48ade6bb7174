package conformance

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// difference is one attribute of one path that the reference and our CRD do not agree about.
// An empty text means that one side does not have the attribute; the attribute "path" stands for the path as a whole.
type difference struct {
	kind, version, path, attribute string
	reference, ours                string
	// inside is the embedded Kubernetes type to which the path belongs, if any.
	inside string
}

func (d difference) String() string {
	return fmt.Sprintf("%s %s %s: %s is %q in the reference, %q here", d.kind, d.version, d.path, d.attribute, d.reference, d.ours)
}

// Given the public structure of the four kinds, when our CRDs are compared with it path by path, then they differ only
// where the table of deliberate differences says so, and every entry of the table is still needed.
func TestCRDsHaveTheStructureThatUsersOfTheAPIKnow(t *testing.T) {
	reference, crds := readReference(t), readCRDs(t)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(reference)), slices.Sorted(maps.Keys(crds))); diff != "" {
		t.Errorf("kinds differ (-reference +ours):\n%s", diff)
	}
	checked := 0
	var differences []difference
	for kind, facts := range reference {
		crd := crds[kind]
		compareKind(t, facts, crd)
		for version, versionFacts := range facts.Versions {
			ours := findVersion(crd, version)
			if ours == nil {
				t.Errorf("%s %s is not in our CRD", kind, version)
				continue
			}
			compareVersion(t, kind, versionFacts, ours)
			paths, found := compareSchemas(t, kind, versionFacts, ours)
			checked += paths
			differences = append(differences, found...)
		}
	}
	deliberate := judge(t, differences)
	t.Logf("parity: %d paths checked, %d deliberate differences", checked, deliberate)
}

func compareKind(t *testing.T, want kindFacts, crd apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	got := kindFacts{
		CRDName:    crd.Name,
		Scope:      string(crd.Spec.Scope),
		Names:      crd.Spec.Names,
		ShortNames: crd.Spec.Names.ShortNames,
		Versions:   want.Versions,
	}
	if diff := cmp.Diff(normalised(want), normalised(got)); diff != "" {
		t.Errorf("%s differs (-reference +ours):\n%s", want.CRDName, diff)
	}
	if crd.Spec.Conversion != nil {
		t.Errorf("%s has a conversion; the reference has none", crd.Name)
	}
	if len(crd.Spec.Versions) != len(want.Versions) {
		t.Errorf("%s has %d versions, the reference %d", crd.Name, len(crd.Spec.Versions), len(want.Versions))
	}
}

// normalised makes an absent and an empty list of short names equal, and leaves the versions to compareVersion.
func normalised(facts kindFacts) kindFacts {
	facts.ShortNames = append([]string{}, facts.ShortNames...)
	facts.Versions = nil
	return facts
}

func findVersion(crd apiextensionsv1.CustomResourceDefinition, name string) *apiextensionsv1.CustomResourceDefinitionVersion {
	for i := range crd.Spec.Versions {
		if crd.Spec.Versions[i].Name == name {
			return &crd.Spec.Versions[i]
		}
	}
	return nil
}

func compareVersion(t *testing.T, kind string, want versionFacts, ours *apiextensionsv1.CustomResourceDefinitionVersion) {
	t.Helper()
	got := []string{
		fmt.Sprint("served ", ours.Served),
		fmt.Sprint("storage ", ours.Storage),
		fmt.Sprint("deprecated ", ours.Deprecated),
		fmt.Sprint("deprecation warning ", ours.DeprecationWarning != nil),
		fmt.Sprint("selectable fields ", len(ours.SelectableFields)),
		"subresources " + canonical(mustMarshal(t, ours.Subresources)),
		"printer columns " + canonical(mustMarshal(t, append([]apiextensionsv1.CustomResourceColumnDefinition{}, ours.AdditionalPrinterColumns...))),
	}
	wanted := []string{
		fmt.Sprint("served ", want.Served),
		fmt.Sprint("storage ", want.Storage),
		fmt.Sprint("deprecated ", want.Deprecated),
		fmt.Sprint("deprecation warning ", want.HasDeprecationWarning),
		"selectable fields 0",
		"subresources " + canonical(want.Subresources),
		"printer columns " + canonical(want.AdditionalPrinterColumns),
	}
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Errorf("%s %s differs (-reference +ours):\n%s", kind, ours.Name, diff)
	}
}

func compareSchemas(t *testing.T, kind string, facts versionFacts, ours *apiextensionsv1.CustomResourceDefinitionVersion) (int, []difference) {
	t.Helper()
	want, unexpanded := referenceRecords(facts.Fields)
	got, err := schemaRecords(ours.Schema.OpenAPIV3Schema, unexpanded)
	if err != nil {
		t.Fatalf("%s %s: %v", kind, ours.Name, err)
	}
	paths := maps.Clone(want)
	maps.Copy(paths, got)
	var found []difference
	for path := range paths {
		inside := insideOf(want, path)
		wantRecord, inReference := want[path]
		gotRecord, inOurs := got[path]
		if inReference != inOurs {
			found = append(found, difference{
				kind: kind, version: ours.Name, path: path, attribute: "path", inside: inside,
				reference: presence(inReference), ours: presence(inOurs),
			})
			continue
		}
		names := maps.Clone(wantRecord.attributes)
		maps.Copy(names, gotRecord.attributes)
		for name := range names {
			if wantRecord.attributes[name] == gotRecord.attributes[name] {
				continue
			}
			found = append(found, difference{
				kind: kind, version: ours.Name, path: path, attribute: name, inside: inside,
				reference: wantRecord.attributes[name], ours: gotRecord.attributes[name],
			})
		}
	}
	return len(paths), found
}

func presence(present bool) string {
	if present {
		return "present"
	}
	return ""
}

// insideOf returns the embedded Kubernetes type of the path, or of the nearest path above it that the reference knows.
func insideOf(reference map[string]record, path string) string {
	for path != "" {
		if r, found := reference[path]; found {
			return r.inside
		}
		path = path[:max(strings.LastIndexByte(path, '.'), 0)]
	}
	return ""
}

// judge reports every difference that no entry of the table covers and every entry that covers none.
// It returns the number of differences that are covered.
func judge(t *testing.T, differences []difference) int {
	t.Helper()
	slices.SortFunc(differences, func(a, b difference) int { return strings.Compare(a.String(), b.String()) })
	entries := deliberateDifferences()
	used := make([]int, len(entries))
	covered := 0
	for _, d := range differences {
		i := slices.IndexFunc(entries, func(e deliberateDifference) bool { return e.covers(d) })
		if i < 0 {
			t.Errorf("not in the table of deliberate differences: %s", d)
			continue
		}
		used[i]++
		covered++
	}
	for i, entry := range entries {
		if used[i] == 0 {
			t.Errorf("the table of deliberate differences has an entry that no longer differs: %s%s, %s", entry.path, entry.inside, entry.attribute)
			continue
		}
		t.Logf("deliberate (%d paths): %s%s, %s: %s", used[i], entry.path, entry.inside, entry.attribute, entry.reason)
	}
	return covered
}
