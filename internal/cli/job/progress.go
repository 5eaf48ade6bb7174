package job

import (
	"fmt"
	"io"
	"time"

	"github.com/heliostat-io/heliostat/internal/cli/kube"
)

// progress tells, on the stream for errors, what is going on.
type progress struct {
	out io.Writer
	now func() time.Time
	// stamped puts the time before each line.
	stamped bool
	// live tells whether a person watches, for whom a line may be written over.
	live    bool
	colored bool
	verbose bool
	last    string
}

func newProgress(env *kube.Env, f *flags) *progress {
	colored := env.Colored(env.ErrOut)
	if f.logColor != "auto" {
		colored = f.logColor == "true"
	}
	stamped := f.logStyle == "record"
	return &progress{
		out: env.ErrOut, now: env.Now, stamped: stamped, live: kube.Terminal(env.ErrOut) && !stamped, colored: colored, verbose: f.verbose,
	}
}

// say writes a line, unless it is the same as the one before.
func (p *progress) say(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if text == p.last {
		return
	}
	p.last = text
	if p.stamped {
		text = p.now().UTC().Format(time.RFC3339) + " " + text
	}
	_, _ = fmt.Fprintln(p.out, text)
}

// detail writes a line for those who want to know more.
func (p *progress) detail(format string, args ...any) {
	if p.verbose {
		p.say(format, args...)
	}
}

// connections is where to say what happens to single connections.
func (p *progress) connections() io.Writer {
	if p.verbose {
		return p.out
	}
	return io.Discard
}

const (
	green = "\x1b[32m"
	red   = "\x1b[31m"
	plain = "\x1b[0m"
)

// paint colours a word.
func (p *progress) paint(color, word string) string {
	if !p.colored {
		return word
	}
	return color + word + plain
}

// upload is a reader that draws how much was read from it.
type upload struct {
	io.Reader
	progress    *progress
	size, done  int64
	percentSeen int64
	// moved is called whenever something was read.
	moved func()
}

// Read reads and draws.
func (u *upload) Read(into []byte) (int, error) {
	n, err := u.Reader.Read(into)
	u.done += int64(n)
	u.moved()
	if percent := u.done * 100 / max(u.size, 1); u.progress.live && percent != u.percentSeen {
		u.percentSeen = percent
		u.progress.bar(percent)
	}
	return n, err
}

// barWidth is that of a full bar, in columns.
const barWidth = 40

// bar draws a bar over the one before it, and leaves the line when it is full.
func (p *progress) bar(percent int64) {
	filled := make([]byte, barWidth)
	for i := range filled {
		filled[i] = ' '
		if int64(i)*100 < percent*barWidth {
			filled[i] = '='
		}
	}
	end := ""
	if percent >= 100 {
		end = "\n"
	}
	_, _ = fmt.Fprintf(p.out, "\rUploading [%s] %3d%%%s", filled, percent, end)
}
