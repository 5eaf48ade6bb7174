package v1_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

const emptyTemplate = `{"metadata":{},"spec":{"containers":null}}`

// Given a value with nothing set, when it is written, then exactly those fields appear that clients of this API have
// always seen there.
func TestEmptyValuesAreWrittenAsClientsKnowThem(t *testing.T) {
	head := `{"template":` + emptyTemplate + `,"rayStartParams":null}`
	cluster := `{"headGroupSpec":` + head + `}`
	clusterStatus := `{"head":{},"desiredCPU":"0","desiredMemory":"0","desiredGPU":"0","desiredTPU":"0"}`
	serviceStatus := `{"rayClusterStatus":` + clusterStatus + `}`
	tests := map[string]struct {
		value any
		want  string
	}{
		"a RayCluster's spec":   {rayv1.RayClusterSpec{}, cluster},
		"a RayCluster's status": {rayv1.RayClusterStatus{}, clusterStatus},
		"a head group":          {rayv1.HeadGroupSpec{}, head},
		"a worker group": {
			rayv1.WorkerGroupSpec{},
			`{"groupName":"","minReplicas":null,"maxReplicas":null,"template":` + emptyTemplate + `,"rayStartParams":null,"scaleStrategy":{}}`,
		},
		"a RayJob's spec":         {rayv1.RayJobSpec{}, `{}`},
		"a RayJob's status":       {rayv1.RayJobStatus{}, `{"rayJobInfo":{},"rayClusterStatus":` + clusterStatus + `}`},
		"a deletion rule":         {rayv1.DeletionRule{}, `{"policy":"","condition":{}}`},
		"a RayService's spec":     {rayv1.RayServiceSpec{}, `{"rayClusterConfig":` + cluster + `}`},
		"a RayService's status":   {rayv1.RayServiceStatuses{}, `{"activeServiceStatus":` + serviceStatus + `,"pendingServiceStatus":` + serviceStatus + `}`},
		"upgrade options":         {rayv1.ClusterUpgradeOptions{}, `{"stepSizePercent":null,"intervalSeconds":null,"gatewayClassName":""}`},
		"a RayCronJob's spec":     {rayv1.RayCronJobSpec{}, `{"jobTemplate":{},"schedule":""}`},
		"a RayCronJob's status":   {rayv1.RayCronJobStatus{}, `{}`},
		"autoscaler options":      {rayv1.AutoscalerOptions{}, `{}`},
		"options of GCS":          {rayv1.GcsFaultToleranceOptions{}, `{}`},
		"a group's network rules": {rayv1.WorkerGroupNetworkPolicyRules{}, `{"groupName":""}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := json.Marshal(test.value)
			if err != nil {
				t.Fatalf("writing: %v", err)
			}
			if diff := cmp.Diff(decoded(t, test.want), decoded(t, string(got))); diff != "" {
				t.Errorf("written differently (-want +got):\n%s", diff)
			}
		})
	}
}

// Given values with every kind of field set, when they are written and read again, then nothing is lost or renamed.
func TestValuesSurviveWritingAndReading(t *testing.T) {
	seen := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	two := int32(2)
	succeeded := rayv1.JobStatusSucceeded
	tests := map[string]struct {
		value, empty any
		want         string
	}{
		"a RayCluster's status": {
			value: &rayv1.RayClusterStatus{
				State:                rayv1.ClusterStateReady,
				StateTransitionTimes: map[rayv1.ClusterState]*metav1.Time{rayv1.ClusterStateReady: &seen},
				DesiredCPU:           resource.MustParse("1500m"),
				DesiredMemory:        resource.MustParse("4Gi"),
				Head:                 rayv1.HeadInfo{PodName: "demo-head-abcde", ServiceIP: "10.0.0.1"},
				LastUpdateTime:       &seen,
				Incarnations:         map[string]int64{rayv1.HeadGroupName: 3, "small": 12},
			},
			empty: &rayv1.RayClusterStatus{},
			want: `{"state":"ready","stateTransitionTimes":{"ready":"2026-01-02T03:04:05Z"},"desiredCPU":"1500m","desiredMemory":"4Gi",
				"desiredGPU":"0","desiredTPU":"0","head":{"podName":"demo-head-abcde","serviceIP":"10.0.0.1"},
				"lastUpdateTime":"2026-01-02T03:04:05Z","incarnations":{"headgroup":3,"small":12}}`,
		},
		"a RayJob's spec": {
			value: &rayv1.RayJobSpec{
				JobId: "a", RuntimeEnvYAML: "pip: []", EntrypointNumCpus: 0.5, TTLSecondsAfterFinished: 60, SubmissionMode: rayv1.HTTPMode,
				DeletionStrategy: &rayv1.DeletionStrategy{DeletionRules: []rayv1.DeletionRule{{
					Policy: rayv1.DeleteSelf, Condition: rayv1.DeletionCondition{JobStatus: &succeeded, TTLSeconds: 5},
				}}},
			},
			empty: &rayv1.RayJobSpec{},
			want: `{"jobId":"a","runtimeEnvYAML":"pip: []","entrypointNumCpus":0.5,"ttlSecondsAfterFinished":60,"submissionMode":"HTTPMode",
				"deletionStrategy":{"deletionRules":[{"policy":"DeleteSelf","condition":{"jobStatus":"SUCCEEDED","ttlSeconds":5}}]}}`,
		},
		"a worker group": {
			value: &rayv1.WorkerGroupSpec{
				GroupName: "small", Replicas: &two, MinReplicas: &two, MaxReplicas: &two, NumOfHosts: 4,
				RayStartParams: map[string]string{"num-cpus": "1"},
				ScaleStrategy:  rayv1.ScaleStrategy{WorkersToDelete: []string{"demo-small-worker-abcde"}},
				Template:       corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "ray-worker"}}}},
			},
			empty: &rayv1.WorkerGroupSpec{},
			want: `{"groupName":"small","replicas":2,"minReplicas":2,"maxReplicas":2,"numOfHosts":4,"rayStartParams":{"num-cpus":"1"},
				"scaleStrategy":{"workersToDelete":["demo-small-worker-abcde"]},
				"template":{"metadata":{},"spec":{"containers":[{"name":"ray-worker","resources":{}}]}}}`,
		},
		"a group's network rules": {
			value: &rayv1.WorkerGroupNetworkPolicyRules{GroupName: "small", NetworkPolicyRules: rayv1.NetworkPolicyRules{}},
			empty: &rayv1.WorkerGroupNetworkPolicyRules{},
			want:  `{"groupName":"small"}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			written, err := json.Marshal(test.value)
			if err != nil {
				t.Fatalf("writing: %v", err)
			}
			if diff := cmp.Diff(decoded(t, test.want), decoded(t, string(written))); diff != "" {
				t.Errorf("written differently (-want +got):\n%s", diff)
			}
			if err := json.Unmarshal(written, test.empty); err != nil {
				t.Fatalf("reading: %v", err)
			}
			// Quantities and times keep how they were written beside what they mean, so they are compared on the wire.
			again, err := json.Marshal(test.empty)
			if err != nil {
				t.Fatalf("writing again: %v", err)
			}
			if diff := cmp.Diff(string(written), string(again)); diff != "" {
				t.Errorf("changed by reading (-before +after):\n%s", diff)
			}
		})
	}
}

// Given a scheme that knows this package, when a manifest of each kind is read strictly, then it becomes the Go type of
// that kind, and a misspelt field is an error.
func TestManifestsAreReadAsTheirKind(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := rayv1.AddToScheme(scheme); err != nil {
		t.Fatalf("registering: %v", err)
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	tests := map[string]runtime.Object{
		rayv1.KindRayCluster: &rayv1.RayCluster{},
		rayv1.KindRayJob:     &rayv1.RayJob{},
		rayv1.KindRayService: &rayv1.RayService{},
		rayv1.KindRayCronJob: &rayv1.RayCronJob{},
	}
	for kind, want := range tests {
		t.Run(kind, func(t *testing.T) {
			manifest := "apiVersion: ray.io/v1\nkind: " + kind + "\nmetadata: {name: demo}\n"
			got, _, err := decoder.Decode([]byte(manifest), nil, nil)
			if err != nil {
				t.Fatalf("reading: %v", err)
			}
			if gotType, wantType := reflect.TypeOf(got), reflect.TypeOf(want); gotType != wantType {
				t.Errorf("read as %v, want %v", gotType, wantType)
			}
			if _, _, err := decoder.Decode([]byte(manifest+"spec: {noSuchField: 1}\n"), nil, nil); err == nil {
				t.Errorf("a misspelt field was read without an error")
			}
		})
	}
}

// Given statuses of jobs, when asked whether they are final, then exactly the documented ones are.
func TestFinalStatuses(t *testing.T) {
	for status, want := range map[rayv1.JobStatus]bool{
		rayv1.JobStatusNew: false, rayv1.JobStatusPending: false, rayv1.JobStatusRunning: false,
		rayv1.JobStatusStopped: true, rayv1.JobStatusSucceeded: true, rayv1.JobStatusFailed: true,
	} {
		if got := rayv1.IsJobTerminal(status); got != want {
			t.Errorf("IsJobTerminal(%q) = %v, want %v", status, got, want)
		}
	}
	for status, want := range map[rayv1.JobDeploymentStatus]bool{
		rayv1.JobDeploymentStatusNew: false, rayv1.JobDeploymentStatusRunning: false, rayv1.JobDeploymentStatusRetrying: false,
		rayv1.JobDeploymentStatusValidationFailed: false, rayv1.JobDeploymentStatusSuspended: false,
		rayv1.JobDeploymentStatusComplete: true, rayv1.JobDeploymentStatusFailed: true,
	} {
		if got := rayv1.IsJobDeploymentTerminal(status); got != want {
			t.Errorf("IsJobDeploymentTerminal(%q) = %v, want %v", status, got, want)
		}
	}
}

func decoded(t *testing.T, text string) any {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("reading %s: %v", text, err)
	}
	return value
}
