// Package screen lays out text for people: colours, wrapped paragraphs, tables, and screens that are drawn again.
package screen

import (
	"strings"
	"unicode/utf8"
)

// Style is how to write on one stream.
type Style struct {
	// Colored tells whether to use colours.
	Colored bool
	// Width is the number of columns.
	Width int
}

// The few ANSI sequences that are used: colour is for trouble only.
const (
	reset  = "\x1b[0m"
	bold   = "\x1b[1m"
	red    = "\x1b[31m"
	yellow = "\x1b[33m"
)

func (s Style) in(code, text string) string {
	if !s.Colored {
		return text
	}
	return code + text + reset
}

// Bold makes text stand out.
func (s Style) Bold(text string) string { return s.in(bold, text) }

// Bad is for what needs somebody.
func (s Style) Bad(text string) string { return s.in(red, text) }

// Worrying is for what may pass.
func (s Style) Worrying(text string) string { return s.in(yellow, text) }

// minimum is the least number of columns in which a paragraph is laid out. A narrower screen wraps it by itself.
const minimum = 30

// Paragraph lays text out behind a label, wrapped at words, with the lines after the first one indented as far as the
// text of the first.
func (s Style) Paragraph(label, text string) string {
	indent := strings.Repeat(" ", utf8.RuneCountInString(label))
	room := max(s.Width-len(indent), minimum)
	lines := wrap(text, room)
	return label + strings.Join(lines, "\n"+indent) + "\n"
}

// wrap breaks text into lines of at most width runes. A word that is longer stands alone. What fits stays as it is.
func wrap(text string, width int) []string {
	if utf8.RuneCountInString(text) <= width {
		return []string{text}
	}
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	return append(lines, line)
}
