// Package excerpt shortens texts for places that take only so many bytes.
package excerpt

import "strings"

const dots = "..."

// Beginning keeps the beginning of a text that is longer than limit, in bytes, and puts three dots where the rest was. It is
// for sentences of ours and of the API server, which say first what is wrong. The limit must be at least 3.
func Beginning(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len(dots)], "") + dots
}

// End keeps the end of a text that is longer than limit, in bytes, and puts three dots where the rest was. It is for logs,
// whose last lines tell most. The limit must be at least 3.
func End(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return dots + strings.ToValidUTF8(text[len(text)-limit+len(dots):], "")
}
