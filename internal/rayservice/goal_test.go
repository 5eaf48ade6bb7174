package rayservice

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// notInGoal are the fields that change nothing, by their path in the spec of a RayCluster (spec/rayservice.md section 5).
var notInGoal = regexp.MustCompile(`^/(suspend` +
	`|upgradeStrategy(/.*)?` +
	`|workerGroupSpecs/\d+/((min|max)Replicas|replicas|scaleStrategy/workersToDelete(/.*)?)` +
	`|(headGroupSpec|workerGroupSpecs/\d+)/template/spec/(tolerations|schedulingGates)(/.*)?)$`)

func TestGoalTellsEveryFieldButThoseThatOthersChange(t *testing.T) {
	full := &rayv1.RayClusterSpec{}
	fill(reflect.ValueOf(full).Elem())
	goal := Goal(full)
	paths := leaves("", generic(t, full))
	if len(paths) < 1000 {
		t.Fatalf("only %d fields were found", len(paths))
	}
	changed, same := 0, 0
	rapid.Check(t, func(r *rapid.T) {
		path := rapid.SampledFrom(paths).Draw(r, "field")
		remove := rapid.Bool().Draw(r, "remove it")
		edited := generic(t, full)
		if !edit(edited, path, remove) {
			return
		}
		other := typed(t, edited)
		if want := !notInGoal.MatchString(path); (Goal(other) != goal) != want {
			r.Errorf("the goal changes: %t, want %t", !want, want)
		}
		if notInGoal.MatchString(path) {
			same++
		} else {
			changed++
		}
	})
	if changed == 0 {
		t.Error("no field was drawn that counts")
	}
	for _, path := range paths {
		if notInGoal.MatchString(path) {
			same++
			edited := generic(t, full)
			if edit(edited, path, false) && Goal(typed(t, edited)) != goal {
				t.Errorf("%s changes the goal", path)
			}
		}
	}
	if same < 10 {
		t.Errorf("%d fields that do not count were tried, want more", same)
	}
}

func TestGoalKnowsWhatMeansTheSame(t *testing.T) {
	type edit = func(*rayv1.RayClusterSpec)
	pod := func(change func(*corev1.PodSpec)) edit {
		return func(spec *rayv1.RayClusterSpec) { change(&spec.HeadGroupSpec.Template.Spec) }
	}
	selector := func(s *metav1.LabelSelector) edit {
		return pod(func(spec *corev1.PodSpec) {
			spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, LabelSelector: s}}
		})
	}
	limit := func(cpu string) edit {
		return pod(func(spec *corev1.PodSpec) {
			spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
		})
	}
	nothing := func(*rayv1.RayClusterSpec) {}
	for name, c := range map[string]struct {
		a, b     edit
		wantSame bool
	}{
		"an empty map and none":                                    {nothing, pod(func(spec *corev1.PodSpec) { spec.NodeSelector = map[string]string{} }), true},
		"an empty list and none":                                   {nothing, pod(func(spec *corev1.PodSpec) { spec.Volumes = []corev1.Volume{} }), true},
		"an empty security context and none":                       {nothing, pod(func(spec *corev1.PodSpec) { spec.SecurityContext = &corev1.PodSecurityContext{} }), true},
		"one CPU and a thousand millis":                            {limit("1"), limit("1000m"), true},
		"a selector of everything and none, which selects nothing": {selector(&metav1.LabelSelector{}), selector(nil), false},
		"groups in another order": {
			func(spec *rayv1.RayClusterSpec) {
				spec.WorkerGroupSpecs = append(spec.WorkerGroupSpecs, rayv1.WorkerGroupSpec{GroupName: "big"})
			},
			func(spec *rayv1.RayClusterSpec) {
				spec.WorkerGroupSpecs = append([]rayv1.WorkerGroupSpec{{GroupName: "big"}}, spec.WorkerGroupSpecs...)
			}, false},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := given().Service.Spec.RayClusterConfig, given().Service.Spec.RayClusterConfig
			c.a(&a)
			c.b(&b)
			if same := Goal(&a) == Goal(&b); same != c.wantSame {
				t.Errorf("they are the same: %t, want %t", same, c.wantSame)
			}
		})
	}
}

// A cluster of another operator has a hash of another form. It must not be taken for one that differs (L57).
func TestACloneOfTheSpecFitsWhateverItsHashSays(t *testing.T) {
	group := func(name string) rayv1.WorkerGroupSpec { return rayv1.WorkerGroupSpec{GroupName: name} }
	byKubeRay := map[string]string{rayv1.AnnotationSpecHash: "UDJHJOPTG4HIRSQOMPTIVB3VOL3NTQ6C", rayv1.AnnotationNumWorkerGroups: "7"}
	ours := func(groups string) func(*rayv1.RayCluster) {
		return func(c *rayv1.RayCluster) {
			c.Annotations = map[string]string{rayv1.AnnotationSpecHash: Goal(&c.Spec), rayv1.AnnotationNumWorkerGroups: groups}
		}
	}
	for name, c := range map[string]struct {
		cluster func(*rayv1.RayCluster)
		wanted  func(*rayv1.RayClusterSpec)
		want    bool
	}{
		"KubeRay's, unchanged": {func(c *rayv1.RayCluster) { c.Annotations = byKubeRay }, nil, true},
		"KubeRay's, scaled by an autoscaler": {func(c *rayv1.RayCluster) {
			c.Annotations, c.Spec.WorkerGroupSpecs[0].Replicas = byKubeRay, ptr.To[int32](17)
		}, nil, true},
		"KubeRay's, another image": {func(c *rayv1.RayCluster) { c.Annotations = byKubeRay }, func(s *rayv1.RayClusterSpec) {
			s.HeadGroupSpec.Template.Spec.Containers[0].Image = "ray:2"
		}, false},
		"KubeRay's, a group appended": {func(c *rayv1.RayCluster) { c.Annotations = byKubeRay }, func(s *rayv1.RayClusterSpec) {
			s.WorkerGroupSpecs = append(s.WorkerGroupSpecs, group("big"))
		}, true},
		"without any hash": {func(c *rayv1.RayCluster) { c.Annotations = nil }, nil, true},
		"ours, a group appended": {ours("1"), func(s *rayv1.RayClusterSpec) {
			s.WorkerGroupSpecs = append(s.WorkerGroupSpecs, group("big"))
		}, true},
		"ours, a group put in front": {ours("1"), func(s *rayv1.RayClusterSpec) {
			s.WorkerGroupSpecs = slices.Insert(s.WorkerGroupSpecs, 0, group("big"))
		}, false},
		"ours, a group removed": {ours("1"), func(s *rayv1.RayClusterSpec) { s.WorkerGroupSpecs = nil }, false},
		"ours, a number that cannot be read": {ours("many"), func(s *rayv1.RayClusterSpec) {
			s.WorkerGroupSpecs = append(s.WorkerGroupSpecs, group("big"))
		}, true},
		"ours, whose own spec was edited": {func(c *rayv1.RayCluster) {
			ours("1")(c)
			c.Spec.HeadGroupSpec.Template.Spec.Containers[0].Image = "ray:edited"
		}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			wanted := given().Service.Spec.RayClusterConfig
			cluster := &rayv1.RayCluster{Spec: *wanted.DeepCopy()}
			c.cluster(cluster)
			if c.wanted != nil {
				c.wanted(&wanted)
			}
			if got := fits(cluster, &wanted); got != c.want {
				t.Errorf("it fits: %t, want %t", got, c.want)
			}
		})
	}
}

// fill gives every field of a value something that is not its zero value.
func fill(v reflect.Value) {
	switch v.Type() {
	case reflect.TypeFor[resource.Quantity]():
		v.Set(reflect.ValueOf(resource.MustParse("3")))
		return
	case reflect.TypeFor[metav1.Time]():
		v.Set(reflect.ValueOf(metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))))
		return
	case reflect.TypeFor[metav1.FieldsV1]():
		v.Set(reflect.ValueOf(*metav1.NewFieldsV1(`{"f":"x"}`)))
		return
	case reflect.TypeFor[intstr.IntOrString]():
		v.Set(reflect.ValueOf(intstr.FromInt32(3)))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		value := reflect.New(v.Type().Elem()).Elem()
		fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("k").Convert(v.Type().Key()), value)
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint8:
		v.SetUint(7)
	default:
		v.SetInt(7)
	}
}

func generic(t *testing.T, spec *rayv1.RayClusterSpec) map[string]any {
	t.Helper()
	text, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	var value map[string]any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func typed(t *testing.T, value map[string]any) *rayv1.RayClusterSpec {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	spec := &rayv1.RayClusterSpec{}
	if err := json.Unmarshal(text, spec); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return spec
}

// leaves are the paths of all values that are neither maps nor lists.
func leaves(path string, value any) []string {
	var found []string
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			found = append(found, leaves(path+"/"+key, value[key])...)
		}
	case []any:
		for i := range value {
			found = append(found, leaves(fmt.Sprintf("%s/%d", path, i), value[i])...)
		}
	default:
		found = append(found, path)
	}
	return found
}

// edit changes the value at a path, or removes it. It is false where that cannot be done.
func edit(value any, path string, remove bool) bool {
	for key, inner := range children(value) {
		if path == "/"+key {
			return editOne(value, key, remove)
		}
		if len(path) > len(key)+1 && path[:len(key)+2] == "/"+key+"/" {
			return edit(inner, path[len(key)+1:], remove)
		}
	}
	return false
}

func children(value any) map[string]any {
	switch value := value.(type) {
	case map[string]any:
		return value
	case []any:
		byIndex := map[string]any{}
		for i := range value {
			byIndex[fmt.Sprint(i)] = value[i]
		}
		return byIndex
	default:
		return nil
	}
}

func editOne(value any, key string, remove bool) bool {
	fields, isMap := value.(map[string]any)
	if remove && isMap {
		delete(fields, key)
		return true
	}
	changed := changedLeaf(children(value)[key])
	if isMap {
		fields[key] = changed
	} else {
		value.([]any)[0] = changed
	}
	return true
}

func changedLeaf(value any) any {
	switch value := value.(type) {
	case bool:
		return !value
	case float64:
		return value + 1
	case string:
		switch {
		case value == "3": // a quantity
			return "4"
		case len(value) == len("2026-01-01T00:00:00Z"):
			return "2027" + value[4:]
		case value == "Bw==": // bytes
			return "CA=="
		}
		return value + "y"
	}
	return "y"
}
