package dashboard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/gorilla/websocket"
)

// maxLog is how much of a job's log is read at once, in bytes.
const maxLog = 256 << 20

// JobLogs returns the whole log of a job's driver. It is empty before the driver has started. The error is ErrNotFound if
// Ray does not know the job.
func (c *Client) JobLogs(ctx context.Context, id string) (string, error) {
	ask, err := jobCall(http.MethodGet, id, "/logs", noSuchJob())
	if err != nil {
		return "", err
	}
	ask.timeout, ask.limit = c.writeTimeout, maxLog
	body, err := c.do(ctx, ask)
	if err != nil {
		return "", err
	}
	var answer struct {
		Logs *string `json:"logs"`
	}
	if err := decode(ask, body, &answer); err != nil {
		return "", err
	}
	if answer.Logs == nil {
		return "", fmt.Errorf("%s: %w: it holds no log", ask, ErrUnexpectedAnswer)
	}
	return *answer.Logs, nil
}

// TailJobLogs writes the log of a job's driver as it grows, from its beginning, and returns nil when Ray ends it because the
// job has ended. Any other end is an error, and the job may go on; JobLogs tells what was missed. The context ends it, too.
func (c *Client) TailJobLogs(ctx context.Context, id string, into io.Writer) error {
	tail, err := jobCall(http.MethodGet, id, "/logs/tail", noSuchJob())
	if err != nil {
		return err
	}
	connection, err := c.dialTail(ctx, tail)
	if err != nil {
		return err
	}
	defer connection.Close()
	// Reading cannot be interrupted otherwise.
	stop := context.AfterFunc(ctx, func() { connection.Close() })
	defer stop()
	for {
		kind, frame, err := connection.ReadMessage()
		if websocket.IsCloseError(err, websocket.CloseNormalClosure) {
			return nil
		}
		if err != nil {
			return c.unanswered(tail, errors.Join(ctx.Err(), err))
		}
		if kind != websocket.TextMessage {
			continue
		}
		if _, err := into.Write(frame); err != nil {
			return fmt.Errorf("writing the log of job %s: %w", id, err)
		}
	}
}

// dialTail opens the websocket of a call with the transport, the headers and the token of the client.
func (c *Client) dialTail(ctx context.Context, tail call) (*websocket.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.writeTimeout)
	defer cancel()
	transport, header := c.wire()
	dialer := &websocket.Dialer{HandshakeTimeout: c.writeTimeout}
	if transport != nil {
		dialer.NetDialContext, dialer.TLSClientConfig, dialer.Proxy = transport.DialContext, transport.TLSClientConfig, transport.Proxy
	}
	request, err := c.request(ctx, tail)
	if err != nil {
		return nil, err
	}
	for name, values := range request.Header {
		if header.Get(name) == "" {
			header[name] = values
		}
	}
	scheme, rest, _ := strings.Cut(c.base, "://")
	address := "ws://" + rest + tail.path
	if scheme == "https" {
		address = "wss://" + rest + tail.path
	}
	connection, response, err := dialer.DialContext(ctx, address, header)
	if err == nil {
		return connection, nil
	}
	if response == nil {
		return nil, c.unanswered(tail, err)
	}
	defer response.Body.Close()
	// The library keeps the beginning of a refusal in the response.
	body, readErr := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if readErr != nil || response.StatusCode == http.StatusSwitchingProtocols {
		return nil, c.unanswered(tail, err)
	}
	return nil, answered(tail.String(), response.StatusCode, body, tail.meanings...)
}
