package diagnose

import (
	"testing"

	"github.com/heliostat-io/heliostat/internal/cli/clitest"
)

func TestScreens(t *testing.T) {
	for _, tc := range []struct {
		golden, columns string
		args            []string
	}{
		{"degraded.txt", "100", []string{"train"}},
		{"degraded-narrow.txt", "60", []string{"train"}},
		{"degraded.json", "100", []string{"train", "-o", "json"}},
	} {
		t.Run(tc.golden, func(t *testing.T) {
			t.Setenv("COLUMNS", tc.columns)
			k := clitest.New(clitest.Load(t, "degraded")...)
			if code := k.Run(t, New, tc.args...); code != 1 {
				t.Fatalf("exit code %d, want 1 because there are findings: %s", code, k.ErrOut)
			}
			clitest.Golden(t, tc.golden, k.Out.String())
		})
	}
}

func TestExitCodeWhenItCannotLook(t *testing.T) {
	k := clitest.New()
	if code := k.Run(t, New, "nobody"); code != 2 {
		t.Errorf("exit code %d, want 2: %s", code, k.ErrOut)
	}
}
