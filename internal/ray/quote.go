package ray

import (
	"encoding/json"
	"regexp"
	"strings"
)

// This file turns the value of a start parameter into shell text.
//
// A value is shell text already: that is how $REDIS_PASSWORD is expanded in the container and how '{"TPU":4}' keeps
// its quotes. It may also hold references of Kubernetes, $(NAME), which the kubelet replaces before the shell runs.
// A value that was quoted well means exactly what it means as plain shell text. What plain shell text would execute
// is passed to Ray literally instead:
//
//   - Kept as they are: text within closed '…', "…" and $'…', a backslash with the character after it, $NAME, $1, $@
//     and the like, ${NAME}, and ${NAME…} with one of the operators - :- + :+ % %% # ## and a plain operand.
//   - Taken literally: ; & | ( ) < > { }, backticks, line breaks, quotes that are never closed, and a $ that begins
//     anything else, such as $(command), $((1+1)) or ${!NAME}. This holds within double quotes, too.
//   - $(NAME) is handed to the shell as a variable. If the container has no such variable, it stays the text $(NAME).
//     Thereby the content of a variable is never read as shell text, which the kubelet's own replacement would do.
//     In the value itself it stays one word, unlike $NAME.
//   - Blanks at both ends are dropped. A blank followed by - or $ ends the value, and what follows are further words
//     of the command; people add flags in that way. Other blanks belong to the value.
//   - A JSON object or array that was not quoted at all is passed as one word with its own quotes kept.
//
// The last two rules, and those on what is taken literally, concern values with which plain shell text would either
// run something or make "ray start" fail.

// refMark encloses the name of a variable that Kubernetes would put in. No argument of a program can hold this byte.
const refMark = '\x00'

var (
	kubernetesRef = regexp.MustCompile(`^\$\(([A-Za-z_][A-Za-z0-9_]*)\)`)
	// shellVariable accepts expansions that can neither run anything nor fail: no indirection (${!N}), no
	// transformation (${N@P} runs prompts), no offset (${N:M} evaluates M as arithmetic, which can run commands).
	shellVariable = regexp.MustCompile(`^\$(?:[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-]|\{[A-Za-z_][A-Za-z0-9_]*(?:(?::?[-+]|%%?|##?)[A-Za-z0-9_./:@%+,=*-]*)?\})`)
	plainKey      = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)
)

// quoteFlagValue returns shell text for a flag's value. The text may go on after the value with further flags.
func quoteFlagValue(value string) string {
	return quote(value, true)
}

// quoteWord returns shell text that is always a single word, unless a variable in it expands to several.
func quoteWord(value string) string {
	return quote(value, false)
}

// quoteKey returns shell text for the name of a flag. Nothing in it is expanded.
func quoteKey(key string) string {
	if plainKey.MatchString(key) {
		return key
	}
	return escapeKubernetesRefs(SingleQuote(strings.ReplaceAll(key, string(refMark), "")))
}

func quote(value string, mayEnd bool) string {
	value = strings.ReplaceAll(value, string(refMark), "")
	if isJSON(value) {
		value = SingleQuote(strings.TrimSpace(value))
	}
	q := quoter{in: markKubernetesRefs(value), mayEnd: mayEnd}
	for q.pos < len(q.in) {
		q.next()
	}
	return escapeKubernetesRefs(q.out.String())
}

func isJSON(value string) bool {
	trimmed := strings.TrimSpace(value)
	if !strings.HasPrefix(trimmed, "{") && !strings.HasPrefix(trimmed, "[") {
		return false
	}
	return json.Valid([]byte(trimmed))
}

// SingleQuote returns shell text for exactly this text as one word. Nothing in it is expanded by the shell; references of
// Kubernetes, which are replaced before, are not dealt with.
func SingleQuote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// markKubernetesRefs does what the kubelet does with arguments: $$ becomes $, and $(NAME) is recognized. The name is
// not replaced but put between two marks.
func markKubernetesRefs(value string) string {
	var out strings.Builder
	for i := 0; i < len(value); {
		rest := value[i:]
		switch {
		case strings.HasPrefix(rest, "$$"):
			out.WriteByte('$')
			i += 2
		case kubernetesRef.MatchString(rest):
			name := kubernetesRef.FindStringSubmatch(rest)[1]
			out.WriteByte(refMark)
			out.WriteString(name)
			out.WriteByte(refMark)
			i += len("$()") + len(name)
		case strings.HasPrefix(rest, "$(") && strings.Contains(rest, ")"):
			// The kubelet gives back what it does not know as a whole, with every $$ in it.
			end := strings.IndexByte(rest, ')') + 1
			out.WriteString(rest[:end])
			i += end
		default:
			out.WriteByte(value[i])
			i++
		}
	}
	return out.String()
}

// escapeKubernetesRefs writes every $ that the kubelet would take for its own as $$.
func escapeKubernetesRefs(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		out.WriteByte(text[i])
		if text[i] == '$' && i+1 < len(text) && (text[i+1] == '$' || text[i+1] == '(') {
			out.WriteByte('$')
		}
	}
	return out.String()
}

// quoter reads a value from left to right. It is always outside quotes between two calls of next.
type quoter struct {
	in     string
	pos    int
	out    strings.Builder
	mayEnd bool
	// ended is true once the value is over and further words follow.
	ended bool
}

func (q *quoter) next() {
	c := q.in[q.pos]
	switch {
	case c == refMark && q.ended:
		q.reference("")
	case c == refMark:
		q.reference(`"`)
	case c == '\'':
		q.quoted(len("'"), "'", "'", false)
	case c == '"':
		q.quoted(len(`"`), `"`, `"`, true)
	case c == '\\':
		q.backslash()
	case c == '$':
		q.dollar()
	case c == '\n':
		q.lineBreak()
	case c == ' ' || c == '\t':
		q.blanks()
	case strings.IndexByte(";&|()<>{}`", c) >= 0, c == '#' && q.atWordStart():
		q.literal()
	default:
		q.out.WriteByte(c)
		q.pos++
	}
}

func (q *quoter) literal() {
	q.out.WriteByte('\\')
	q.out.WriteByte(q.in[q.pos])
	q.pos++
}

func (q *quoter) atWordStart() bool {
	return q.ended && strings.HasSuffix(q.out.String(), " ")
}

// backslash keeps the pair of a backslash and the character after it.
func (q *quoter) backslash() {
	q.pos++
	switch {
	case q.pos == len(q.in):
		q.out.WriteString(`\\`)
	case q.in[q.pos] == refMark:
		// A reference protects itself from the shell: the backslash has done its work.
	default:
		q.out.WriteByte('\\')
		q.out.WriteByte(q.in[q.pos])
		q.pos++
	}
}

func (q *quoter) dollar() {
	rest := q.in[q.pos:]
	switch variable := shellVariable.FindString(rest); {
	case variable != "":
		q.out.WriteString(variable)
		q.pos += len(variable)
	case strings.HasPrefix(rest, "$'"):
		q.quoted(len("$'"), "$'", "'", true)
	case strings.HasPrefix(rest, `$"`) && closingQuote(rest[2:], '"', true) >= 0:
		// The shell would look for a translation of such a text; without one it means the same as without the $.
		q.pos++
	default:
		q.literal()
	}
}

func (q *quoter) lineBreak() {
	if strings.Trim(q.in[q.pos:], " \t\n") != "" && q.out.Len() > 0 {
		q.out.WriteString("'\n'")
	}
	q.pos++
}

func (q *quoter) blanks() {
	rest := strings.TrimLeft(q.in[q.pos:], " \t")
	blanks := q.in[q.pos : len(q.in)-len(rest)]
	q.pos += len(blanks)
	switch {
	case strings.Trim(rest, " \t\n") == "":
	case q.ended, q.mayEnd && strings.IndexByte("-$\x00", rest[0]) >= 0:
		q.ended = true
		q.out.WriteByte(' ')
	case q.out.Len() > 0:
		q.out.WriteString(SingleQuote(blanks))
	}
}

// quoted copies text within quotes; opening and closing are its marks, and escapes says whether a backslash in it
// protects the character after it. A quote that is never closed is taken literally.
func (q *quoter) quoted(skip int, opening, closing string, escapes bool) {
	start := q.pos + skip
	length := closingQuote(q.in[start:], closing[0], escapes)
	if length < 0 {
		for range skip {
			q.literal()
		}
		return
	}
	q.out.WriteString(opening)
	q.pos = start
	for q.pos < start+length {
		switch c := q.in[q.pos]; {
		case c == refMark && closing == `"`:
			q.reference("")
		case c == refMark:
			q.out.WriteString(closing)
			q.reference(`"`)
			q.out.WriteString(opening)
		case c == '\\' && escapes:
			q.backslash()
		case c == '$' && closing == `"`:
			q.dollarInDoubleQuotes()
		case c == '`' && closing == `"`:
			q.literal()
		default:
			q.out.WriteByte(c)
			q.pos++
		}
	}
	q.out.WriteString(closing)
	q.pos = start + length + len(closing)
}

func (q *quoter) dollarInDoubleQuotes() {
	variable := shellVariable.FindString(q.in[q.pos:])
	if variable == "" {
		q.literal()
		return
	}
	q.out.WriteString(variable)
	q.pos += len(variable)
}

// reference writes the shell's expansion of the variable whose name stands between two marks, within the given quotes.
func (q *quoter) reference(quotes string) {
	name := q.in[q.pos+1:]
	name = name[:strings.IndexByte(name, refMark)]
	q.pos += len(name) + 2
	q.out.WriteString(quotes + "${" + name + `-\$(` + name + ")}" + quotes)
}

// closingQuote returns where the quote is closed in text, or -1.
func closingQuote(text string, quote byte, escapes bool) int {
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == quote:
			return i
		case text[i] == '\\' && escapes:
			i++
		}
	}
	return -1
}
