package logs

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"time"
)

// printer writes whole lines, of many Pods at once.
type printer struct {
	mu  sync.Mutex
	out io.Writer
}

// line writes one line with where it comes from.
func (p *printer) line(from, text string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err := fmt.Fprintf(p.out, "[%s] %s\n", from, text)
	return err
}

// longestLine is where a line without an end is cut, in bytes.
const longestLine = 1 << 20

// lines hands on what is written to it line by line.
type lines struct {
	rest []byte
	each func(line string) error
}

// Write hands on the lines that are whole.
func (l *lines) Write(text []byte) (int, error) {
	l.rest = append(l.rest, text...)
	for {
		end := bytes.IndexByte(l.rest, '\n')
		next := end + 1
		if end < 0 {
			if len(l.rest) < longestLine {
				return len(text), nil
			}
			end, next = longestLine, longestLine
		}
		line := strings.TrimSuffix(string(l.rest[:end]), "\r")
		l.rest = l.rest[next:]
		if err := l.each(line); err != nil {
			return 0, err
		}
	}
}

// flush hands on the last line, which had no end.
func (l *lines) flush() error {
	if len(l.rest) == 0 {
		return nil
	}
	line := string(l.rest)
	l.rest = nil
	return l.each(line)
}

// timed splits the time that Kubernetes puts before a line from the line.
func timed(line string) (time.Time, string) {
	stamp, text, found := strings.Cut(line, " ")
	at, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil {
		return time.Time{}, line
	}
	if !found {
		text = ""
	}
	return at, text
}

// titled reads what "tail -v" writes of several files: before the lines of a file stands its name, and before that an empty
// line.
type titled struct {
	file  string
	empty bool
	each  func(file, line string) error
}

// title is how tail names a file.
var title = regexp.MustCompile(`^==> (.+) <==$`)

// line takes one line.
func (t *titled) line(text string) error {
	if name := title.FindStringSubmatch(text); name != nil {
		t.file, t.empty = name[1], false
		return nil
	}
	if err := t.flush(); err != nil {
		return err
	}
	if text == "" {
		t.empty = true // It may belong to the next title.
		return nil
	}
	return t.each(t.file, text)
}

// flush hands on an empty line that was held back.
func (t *titled) flush() error {
	if !t.empty {
		return nil
	}
	t.empty = false
	return t.each(t.file, "")
}
