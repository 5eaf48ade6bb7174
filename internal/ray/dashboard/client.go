package dashboard

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// DefaultReadTimeout is the time limit of calls that change nothing. The first call after the start of a head takes
	// Ray 4 to 5 seconds, because its agent connects to Ray only then.
	DefaultReadTimeout = 5 * time.Second
	// DefaultWriteTimeout is the time limit of calls that change something. It is generous, since giving up on a write
	// that Ray goes on to perform leaves its outcome unknown.
	DefaultWriteTimeout = 30 * time.Second

	// authHeader carries the token. Ray takes it beside the usual Authorization header, which proxies in between are
	// known to swallow.
	authHeader = "x-ray-authorization"
	// userAgent must not look like a browser: Ray refuses writes of those.
	userAgent = "heliostat"
	// maxAnswer is how much of an answer is read, in bytes, unless the call says otherwise.
	maxAnswer = 1 << 20
)

// Client calls the dashboard of one Ray cluster. It is safe for concurrent use and holds no state beyond its settings.
type Client struct {
	base         string
	http         *http.Client
	token        TokenSource
	readTimeout  time.Duration
	writeTimeout time.Duration
}

// Option changes a setting of a Client.
type Option func(*Client)

// WithHTTPClient makes the Client use the transport, cookie jar and time limit of c. Redirects stay refused.
// The default is a client of its own for every Client; share one made by NewHTTPClient to share its connections.
func WithHTTPClient(c *http.Client) Option {
	return func(client *Client) {
		own := *c
		client.http = &own
	}
}

// TokenSource finds the token to send. It is asked before each call, within the time limit of the call.
type TokenSource func(ctx context.Context) (string, error)

// WithToken makes the Client send a token with every call. By default, and when the source is nil, it sends none.
func WithToken(source TokenSource) Option {
	return func(client *Client) { client.token = source }
}

// WithTimeouts sets the time limits of calls that read and calls that write. Zero leaves the default in place.
// A deadline of the caller's context that is earlier wins.
func WithTimeouts(read, write time.Duration) Option {
	return func(client *Client) {
		if read > 0 {
			client.readTimeout = read
		}
		if write > 0 {
			client.writeTimeout = write
		}
	}
}

// New returns a Client of the dashboard at baseURL, which URL builds. A path in it is kept, so that the address of a
// proxy can be given. The URL is not checked here: a wrong one shows as the error of the first call.
func New(baseURL string, options ...Option) *Client {
	c := &Client{
		base:         strings.TrimRight(baseURL, "/"),
		readTimeout:  DefaultReadTimeout,
		writeTimeout: DefaultWriteTimeout,
	}
	for _, option := range options {
		option(c)
	}
	if c.http == nil {
		c.http = NewHTTPClient()
	}
	// A dashboard runs code of its user. Following where it points would let that user reach, in the name of the
	// operator, whatever the operator's network reaches, and would hand on the token.
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c
}

// NewHTTPClient returns an HTTP client made for dashboards: it goes to them directly, never through a proxy named by the
// environment, gives up connecting after 3 seconds, and keeps idle connections for 30 seconds, which is less than Ray does.
func NewHTTPClient() *http.Client {
	dialer := &net.Dialer{Timeout: 3 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Client{Transport: &http.Transport{
		DialContext:         dialer.DialContext,
		MaxIdleConnsPerHost: 2,
		IdleConnTimeout:     30 * time.Second,
		DisableCompression:  true,
	}}
}

// call is one request and what its failures mean.
type call struct {
	method  string
	path    string
	body    any
	timeout time.Duration
	// limit is how much of the answer is read, in bytes; maxAnswer if zero.
	limit    int64
	meanings []meaning
}

func (c call) String() string { return c.method + " " + c.path }

// do performs the call and returns the body of a 2xx answer.
func (c *Client) do(ctx context.Context, call call) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, call.timeout)
	defer cancel()

	request, err := c.request(ctx, call)
	if err != nil {
		return nil, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, c.unanswered(call, err)
	}
	defer response.Body.Close()

	limit := cmp.Or(call.limit, maxAnswer)
	body, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err != nil {
		return nil, c.unanswered(call, fmt.Errorf("reading the answer: %w", err))
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return nil, answered(call.String(), response.StatusCode, body, call.meanings...)
	}
	if int64(len(body)) > limit {
		return nil, fmt.Errorf("%s: %w: it is longer than %d bytes", call, ErrUnexpectedAnswer, limit)
	}
	return body, nil
}

// unanswered returns the error for a call to which there was no whole answer.
func (c *Client) unanswered(call call, err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // the rest of it repeats the method and the URL
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no answer within %s: %w", call.timeout, err)
	}
	return &CallError{Call: call.String(), BaseURL: c.base, Err: err}
}

// request builds the HTTP request of a call.
func (c *Client) request(ctx context.Context, call call) (*http.Request, error) {
	var body io.Reader
	if call.body != nil {
		encoded, err := json.Marshal(call.body)
		if err != nil {
			return nil, fmt.Errorf("encoding the body of %s: %w", call, err)
		}
		body = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, call.method, c.base+call.path, body)
	if err != nil {
		return nil, fmt.Errorf("building %s: %w", call, err)
	}
	request.Header.Set("User-Agent", userAgent)
	request.Header.Set("Accept", "application/json")
	if call.method == http.MethodPost || call.method == http.MethodPut {
		request.Header.Set("Content-Type", "application/json")
	}
	if c.token != nil {
		token, err := c.token(ctx)
		if err != nil {
			return nil, fmt.Errorf("finding the authentication token for %s: %w", call, err)
		}
		request.Header.Set(authHeader, "Bearer "+token)
	}
	return request, nil
}

// decode fills into from the JSON body of an answer to the call.
func decode(call call, body []byte, into any) error {
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("%s: %w: %w: %q", call, ErrUnexpectedAnswer, err, shorten(string(body)))
	}
	return nil
}
