package dashboard_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
)

func TestHasPackageBelievesOnlyRay(t *testing.T) {
	cases := map[string]struct {
		code    int
		body    string
		want    bool
		wantErr bool
	}{
		"given Ray has the package, then it is there":                        {200, "", true, false},
		"given Ray says that it has not, then it is not there":               {404, "Package gcs://p.zip does not exist", false, false},
		"given something else answers 404, then nothing is known":            {404, "page not found", false, true},
		"given the API server answers in Ray's stead, then nothing is known": {404, `{"kind":"Status","message":"Package gone"}`, false, true},
		"given Ray fails, then nothing is known":                             {500, "Traceback", false, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := answering(t, tc.code, tc.body).HasPackage(t.Context(), "p.zip")
			if got != tc.want || (err != nil) != tc.wantErr {
				t.Errorf("HasPackage = %v, %v; want %v and an error: %v", got, err, tc.want, tc.wantErr)
			}
		})
	}
}

func TestUploadPackageSendsTheBytes(t *testing.T) {
	var path, kind, auth, extra, body string
	var length int64
	transport := &dashboard.Headers{Base: &http.Transport{DisableKeepAlives: true}, Header: http.Header{"X-Extra": {"yes"}}}
	client := serving(t, func(_ http.ResponseWriter, r *http.Request) {
		content, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		path, kind, body, length = r.URL.Path, r.Header.Get("Content-Type"), string(content), r.ContentLength
		auth, extra = r.Header.Get("X-Ray-Authorization"), r.Header.Get("X-Extra")
	}, dashboard.WithToken(token("secret", nil)), dashboard.WithHTTPClient(&http.Client{Transport: transport}))

	if err := client.UploadPackage(t.Context(), "_ray_pkg_1.zip", strings.NewReader("zip"), 3); err != nil {
		t.Fatal(err)
	}
	if path != "/api/packages/gcs/_ray_pkg_1.zip" || kind != "application/octet-stream" || body != "zip" || length != 3 {
		t.Errorf("PUT %s (%s): %q, %d bytes", path, kind, body, length)
	}
	if auth != "Bearer secret" || extra != "yes" {
		t.Errorf("the token was sent as %q, the extra header as %q", auth, extra)
	}
}

func TestUploadPackageSaysWhyItFailed(t *testing.T) {
	client := answering(t, 500, "Traceback (most recent call last):\nRuntimeError: no room in the store")
	err := client.UploadPackage(t.Context(), "p.zip", strings.NewReader("zip"), 3)
	var status *dashboard.StatusError
	if !errors.As(err, &status) || status.Code != 500 || !strings.Contains(err.Error(), "no room in the store") {
		t.Errorf("UploadPackage returned %v", err)
	}
}

func TestAPackageThatIsTooLargeIsNotSent(t *testing.T) {
	client := serving(t, func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") })
	if err := client.UploadPackage(t.Context(), "p.zip", strings.NewReader(""), dashboard.MaxPackage+1); err == nil {
		t.Error("UploadPackage took it")
	}
}
