package dashboard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// packagesPath is where Ray keeps what was uploaded for runtime environments (spec/ray-runtime.md, section 1.1).
const packagesPath = "/api/packages/gcs/"

// MaxPackage is the size in bytes of the largest package that a dashboard takes.
const MaxPackage = 100 << 20

// errNoPackage says that Ray itself answered that it has no such package.
var errNoPackage = errors.New("the package is unknown to Ray")

// PackageURI is the URI under which a runtime environment names an uploaded package, for example
// "gcs://_ray_pkg_0123.zip".
func PackageURI(name string) string { return "gcs://" + name }

// HasPackage asks whether the Ray cluster has a package of that name. If so, Ray keeps it for the next ten minutes at least.
func (c *Client) HasPackage(ctx context.Context, name string) (bool, error) {
	ask := call{method: http.MethodGet, path: packagesPath + url.PathEscape(name), timeout: c.readTimeout, meanings: []meaning{
		{code: http.StatusNotFound, begins: "Package ", text: "does not exist", kind: errNoPackage},
	}}
	_, err := c.do(ctx, ask)
	if errors.Is(err, errNoPackage) {
		return false, nil
	}
	return err == nil, err
}

// UploadPackage stores a package of size bytes under the name. Unlike other calls it has no time limit of its own, since it
// takes as long as the connection needs; the context bounds it. An upload that failed can be repeated.
func (c *Client) UploadPackage(ctx context.Context, name string, content io.Reader, size int64) error {
	if size > MaxPackage {
		return fmt.Errorf("the package has %d bytes, Ray takes %d at most", size, int64(MaxPackage))
	}
	put := call{method: http.MethodPut, path: packagesPath + url.PathEscape(name)}
	request, err := c.request(ctx, put)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/octet-stream")
	request.Body, request.ContentLength = io.NopCloser(content), size
	response, err := c.http.Do(request)
	if err != nil {
		return c.unanswered(put, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return c.unanswered(put, fmt.Errorf("reading the answer: %w", err))
	}
	if response.StatusCode != http.StatusOK {
		return answered(put.String(), response.StatusCode, body)
	}
	return nil
}
