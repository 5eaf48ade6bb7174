package suspend

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/clitest"
)

func TestSuspendAndResume(t *testing.T) {
	meta := metav1.ObjectMeta{Name: "x", Namespace: "default"}
	for argument, object := range map[string]client.Object{
		"x":         &rayv1.RayCluster{ObjectMeta: meta},
		"job/x":     &rayv1.RayJob{ObjectMeta: meta, Spec: rayv1.RayJobSpec{ShutdownAfterJobFinishes: true}},
		"service/x": &rayv1.RayService{ObjectMeta: meta},
		"cronjob/x": &rayv1.RayCronJob{ObjectMeta: meta},
	} {
		t.Run(argument, func(t *testing.T) {
			k := clitest.New(object)
			for _, step := range []struct {
				suspend bool
				says    string
			}{{true, "default/x suspended"}, {true, "default/x already suspended"}, {false, "default/x resumed"}, {false, "default/x already resumed"}} {
				command := NewResume
				if step.suspend {
					command = NewSuspend
				}
				if code := k.Run(t, command, argument); code != 0 {
					t.Fatalf("exit code %d: %s", code, k.ErrOut)
				}
				if err := k.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
					t.Fatal(err)
				}
				if suspended(object) != step.suspend || !strings.Contains(k.Out.String(), step.says) {
					t.Errorf("suspend is %v, want %v; it said %q, want %q", suspended(object), step.suspend, k.Out, step.says)
				}
			}
		})
	}
}

func TestNobodyIsSuspendedByAMistake(t *testing.T) {
	k := clitest.New()
	if code := k.Run(t, NewSuspend, "x"); code != 1 || !strings.Contains(k.ErrOut.String(), `no RayCluster, RayJob, RayService or RayCronJob "x"`) {
		t.Errorf("exit code %d, it said %q", code, k.ErrOut)
	}
}

// TestARayJobThatKeepsItsClusterIsNotSuspended: the operator would call its spec invalid, and KubeRay's never leaves that state.
func TestARayJobThatKeepsItsClusterIsNotSuspended(t *testing.T) {
	job := &rayv1.RayJob{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "default"}}
	k := clitest.New(job)
	if code := k.Run(t, NewSuspend, "job/x"); code != 1 || !strings.Contains(k.ErrOut.String(), "needs spec.shutdownAfterJobFinishes: true") {
		t.Errorf("exit code %d, it said %q", code, k.ErrOut)
	}
	if err := k.Get(t.Context(), client.ObjectKeyFromObject(job), job); err != nil || job.Spec.Suspend {
		t.Errorf("it was suspended all the same (%v)", err)
	}
}
