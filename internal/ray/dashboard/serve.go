package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

const (
	// servePath ends with a slash, which Ray insists on.
	servePath = "/api/serve/applications/"
	// DefaultServeTimeout is the time limit of PutServe. The first config starts Serve's controller and proxies, for which
	// Ray itself takes up to 60 seconds before it answers.
	DefaultServeTimeout = 70 * time.Second
	// maxServeAnswer is how much of a report of Serve is read, in bytes. It holds the whole config and every traceback of
	// every application, so it can be larger than any other answer.
	maxServeAnswer = 16 << 20
)

// Serve asks what Ray Serve runs. Before the first config, Serve is not there and the report is empty. Applications that
// a program deployed are left out where Ray tells them from those of a config (2.50 and later). The error is
//   - ErrServeSilent if Serve's controller does not answer, as while the GCS is away;
//   - ErrNoServe if Serve is not installed in the image of the head.
func (c *Client) Serve(ctx context.Context) (*ServeDetails, error) {
	ask := call{
		method: http.MethodGet, path: servePath + "?api_type=declarative", timeout: c.readTimeout, limit: maxServeAnswer,
		meanings: []meaning{
			{code: http.StatusServiceUnavailable, text: textServeSilent, kind: ErrServeSilent},
			{code: http.StatusNotImplemented, text: textNoServe, kind: ErrNoServe},
		},
	}
	body, err := c.do(ctx, ask)
	if err != nil {
		return nil, err
	}
	var answer serveAnswer
	if err := decode(ask, body, &answer); err != nil {
		return nil, err
	}
	details, err := answer.details()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ask, err)
	}
	return details, nil
}

// PutServe gives Ray Serve its whole wanted config: applications that it leaves out are removed. Success means that the
// config was taken, not that anything runs. The same config may be put again. The error is
//   - ErrRefused if Ray finds the config invalid;
//   - ErrNoServe if Serve is not installed in the image of the head.
//
// After any other error, a time-out above all, the config may have been taken or not. Serve tells.
func (c *Client) PutServe(ctx context.Context, config json.RawMessage) error {
	if len(config) == 0 {
		return errors.New("giving Ray Serve its config: the config is empty")
	}
	_, err := c.do(ctx, call{
		method: http.MethodPut, path: servePath, body: config, timeout: DefaultServeTimeout,
		meanings: []meaning{
			{code: http.StatusBadRequest, kind: ErrRefused},
			{code: http.StatusNotImplemented, text: textNoServe, kind: ErrNoServe},
		},
	})
	return err
}

// ProxyHealth asks a Serve proxy whether it takes requests, which it does if the error is nil. The base URL of the Client
// is that of the proxy, not of a dashboard; see PodURL. A proxy that is being drained, or has no replica to pass requests
// to, answers with a status other than 200, which is returned as a *StatusError.
func (c *Client) ProxyHealth(ctx context.Context) error {
	_, err := c.do(ctx, call{method: http.MethodGet, path: "/-/healthz", timeout: c.readTimeout})
	return err
}
