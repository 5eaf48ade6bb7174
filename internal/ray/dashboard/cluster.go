package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"strings"
)

// Version is what a Ray cluster says about itself.
type Version struct {
	// Protocol is the version of the job API, a whole number in text, such as "4".
	Protocol string `json:"version"`
	// Ray is the version of Ray that runs, such as "2.52.0". It is the truth where spec.rayVersion is only a claim.
	Ray string `json:"ray_version"`
	// Commit is the source revision that Ray was built from.
	Commit string `json:"ray_commit"`
	// Session names one life of the cluster's head. It changes when a head is replaced without fault tolerance of the
	// GCS, and with it all records of jobs are gone; with fault tolerance it stays. Ray 2.46 and later tell it.
	Session string `json:"session_name"`
}

// Version asks which Ray answers. It fails with ErrUnexpectedAnswer if what answers is not Ray.
func (c *Client) Version(ctx context.Context) (Version, error) {
	ask := call{method: http.MethodGet, path: "/api/version", timeout: c.readTimeout}
	body, err := c.do(ctx, ask)
	if err != nil {
		return Version{}, err
	}
	var version Version
	if err := decode(ask, body, &version); err != nil {
		return Version{}, err
	}
	if version.Ray == "" {
		return Version{}, fmt.Errorf("%s: %w: it names no Ray version", ask, ErrUnexpectedAnswer)
	}
	return version, nil
}

// Healthy returns nil if the dashboard answers and reaches the GCS of its cluster. It needs no token.
func (c *Client) Healthy(ctx context.Context) error {
	ask := call{method: http.MethodGet, path: "/api/gcs_healthz", timeout: c.readTimeout}
	body, err := c.do(ctx, ask)
	if err != nil {
		return err
	}
	if !strings.Contains(string(body), "success") {
		return fmt.Errorf("%s: %w: %q", ask, ErrUnexpectedAnswer, shorten(string(body)))
	}
	return nil
}
