package diagnose

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// withLastWords adds the end of a log to the evidence, unless it stands there already.
func withLastWords(message, log string) string {
	last := lastWords(log)
	if last == "" || strings.Contains(message, last) {
		return message
	}
	return message + fmt.Sprintf("; its log ends with %q", last)
}

// lastWords are the last line of a log that says anything, without what changes each time that it is written.
func lastWords(log string) string {
	lines := strings.Split(log, "\n")
	for _, line := range slices.Backward(lines) {
		if line = timeless(oneLine(line)); line != "" {
			return cut(line)
		}
	}
	return ""
}

// loggedAt are the ways in which programs begin a line with the time, and Ray with the process, too: "[2026-11-30 12:00:00,123 E 1 1]",
// "2026-11-30T12:00:00.1Z", "12:00:00", "E1130 12:00:00.123456 12" and "(raylet pid=12, ip=10.0.0.1)".
var loggedAt = regexp.MustCompile(`^(?:\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d[^\s\]]*(?: [A-Z] \d+ \d+)?\]?|\[?\d\d:\d\d:\d\d[^\s\]]*\]?|` +
	`[IWEF]\d{4} \d\d:\d\d:\d\d\S* \d+|\([^()]*pid=[^()]*\)|\[\d+\]):?(?: |$)`)

// timeless is a line of a log without the times and processes at its beginning.
func timeless(line string) string {
	for {
		at := loggedAt.FindStringIndex(line)
		if at == nil {
			return line
		}
		line = line[at[1]:]
	}
}

// cut keeps the end of a text that is too long.
func cut(text string) string {
	if len(text) <= maxText {
		return text
	}
	return "..." + strings.ToValidUTF8(text[len(text)-maxText:], "")
}
