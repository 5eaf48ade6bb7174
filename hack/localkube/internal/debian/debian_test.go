package debian

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMissing(t *testing.T) {
	all := map[string]bool{}
	for _, needed := range requirements() {
		all[needed.file] = true
	}
	tests := map[string]struct {
		without []string
		want    []string
	}{
		"everything is there": {},
		"one package lacks two programs and is named once": {
			without: []string{"ctr", "containerd", "nft"}, want: []string{"containerd", "nftables"},
		},
		"a CNI plugin is missing": {without: []string{"ptp"}, want: []string{"containernetworking-plugins"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			host := Host{Path: []string{t.TempDir()}, PluginDirs: []string{t.TempDir()}}
			for _, needed := range requirements() {
				dir := host.Path[0]
				if needed.plugin {
					dir = host.PluginDirs[0]
				}
				if strings.Contains(" "+strings.Join(test.without, " ")+" ", " "+needed.file+" ") {
					continue
				}
				if err := os.WriteFile(filepath.Join(dir, needed.file), nil, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(test.want, host.Missing()); diff != "" {
				t.Errorf("packages (-want +got):\n%s", diff)
			}
			err := host.Check()
			if (err != nil) != (len(test.want) > 0) {
				t.Fatalf("got error %v for missing packages %v", err, test.want)
			}
			if err != nil && !strings.Contains(err.Error(), "apt-get install --yes --no-install-recommends "+strings.Join(test.want, " ")) {
				t.Errorf("the error does not say what to type: %v", err)
			}
		})
	}
}
