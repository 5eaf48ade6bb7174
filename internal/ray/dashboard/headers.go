package dashboard

import (
	"maps"
	"net/http"
)

// Headers is a transport that adds headers to every request, for dashboards behind something that asks for them. Hand it to
// WithHTTPClient; TailJobLogs sends the headers, too.
type Headers struct {
	// Base carries the requests out.
	Base *http.Transport
	// Header holds what is added. A header that the request has already is replaced, also Host.
	Header http.Header
}

// RoundTrip sends the request with the headers. The request itself stays as it is, as transports must leave it.
func (h *Headers) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	maps.Copy(request.Header, h.Header)
	// Among the headers it would not be sent.
	if host := h.Header.Get("Host"); host != "" {
		request.Host = host
		request.Header.Del("Host")
	}
	return h.Base.RoundTrip(request)
}

// CloseIdleConnections lets http.Client.CloseIdleConnections reach the connections.
func (h *Headers) CloseIdleConnections() { h.Base.CloseIdleConnections() }

// wire returns what a connection of the client's transport is made with, and the headers to send. The transport is nil where
// it is of another kind; then connections are made in the default way.
func (c *Client) wire() (*http.Transport, http.Header) {
	switch transport := c.http.Transport.(type) {
	case *Headers:
		return transport.Base, transport.Header.Clone()
	case *http.Transport:
		return transport, http.Header{}
	default:
		return nil, http.Header{}
	}
}
