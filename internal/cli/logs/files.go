package logs

import (
	"context"
	"errors"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-io/heliostat/internal/cli/podexec"
)

// logsOfRay is where Ray keeps its logs.
const logsOfRay = "/tmp/ray/session_latest/logs"

// printFilesScript prints the last $2 lines of all files in the directory $1, with a title before those of each.
const printFilesScript = `
cd "$1" || exit 1
lines=$2
set -- $(ls -d *.log *.out *.err 2>/dev/null)
[ $# -gt 0 ] || exit 0
exec tail -v -n "$lines" -- "$@"`

// followFilesScript does the same, and every $3 seconds it prints what has come since, also of files that were made
// meanwhile; of these it prints everything. It waits for the directory. A file that was replaced or cut is printed from its
// beginning. tail -F does that for the files only that are there when it begins, and so would have to be run for each new
// one. From time to time a title is printed again: writing is the only way to notice that nobody listens any more.
const followFilesScript = `
until cd "$1" 2>/dev/null; do printf "\n==> - <==\n"; sleep "$3"; done
exec awk -v lines="$2" -v pause="$3" '
function show(file, command) {
	if (file != shown) printf "\n==> %s <==\n", file
	shown = file
	fflush()
	system(command)
	quiet = 0
}
BEGIN {
	quote = "\047"
	list = "stat -L -c \"%i %s %n\" -- *.log *.out *.err 2>/dev/null"
	for (first = 1; ; first = 0) {
		while ((list | getline) > 0) {
			inode = $1; size = $2 + 0
			file = substr($0, length($1) + length($2) + 3)
			if (index(file, quote)) continue
			name = " -- " quote file quote
			if (!(file in at)) {
				at[file] = 0
				if (first && size > 0) {
					show(file, "head -c " sprintf("%.0f", size) name " | tail -n " lines)
					at[file] = size
				}
			} else if (inode != is[file] || size < at[file]) {
				at[file] = 0
			}
			if (size > at[file]) show(file, "tail -c +" sprintf("%.0f", at[file] + 1) name " | head -c " sprintf("%.0f", size - at[file]))
			is[file] = inode
			at[file] = size
		}
		close(list)
		if (++quiet % 10 == 0) {
			printf "\n==> %s <==\n", shown == "" ? "-" : shown
			fflush()
		}
		if (system("sleep " pause) != 0) exit 1
	}
}'`

// lookPause is the time between looks at the files of Ray, in seconds.
const lookPause = "1"

// fromLine is the argument of tail for the last lines of a file.
func fromLine(tail int64) string {
	if tail == everything {
		return "+1"
	}
	return strconv.FormatInt(tail, 10)
}

// printFilesCommand prints the files in which Ray and its jobs log.
func printFilesCommand(directory string, tail int64) []string {
	return []string{"sh", "-c", printFilesScript, "logs", directory, fromLine(tail)}
}

// followFilesCommand prints them, and goes on.
func followFilesCommand(directory string, tail int64, pause string) []string {
	return []string{"sh", "-c", followFilesScript, "logs", directory, fromLine(tail), pause}
}

// printFiles writes the files of Ray, Pod after Pod: their lines have no times by which they could be put in order.
func (r *reader) printFiles(ctx context.Context, pods []corev1.Pod) error {
	var failures []error
	for i := range pods {
		if err := r.files(ctx, &pods[i], r.chosen.containerOf(&pods[i]), printFilesCommand(logsOfRay, r.options.tail)); err != nil {
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}

// files writes what a command prints in a Pod that prints files with titles.
func (r *reader) files(ctx context.Context, pod *corev1.Pod, container string, command []string) error {
	files := &titled{each: func(file, line string) error { return r.printer.line(pod.Name+" "+file, line) }}
	out := &lines{each: files.line}
	name := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
	err := podexec.Run(ctx, r.config, name, container, command, out)
	return errors.Join(err, out.flush(), files.flush())
}
