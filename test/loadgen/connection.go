package loadgen

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// maxAnswer is more than any answer that tests look at, in bytes.
const maxAnswer = 64 << 10

// connection is one TCP connection on which requests follow one another.
type connection struct {
	net.Conn
	reader *bufio.Reader
	opened time.Time
}

func dial(ctx context.Context, address string) (*connection, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return &connection{Conn: conn, reader: bufio.NewReader(conn), opened: time.Now()}, nil
}

// closed is true when the server has ended the connection while it was idle. Every client looks before it uses a
// connection again; what arrives later than that is a failed request.
func (c *connection) closed() bool {
	// A deadline that has passed already would not look at all.
	_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, err := c.reader.Peek(1)
	var timeout net.Error
	return !errors.As(err, &timeout) || !timeout.Timeout()
}

// get sends a request and returns the text of the answer, which must have status 200. keep is true when the connection
// can be used again.
func (c *connection) get(request *http.Request, deadline time.Time) (text string, keep bool, err error) {
	if err := c.SetDeadline(deadline); err != nil {
		return "", false, fmt.Errorf("set deadline: %w", err)
	}
	if err := request.Write(c); err != nil {
		return "", false, fmt.Errorf("send: %w", err)
	}
	response, err := http.ReadResponse(c.reader, request)
	if err != nil {
		return "", false, fmt.Errorf("read answer: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return "", false, fmt.Errorf("read body of answer: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return "", !response.Close, fmt.Errorf("status %s: %.200q", response.Status, body)
	}
	return string(body), !response.Close, nil
}

// pool keeps connections for later requests, as proxies in front of a service do.
type pool struct {
	size   int
	maxAge time.Duration

	mutex sync.Mutex
	idle  []*connection // the one that has been idle for longest comes first
	busy  int
}

// take returns the connection that has been idle for longest, or nil when a new one has to be opened: while there are
// fewer than size, so that several Pods behind a Service are met, and when all are busy. endedByServer counts those that
// turned out to be closed.
func (p *pool) take() (taken *connection, endedByServer int) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	defer func() { p.busy++ }()
	p.idle = slices.DeleteFunc(p.idle, func(c *connection) bool {
		tooOld := time.Since(c.opened) > p.maxAge
		if tooOld {
			c.Close()
		}
		return tooOld
	})
	if len(p.idle)+p.busy < p.size {
		return nil, 0
	}
	for len(p.idle) > 0 {
		taken, p.idle = p.idle[0], p.idle[1:]
		if !taken.closed() {
			return taken, endedByServer
		}
		endedByServer++
		taken.Close()
	}
	return nil, endedByServer
}

// put gives a connection back; nil means that it is of no more use.
func (p *pool) put(c *connection) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.busy--
	if c != nil {
		p.idle = append(p.idle, c)
	}
}

func (p *pool) close() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, c := range p.idle {
		c.Close()
	}
	p.idle = nil
}
