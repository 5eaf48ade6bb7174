package excerpt_test

import (
	"testing"

	"github.com/heliostat-io/heliostat/internal/excerpt"
)

func TestExcerpts(t *testing.T) {
	for name, test := range map[string]struct {
		given         string
		limit         int
		wantBeginning string
		wantEnd       string
	}{
		"given nothing, nothing comes of it":                   {"", 5, "", ""},
		"given a short text, all of it is kept":                {"abc", 5, "abc", "abc"},
		"given a text as long as the limit, all of it is kept": {"abcde", 5, "abcde", "abcde"},
		"given a longer text, dots stand for the rest":         {"abcdefg", 5, "ab...", "...fg"},
		"given no room beside the dots, they are all":          {"abcdefg", 3, "...", "..."},
		"given a cut through a letter, the letter goes":        {"äöüäö", 6, "ä...", "...ö"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := excerpt.Beginning(test.given, test.limit); got != test.wantBeginning {
				t.Errorf("Beginning is %q, want %q", got, test.wantBeginning)
			}
			if got := excerpt.End(test.given, test.limit); got != test.wantEnd {
				t.Errorf("End is %q, want %q", got, test.wantEnd)
			}
		})
	}
}
