package ray

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/heliostat-io/heliostat/test/fakecontainer"
)

// hostile is the content of a variable that would do harm if the shell read it as part of the line.
const hostile = "a'b\"c; canary & $(canary) `canary` \\"

func variablesOfTests() map[string]string {
	return map[string]string{"PLAIN": "p1", "BLANKS": "two words", "HOSTILE": hostile, "INDIRECT": "x[$(canary)]"}
}

func TestQuoteFlagValue(t *testing.T) {
	tests := map[string]struct {
		value string
		// text is the rendered shell text; it is compared when not empty.
		text string
		// want are the words that Ray gets, of which the first is the value.
		want []string
	}{
		"plain text stays as it is":                         {value: "0.0.0.0", text: "0.0.0.0", want: []string{"0.0.0.0"}},
		"an empty value stays empty":                        {value: "", want: []string{""}},
		"a variable stays a variable":                       {value: "$PLAIN", text: "$PLAIN", want: []string{"p1"}},
		"a variable in braces stays one":                    {value: "${PLAIN}", text: "${PLAIN}", want: []string{"p1"}},
		"a default of a variable is kept":                   {value: "${NONE:-4}", text: "${NONE:-4}", want: []string{"4"}},
		"JSON in single quotes stays as it is":              {value: `'{"TPU":4}'`, text: `'{"TPU":4}'`, want: []string{`{"TPU":4}`}},
		"JSON with escaped quotes stays as it is":           {value: `"{\"Custom\": 2}"`, text: `"{\"Custom\": 2}"`, want: []string{`{"Custom": 2}`}},
		"JSON without any quoting keeps its quotes":         {value: `{"a": 1, "b": 2}`, want: []string{`{"a": 1, "b": 2}`}},
		"JSON with a single quote inside keeps it":          {value: `{"it's": 1}`, want: []string{`{"it's": 1}`}},
		"JSON with escaped quotes only":                     {value: `{\"a\":1,\"b\": 2}`, want: []string{`{"a":1,"b": 2}`}},
		"a variable in double quotes is one word":           {value: `"$BLANKS"`, want: []string{"two words"}},
		"content of a variable is never run":                {value: `"$HOSTILE"`, want: []string{hostile}},
		"a reference of Kubernetes is a variable":           {value: "$(PLAIN)", want: []string{"p1"}},
		"content of a reference is never run":               {value: "$(HOSTILE)", want: []string{hostile}},
		"content of a reference within quotes is never run": {value: `x'$(HOSTILE)'"$(HOSTILE)"`, want: []string{"x" + hostile + hostile}},
		"a reference to nothing stays text":                 {value: "$(NONE)", want: []string{"$(NONE)"}},
		"a reference with a dot stays text":                 {value: "$(my.name)", want: []string{"$(my.name)"}},
		"an escaped reference stays text":                   {value: "'$$(PLAIN)'", want: []string{"$(PLAIN)"}},
		"a doubled dollar is one dollar":                    {value: "'a$$b'", want: []string{"a$b"}},
		"a semicolon belongs to the value":                  {value: "1; canary", want: []string{"1; canary"}},
		"a command in parentheses belongs to the value":     {value: "$(canary x)", want: []string{"$(canary x)"}},
		"a command in double quotes stays text":             {value: "\"`canary` $(canary -x)\"", want: []string{"`canary` $(canary -x)"}},
		"backticks belong to the value":                     {value: "`canary`", want: []string{"`canary`"}},
		"arithmetic stays text":                             {value: "$((1+1))$[1+1]", want: []string{"$((1+1))$[1+1]"}},
		"an indirect expansion stays text":                  {value: `"${!PLAIN}${PLAIN@P}"`, want: []string{"${!PLAIN}${PLAIN@P}"}},
		"a redirection belongs to the value":                {value: "a>b<c", want: []string{"a>b<c"}},
		"a line break belongs to the value":                 {value: "a\ncanary", want: []string{"a\ncanary"}},
		"blanks and line breaks around are dropped":         {value: " 4 \n", text: "4", want: []string{"4"}},
		"a blank inside belongs to the value":               {value: "/my dir", want: []string{"/my dir"}},
		"a tab inside belongs to the value":                 {value: "/my\tdir", want: []string{"/my\tdir"}},
		"a quote that is never closed stays text":           {value: "it's", want: []string{"it's"}},
		"a double quote that is never closed stays text":    {value: `5"$(canary)`, want: []string{`5"$(canary)`}},
		"a backslash at the end stays text":                 {value: `a\`, want: []string{`a\`}},
		"further flags after a blank stay flags":            {value: "4 --temp-dir /x --y='a b'", want: []string{"4", "--temp-dir", "/x", "--y=a b"}},
		"a command after further flags is not run":          {value: "4 --x; canary # z", want: []string{"4", "--x;", "canary", "#", "z"}},
		"C style quotes are kept":                           {value: `$'a\tb\'c'`, text: `$'a\tb\'c'`, want: []string{"a\tb'c"}},
		"quotes for translation are double quotes":          {value: `$"a b"`, text: `"a b"`, want: []string{"a b"}},
	}
	shell := newContainer(t, variablesOfTests())
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			text := quoteFlagValue(test.value)
			if test.text != "" && text != test.text {
				t.Errorf("text is %s, want %s", text, test.text)
			}
			got := shell.run("ray start --k=" + text + " --end")
			want := slices.Concat([]string{"start", "--k=" + test.want[0]}, test.want[1:], []string{"--end"})
			assertOneCall(t, got, text)
			if diff := cmp.Diff([][]string{want}, got.calls); diff != "" {
				t.Errorf("Ray got other arguments from %s (-want +got):\n%s", text, diff)
			}
		})
	}
}

// failer is what *testing.T and *rapid.T have in common.
type failer interface {
	Helper()
	Errorf(format string, args ...any)
}

func assertOneCall(t failer, got result, line string) {
	t.Helper()
	if got.err != nil || got.stderr != "" || got.commands != 1 || len(got.calls) != 1 {
		t.Errorf("%q: the shell ran %d commands, called Ray %d times, wrote %q to stderr, error %v; want one call of Ray and nothing else",
			line, got.commands, len(got.calls), got.stderr, got.err)
	}
}

// Whatever users write into parameters, the shell runs Ray and nothing but Ray.
func TestParametersCannotRunCommands(t *testing.T) {
	tokens := []string{
		";", "&", "&&", "|", "`", "$(", "$((", "))", ")", "(", "<", ">", "<(", "\n", " ", "\t", "'", `"`, `\`, "$", "$$",
		"${", "}", "{", ",", "[", "]", "$[", "#", "~", "*", "?", "!", "=", "-", ":", "%", "@P", "canary", "a", "--x", "é",
		"$HOSTILE", "$(HOSTILE)", "${HOSTILE}", "${HOSTILE@P}", "${!INDIRECT}", "${PLAIN:INDIRECT}", "$PLAIN", "$(NONE)", "$'", `\'`, "\r", "\x00", "\x01",
		`{"a":`, "1}", "true", "exit", "eval ", "IFS=x ", "\\\n", "${NONE:-", "$((x[", "$(PLAIN",
	}
	value := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(tokens), 0, 12).Draw(t, "tokens"), "")
	})
	shell := newContainer(t, variablesOfTests())
	rapid.Check(t, func(t *rapid.T) {
		params := map[string]string{}
		for i, v := range rapid.SliceOfN(value, 1, 6).Draw(t, "values") {
			params[fmt.Sprintf("k%d", i)] = v
		}
		params[value.Draw(t, "key")] = value.Draw(t, "value of the key")
		line := StartCommand(Worker, params)
		got := shell.run(line)
		assertOneCall(t, got, line)
	})
}

// A value that is quoted well means what it would mean as plain shell text.
func TestWellQuotedValuesMeanWhatTheShellMeans(t *testing.T) {
	safe := rapid.StringMatching(`[A-Za-z0-9_./:@%+,=^*?\[\]-]{1,5}`)
	inSingle := rapid.StringMatching(`[ -&(-~é\n]{0,8}`)
	inDouble := rapid.SampledFrom([]string{
		"a", " ", ";", "&", "|", "(", ")", "<", ">", "\n", "'", "{", "}", "#", `\"`, `\\`, `\$.`, "\\`", `\x`, "$ ", "$.",
		"$PLAIN", "${PLAIN}", "$BLANKS", "$HOSTILE", "${NONE:-x}", "${PLAIN%1}", "-$(PLAIN)", "-$(BLANKS)", "$$.", "$NONE",
	})
	escaped := rapid.StringMatching(`[ -#%-~]`)
	inC := rapid.SampledFrom([]string{"a", `\n`, `\x41`, `\'`, `"`, "$PLAIN", "$$", ";", "$(NONE)", "$(BLANKS)"})
	segment := rapid.Custom(func(t *rapid.T) string {
		switch rapid.IntRange(0, 6).Draw(t, "kind of segment") {
		case 0:
			return safe.Draw(t, "plain")
		case 1:
			return "'" + inSingle.Draw(t, "in single quotes") + rapid.SampledFrom([]string{"", "$(NONE)", "$(BLANKS)"}).Draw(t, "reference") + "'"
		case 2:
			return `"` + strings.Join(rapid.SliceOfN(inDouble, 0, 6).Draw(t, "in double quotes"), "") + `"`
		case 3:
			return `\` + escaped.Draw(t, "escaped")
		case 4:
			return "$'" + strings.Join(rapid.SliceOfN(inC, 0, 4).Draw(t, "in C quotes"), "") + "'"
		case 5:
			return rapid.SampledFrom([]string{"$PLAIN", "${PLAIN}", "$BLANKS", "${NONE-a}", "-$(PLAIN)", "$NONE", "$HOSTILE"}).Draw(t, "variable")
		default:
			return rapid.SampledFrom([]string{" --more=1", " -v", "  $PLAIN", " --dir '/a b'"}).Draw(t, "further words")
		}
	})
	shell := newContainer(t, variablesOfTests())
	rapid.Check(t, func(t *rapid.T) {
		values := map[string]string{}
		for i, segments := range rapid.SliceOfN(rapid.SliceOfN(segment, 1, 5), 1, 5).Draw(t, "values") {
			values[fmt.Sprintf("k%d", i)] = "v" + strings.Join(segments, "")
		}
		var raw, ours strings.Builder
		for _, key := range slices.Sorted(maps.Keys(values)) {
			// Each value is expanded alone: an open $( in one would otherwise reach into the next.
			fmt.Fprintf(&raw, " --%s=%s", key, fakecontainer.Expand(values[key], shell.Variables))
			fmt.Fprintf(&ours, " --%s=%s", key, quoteFlagValue(values[key]))
		}
		got := shell.runExpanded("ray start" + raw.String() + " \n ray start" + fakecontainer.Expand(ours.String(), shell.Variables))
		if got.err != nil || got.stderr != "" || got.commands != 2 || len(got.calls) != 2 {
			t.Fatalf("the values are not quoted well: %q: %d commands, %d calls, %q, %v", values, got.commands, len(got.calls), got.stderr, got.err)
		}
		if diff := cmp.Diff(got.calls[0], got.calls[1]); diff != "" {
			t.Errorf("%q became %q (-plain shell text +ours):\n%s", raw.String(), ours.String(), diff)
		}
	})
}
