package plan

import (
	"strings"
	"testing"

	"github.com/heliostat-io/heliostat/internal/cli/clitest"
)

// TestPlans shows each kind of object, in each format, on a screen that is wide and one that is narrow.
func TestPlans(t *testing.T) {
	for world, argument := range map[string]string{
		"bare": "bare", "job-new": "job/train", "job-running": "job/train", "job-headless": "job/train", "service-running": "service/shop",
		"cron": "cronjob/nightly",
	} {
		t.Run(world, func(t *testing.T) {
			k := clitest.New(clitest.Load(t, world)...)
			run := func(golden string, args ...string) {
				t.Helper()
				if code := k.Run(t, New, append([]string{argument}, args...)...); code != 0 {
					t.Fatalf("exit code %d: %s", code, k.ErrOut)
				}
				clitest.Golden(t, world+golden, k.Out.String())
			}
			run(".txt")
			run(".json", "-o", "json")
			run(".yaml", "-o", "yaml")
			t.Setenv("COLUMNS", "50")
			run("-narrow.txt")
		})
	}
}

func TestANameAloneIsThatOfTheOnlyObject(t *testing.T) {
	k := clitest.New(clitest.Load(t, "cron")...)
	if code := k.Run(t, New, "nightly"); code != 0 || !strings.HasPrefix(k.Out.String(), "RayCronJob default/nightly") {
		t.Errorf("exit code %d, it said %q %q", code, k.Out, k.ErrOut)
	}
}

func TestThereIsNoPlan(t *testing.T) {
	for argument, want := range map[string]string{
		"nobody": `"nobody" in namespace "default"`,
		"job/j":  `no RayJob "j" in namespace "default"`,
	} {
		k := clitest.New()
		if code := k.Run(t, New, argument); code != 2 || !strings.Contains(k.ErrOut.String(), want) {
			t.Errorf("%s: exit code %d, it said %q, want 2 and %q", argument, code, k.ErrOut, want)
		}
	}
}
