package rayjob

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// Given the manifests of the user guide, then their RayJobs are valid, and no end of theirs is left to chance.
func TestExamplesOfTheGuideAreValid(t *testing.T) {
	paths, err := filepath.Glob("../../docs/examples/rayjob*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no examples were found: %v", err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
			job := &rayv1.RayJob{}
			if err := yaml.Unmarshal(document, job); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			if job.Kind != rayv1.KindRayJob {
				continue
			}
			found++
			if job.Spec.SubmissionMode == "" {
				job.Spec.SubmissionMode = rayv1.K8sJobMode // as the API server does
			}
			if err := Validate(job, settings); err != nil {
				t.Errorf("%s: %v", path, err)
			}
			if notes := uncovered(&job.Spec); len(notes) > 0 {
				t.Errorf("%s: %v", path, notes)
			}
		}
		if found != 1 {
			t.Errorf("%s holds %d RayJobs", path, found)
		}
	}
}
