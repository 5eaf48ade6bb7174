package proc

import (
	"fmt"
	"io"
	"os"
	"strings"
)

const (
	tailLines = 15
	tailBytes = 16 << 10
	tailWidth = 400
)

// lastLines returns the end of a log, ready to stand behind an error message.
func lastLines(name, file string) string {
	lines, err := tail(file)
	if err != nil {
		return fmt.Sprintf("\n(its log cannot be read: %v)", err)
	}
	if len(lines) == 0 {
		return fmt.Sprintf("\n(its log %s is empty)", file)
	}
	return fmt.Sprintf("\nlast lines of %s (%s):\n  %s", name, file, strings.Join(lines, "\n  "))
}

// tail returns the last lines of a file, each cut to a readable width.
func tail(file string) ([]string, error) {
	opened, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	info, err := opened.Stat()
	if err != nil {
		return nil, err
	}
	from := max(0, info.Size()-tailBytes)
	raw, err := io.ReadAll(io.NewSectionReader(opened, from, tailBytes))
	if err != nil {
		return nil, err
	}
	text := strings.TrimRight(string(raw), "\n")
	if text == "" {
		return nil, nil
	}
	lines := strings.Split(text, "\n")
	if from > 0 && len(lines) > 1 {
		// The first one is most likely the end of a line.
		lines = lines[1:]
	}
	lines = lines[max(0, len(lines)-tailLines):]
	for i, line := range lines {
		if len(line) > tailWidth {
			lines[i] = line[:tailWidth] + "..."
		}
	}
	return lines, nil
}
