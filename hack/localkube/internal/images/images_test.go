package images

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseLddFindsLibrariesAndLoader(t *testing.T) {
	const output = `	linux-vdso.so.1 (0x00007ffd1d9f2000)
	libresolv.so.2 => /lib/x86_64-linux-gnu/libresolv.so.2 (0x00007f2b0c6c4000)
	libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f2b0c4e3000)
	/lib64/ld-linux-x86-64.so.2 (0x00007f2b0c7a9000)
`
	want := []string{"/lib/x86_64-linux-gnu/libresolv.so.2", "/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"}
	if diff := cmp.Diff(want, parseLdd(output)); diff != "" {
		t.Errorf("libraries (-want +got):\n%s", diff)
	}
}
