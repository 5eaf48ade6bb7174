package rayimage

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func readRecipe(t *testing.T, name string) string {
	t.Helper()
	content, err := recipe.ReadFile("files/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestLockFilesPinTheVersionsThatAreAskedFor(t *testing.T) {
	cases := map[string]struct {
		file string
		want []string
	}{
		"Ray as asked for":            {"ray.in", []string{"ray[default,serve]==" + RayVersion}},
		"Ray as installed":            {"ray.txt", []string{"\nray==" + RayVersion + " \\"}},
		"what upstream samples want":  {"wheelhouse.in", []string{"requests==2.26.0", "pendulum==2.1.2"}},
		"what upstream samples get":   {"wheelhouse.txt", []string{"\nrequests==2.26.0 \\", "\npendulum==2.1.2 \\"}},
		"S3 client for walk-throughs": {"ray.txt", []string{"\nboto3=="}},
	}
	for title, tc := range cases {
		t.Run(title, func(t *testing.T) {
			content := readRecipe(t, tc.file)
			for _, want := range tc.want {
				if !strings.Contains(content, want) {
					t.Errorf("files/%s does not contain %q", tc.file, want)
				}
			}
		})
	}
}

func TestEveryPackageOfALockFileHasAHash(t *testing.T) {
	pinned := regexp.MustCompile(`(?m)^[a-z0-9._-]+==\S+(.*)$`)
	for _, file := range []string{"ray.txt", "wheelhouse.txt", "build-tools.txt"} {
		matches := pinned.FindAllStringSubmatch(readRecipe(t, file), -1)
		if len(matches) == 0 {
			t.Errorf("files/%s pins no package", file)
		}
		for _, match := range matches {
			if match[1] != ` \` {
				t.Errorf("files/%s: %q is not followed by hashes", file, match[0])
			}
		}
	}
}

func TestEveryStepHasItsScript(t *testing.T) {
	for _, step := range steps() {
		readRecipe(t, step.Script)
	}
}

// TestNamesCoverTheImagesOfUpstreamSamples reads the samples that are not part
// of this repository. Images for GPUs and for large language models are left out:
// this image could not run them.
func TestNamesCoverTheImagesOfUpstreamSamples(t *testing.T) {
	shared := os.Getenv("HELIOSTAT_SHARED")
	if shared == "" {
		shared = "../../../../shared"
	}
	samples, err := filepath.Glob(filepath.Join(shared, "conformance", "kuberay-samples", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(samples) == 0 {
		t.Skip("the upstream samples are not here; HELIOSTAT_SHARED may name the folder that holds them")
	}
	used := regexp.MustCompile(`(?m)^[^#\n]*image:\s*"?(rayproject/ray:[A-Za-z0-9._-]+)`)
	for _, sample := range samples {
		content, err := os.ReadFile(sample)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range used.FindAllStringSubmatch(string(content), -1) {
			name := "docker.io/" + match[1]
			if strings.HasSuffix(name, "-gpu") || slices.Contains(Names(), name) {
				continue
			}
			t.Errorf("%s uses %s, which the Ray image is not loaded under", filepath.Base(sample), name)
		}
	}
}

func TestNetworkSettingsOfTheMachineReachPipButItsPathsDoNot(t *testing.T) {
	environ := []string{
		"PIP_INDEX_URL=https://index.example/simple", "https_proxy=http://proxy.example:3128", "PIP_DEFAULT_TIMEOUT=180",
		"PIP_CERT=/machine/ca.pem", "PIP_FIND_LINKS=/machine/wheels", "SSL_CERT_FILE=/machine/ca.pem", "HOME=/machine", "SECRET=x",
	}
	common := []string{
		"PIP_NO_CACHE_DIR=1", "PIP_NO_INPUT=1", "PIP_PROGRESS_BAR=off", "PIP_ROOT_USER_ACTION=ignore", "PIP_DISABLE_PIP_VERSION_CHECK=1",
	}
	passed := []string{"PIP_INDEX_URL=https://index.example/simple", "https_proxy=http://proxy.example:3128", "PIP_DEFAULT_TIMEOUT=180"}
	cases := map[string]struct {
		borrowed []string
		want     []string
	}{
		"given a machine without own certificates": {
			want: slices.Concat(common, passed),
		},
		"given a machine with certificates and settings of pip": {
			borrowed: []string{"/build/ca.pem", "/build/pip.conf"},
			want: slices.Concat(common, passed, []string{
				"PIP_CERT=/build/ca.pem", "SSL_CERT_FILE=/build/ca.pem", "PIP_CONFIG_FILE=/build/pip.conf",
			}),
		},
	}
	for title, tc := range cases {
		t.Run(title, func(t *testing.T) {
			c := &chroot{borrowed: tc.borrowed}
			if diff := cmp.Diff(tc.want, c.networkEnv(environ)); diff != "" {
				t.Errorf("environment (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCleanLeavesNothingOfTheMachineInTheImage(t *testing.T) {
	root, machine := t.TempDir(), t.TempDir()
	settings := filepath.Join(machine, "settings")
	if err := os.WriteFile(settings, []byte("of this machine"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &chroot{root: root}
	for _, target := range []string{"/etc/resolv.conf", "/root/.config/pip/pip.conf", buildDir + "/ca.pem", "/dev/node"} {
		if err := c.borrow(settings, target); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.borrow(filepath.Join(machine, "absent"), "/etc/hosts"); err != nil {
		t.Fatalf("borrowing a file that does not exist: %v", err)
	}
	if err := c.clean(); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			t.Errorf("%s is left", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestTailKeepsTheLastLines(t *testing.T) {
	if got, want := tail("one\ntwo\nthree\n", 2), "    two\n    three"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
