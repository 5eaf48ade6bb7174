package status

import (
	"strings"
	"testing"

	"github.com/heliostat-io/heliostat/internal/cli/clitest"
)

// TestScreens compares the screens of status with what they looked like when somebody last read them.
func TestScreens(t *testing.T) {
	for _, tc := range []struct {
		golden, world, columns string
		args                   []string
	}{
		{"degraded.txt", "degraded", "100", []string{"train"}},
		{"degraded-narrow.txt", "degraded", "60", []string{"train"}},
		{"degraded-verbose.txt", "degraded", "100", []string{"cluster/train", "-v"}},
		{"degraded.json", "degraded", "100", []string{"train", "-o", "json"}},
		{"degraded.yaml", "degraded", "100", []string{"train", "-o", "yaml"}},
	} {
		t.Run(tc.golden, func(t *testing.T) {
			t.Setenv("COLUMNS", tc.columns)
			k := clitest.New(clitest.Load(t, tc.world)...)
			if code := k.Run(t, New, tc.args...); code != 0 {
				t.Fatalf("exit code %d: %s", code, k.ErrOut)
			}
			clitest.Golden(t, tc.golden, k.Out.String())
		})
	}
}

func TestAnObjectThatIsNotThere(t *testing.T) {
	for argument, want := range map[string]string{
		"nobody":        `no RayCluster, RayJob, RayService or RayCronJob "nobody" in namespace "default"`,
		"rayjob/nobody": `no RayJob "nobody" in namespace "default"`,
		"pod/x":         `type "pod" is unknown`,
	} {
		k := clitest.New()
		if code := k.Run(t, New, argument); code != 2 {
			t.Errorf("%s: exit code %d, want 2", argument, code)
		}
		if !strings.Contains(k.ErrOut.String(), want) {
			t.Errorf("%s: said %q, want %q", argument, k.ErrOut, want)
		}
	}
}
