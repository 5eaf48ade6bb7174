package dashboard_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
)

func TestErrorsAreShortAndNameTheCause(t *testing.T) {
	frames := strings.Repeat("  File \"job_head.py\", line 1, in x\n    return await something()\n", 40)
	cases := map[string]struct {
		body string
		want string
	}{
		"of a traceback the exception is kept": {
			body: "Traceback (most recent call last):\n" + frames + "TypeError: got an unexpected keyword argument 'foo'\n",
			want: "TypeError: got an unexpected keyword argument 'foo'",
		},
		"of a traceback inside another the innermost exception is kept": {
			body: "Traceback (most recent call last):\n" + frames + "RuntimeError: Request failed with status code 400: Traceback (most recent call last):\n" +
				frames + "ray.exceptions.X: no\nsecond line\n.",
			want: "ray.exceptions.X: no\nsecond line",
		},
		"a traceback without an exception is cut like any text": {
			body: "Traceback (most recent call last) " + strings.Repeat("é", 600),
			want: "Traceback (most recent call last) " + strings.Repeat("é", 237) + " ...",
		},
		"bytes that are no text are replaced": {body: "a\xffb", want: "a?b"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := answering(t, 500, tc.body).GetJob(t.Context(), "j1")
			var status *dashboard.StatusError
			if !errors.As(err, &status) {
				t.Fatalf("error is %v", err)
			}
			if diff := cmp.Diff(tc.want, status.Text); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
			if len(status.Text) > 512 {
				t.Errorf("the text has %d bytes", len(status.Text))
			}
		})
	}
}
