package plan

import (
	"strings"
	"testing"

	"github.com/heliostat-io/heliostat/internal/cli/clitest"
)

func TestAPlanNamesEachWriteAndItsReason(t *testing.T) {
	k := clitest.New(clitest.Load(t, "bare")...)
	if code := k.Run(t, New, "bare"); code != 0 {
		t.Fatalf("exit code %d: %s", code, k.ErrOut)
	}
	clitest.Golden(t, "bare.txt", k.Out.String())
	k.Run(t, New, "bare", "-o", "json")
	clitest.Golden(t, "bare.json", k.Out.String())
}

func TestThereIsNoPlan(t *testing.T) {
	for argument, want := range map[string]string{
		"nobody": `no RayCluster "nobody" in namespace "default"`,
		"job/j":  "there are plans for RayClusters only",
	} {
		k := clitest.New()
		if code := k.Run(t, New, argument); code != 2 || !strings.Contains(k.ErrOut.String(), want) {
			t.Errorf("%s: exit code %d, it said %q, want 2 and %q", argument, code, k.ErrOut, want)
		}
	}
}
