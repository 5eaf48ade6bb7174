package chart

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWrongValuesOfClustersAreRefused(t *testing.T) {
	cases := map[string]struct {
		values string
		want   []string
	}{
		"replicas as a word":                  {values: "worker: {replicas: two}", want: []string{"/worker/replicas", "two"}},
		"negative replicas":                   {values: "additionalWorkerGroups: {a: {minReplicas: -1}}", want: []string{"/additionalWorkerGroups/a/minReplicas", "minimum"}},
		"extra groups as a list":              {values: "additionalWorkerGroups: [{groupName: a}]", want: []string{"/additionalWorkerGroups", "got array"}},
		"a switch as a word":                  {values: `worker: {disabled: "yes"}`, want: []string{"/worker/disabled", "boolean"}},
		"a name that is too long":             {values: "fullnameOverride: " + strings.Repeat("a", 54), want: []string{"/fullnameOverride", "maxLength"}},
		"a name that cannot be":               {values: "fullnameOverride: 1a", want: []string{"/fullnameOverride", "1a"}},
		"a number as a label":                 {values: "head: {labels: {a: 1}}", want: []string{"/head/labels/a", "string"}},
		"a number in the environment":         {values: "common: {containerEnv: [{name: A, value: 1}]}", want: []string{"/common/containerEnv/0/value", "string"}},
		"a number as a password":              {values: "gcsFaultTolerance: {redisPassword: 0123}", want: []string{"/gcsFaultTolerance/redisPassword", "string"}},
		"a flag that is a map":                {values: "head: {rayStartParams: {resources: {a: 1}}}", want: []string{"/head/rayStartParams/resources", "got object"}},
		"a volume without a name":             {values: "head: {volumes: [{emptyDir: {}}]}", want: []string{"/head/volumes/0", "name"}},
		"a policy in the wrong letters":       {values: "image: {pullPolicy: always}", want: []string{"/image/pullPolicy", "Always"}},
		"a Service type that does not exist":  {values: "service: {type: Ingress}", want: []string{"/service/type", "NodePort"}},
		"a restart policy that does not":      {values: "worker: {restartPolicy: Sometimes}", want: []string{"/worker/restartPolicy", "OnFailure"}},
		"resources of an extra group in text": {values: "additionalWorkerGroups: {a: {resources: small}}", want: []string{"/additionalWorkerGroups/a/resources", "object"}},
	}
	for name, tc := range cases {
		t.Run("given "+name, func(t *testing.T) {
			_, err := tryRenderChart(t, clusterChartPath, "raycluster", tc.values)
			if err == nil {
				t.Fatal("the chart accepted it")
			}
			for _, piece := range tc.want {
				if !strings.Contains(err.Error(), piece) {
					t.Errorf("%q is missing in the message:\n%v", piece, err)
				}
			}
		})
	}
}

// TestValuesWithoutEffectAreNamed: values files for KubeRay's chart are taken whatever stands in them, and a misspelt value
// does not go unnoticed.
func TestValuesWithoutEffectAreNamed(t *testing.T) {
	full, err := os.ReadFile(filepath.Join("testdata", "ray-cluster", "full-values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		values string
		want   []string
	}{
		"given nothing":                  {},
		"given everything that there is": {values: string(full)},
		"given globals of a parent":      {values: "global: {a: 1}"},
		"given others": {
			values: `{foo: 1, image: {repo: x}, service: {port: 1}, head: {groupName: a, foo: null}, worker: {replica: 1, foo: {a: b}},
				additionalWorkerGroups: {a: {groupName: b}}}`,
			want: []string{"foo", "image.repo", "service.port", "head.groupName", "worker.foo", "worker.replica", "additionalWorkerGroups.a.groupName"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, notes := renderRelease(t, "raycluster", tc.values)
			_, warning, _ := strings.Cut(notes, "WARNING")
			if len(tc.want) == 0 && warning != "" {
				t.Errorf("there is a warning:%s", warning)
			}
			for _, value := range tc.want {
				if !strings.Contains(warning+"\n", "\n  "+value+"\n") {
					t.Errorf("%s is not named in the notes:\n%s", value, notes)
				}
			}
		})
	}
}

// TestTheFullClusterHasEveryValue holds that testdata/ray-cluster/full-values.yaml leaves nothing out that the schema knows.
func TestTheFullClusterHasEveryValue(t *testing.T) {
	type object struct {
		Properties map[string]any `json:"properties"`
	}
	var schema struct {
		Properties struct {
			GCS    object `json:"gcsFaultTolerance"`
			Head   object `json:"head"`
			Worker object `json:"worker"`
		} `json:"properties"`
		Definitions struct {
			Group       object `json:"group"`
			WorkerGroup object `json:"workerGroup"`
		} `json:"definitions"`
	}
	readYAML(t, filepath.Join(clusterChartPath, "values.schema.json"), &schema)
	var full struct {
		GCS    map[string]any `json:"gcsFaultTolerance"`
		Head   map[string]any `json:"head"`
		Worker map[string]any `json:"worker"`
	}
	readYAML(t, filepath.Join("testdata", "ray-cluster", "full-values.yaml"), &full)
	for name, set := range map[string]struct {
		values map[string]any
		known  []object
	}{
		"gcsFaultTolerance": {full.GCS, []object{schema.Properties.GCS}},
		"head":              {full.Head, []object{schema.Properties.Head, schema.Definitions.Group}},
		"worker":            {full.Worker, []object{schema.Properties.Worker, schema.Definitions.WorkerGroup, schema.Definitions.Group}},
	} {
		for _, part := range set.known {
			if len(part.Properties) == 0 {
				t.Errorf("%s: a part of the schema has no values", name)
			}
			for key := range part.Properties {
				if _, found := set.values[key]; !found {
					t.Errorf("%s.%s is not set", name, key)
				}
			}
		}
	}
}
