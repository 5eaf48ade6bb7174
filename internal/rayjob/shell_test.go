package rayjob

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-io/heliostat/test/fakecontainer"
)

// recorder stands in for a program that a script calls. As "ray job status" it says whether Ray knows the job.
const recorder = fakecontainer.Recorder + `
case "${0##*/} $1 $2" in
"ray job status") [ -e "$KNOWN" ] ;;
"ray job logs") left=$(cat "$SILENT" 2>/dev/null || echo 0) ; echo $((left - 1)) > "$SILENT" ; [ "$left" -le 0 ] ;;
esac
`

// container runs a container's command as a kubelet does.
type container struct{ *fakecontainer.Container }

// newContainer returns a container in which ray, python and sleep are recorders.
func newContainer(t *testing.T) container {
	t.Helper()
	c := container{fakecontainer.New(t, map[string]string{"HOME": "/home/ray", "RAY_JOB_SUBMISSION_ID": "expanded"})}
	c.Path = "/usr/bin:/bin"
	for _, file := range []string{"KNOWN", "SILENT", "SUBMITTED", "STATUS"} {
		c.Variables[file] = c.path(file)
	}
	for _, program := range []string{"ray", "python", "sleep"} {
		c.Install(t, program, recorder)
	}
	c.put(t, "session", anySession)
	return c
}

func (c container) path(name string) string { return filepath.Join(c.Dir, name) }

// put writes a file by which the stand-ins are told something.
func (c container) put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(c.path(name), []byte(text), 0o600); err != nil {
		t.Fatalf("writing %s: %v", name, err)
	}
}

// has tells whether there is such a file.
func (c container) has(name string) bool {
	_, err := os.Stat(c.path(name))
	return err == nil
}

// run runs the command to its end. What a volume shows to a container stands in its working directory.
func (c container) run(spec corev1.Container) (fakecontainer.Ended, error) {
	command := slices.Concat(spec.Command, spec.Args)
	for i := range command {
		command[i] = strings.ReplaceAll(command[i], admissionFile, "session")
	}
	return c.Run(command...)
}
