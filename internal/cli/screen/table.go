package screen

import (
	"bytes"
	"strings"

	"k8s.io/cli-runtime/pkg/printers"
)

// Table lays rows out in columns, as kubectl does. The first row is the head.
func Table(rows [][]string) string {
	var text bytes.Buffer
	w := printers.GetNewTabWriter(&text)
	for _, row := range rows {
		// A bytes.Buffer takes everything.
		_, _ = w.Write([]byte(strings.Join(row, "\t") + "\n"))
	}
	_ = w.Flush()
	lines := strings.Split(text.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}
