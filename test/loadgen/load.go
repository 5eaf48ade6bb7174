package loadgen

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// Kind is one way to send requests.
type Kind struct {
	// Name is how summaries call it.
	Name string
	// Query is the query of the URL, such as "sleep=20".
	Query string
	// Every is the time between the starts of two requests.
	Every time.Duration
	// Limit is how long a request may take before it counts as failed and is given up.
	Limit time.Duration
	// Keep makes requests share connections, which are renewed when they are older than Options.MaxAge. Otherwise each
	// request has a connection of its own.
	Keep bool
}

// Options say what is sent where.
type Options struct {
	// URL is where requests go. Its host is looked up once, before the first request.
	URL *url.URL
	// Kinds are sent side by side.
	Kinds []Kind
	// Connections is how many kept connections a kind has, unless more are busy at once.
	Connections int
	// MaxAge is how old a kept connection may be when a request is started on it. Pools of proxies and clients renew
	// theirs in this way; a connection that is used for ever pins its Pod for ever.
	MaxAge time.Duration
}

// Run sends requests until ctx is done, waits for those under way, and records all of them.
func Run(ctx context.Context, options Options, recorder *Recorder) error {
	address, err := lookUp(ctx, options.URL)
	if err != nil {
		return err
	}
	var senders sync.WaitGroup
	for _, kind := range options.Kinds {
		s := &sender{kind: kind, address: address, url: *options.URL, recorder: recorder}
		s.url.RawQuery = kind.Query
		if kind.Keep {
			s.pool = &pool{size: options.Connections, maxAge: options.MaxAge}
		}
		senders.Go(func() { s.run(ctx) })
	}
	senders.Wait()
	return nil
}

// lookUp asks DNS once: how names are resolved under load is not what is measured.
func lookUp(ctx context.Context, to *url.URL) (string, error) {
	port := to.Port()
	if port == "" {
		port = "80"
	}
	hosts, err := net.DefaultResolver.LookupHost(ctx, to.Hostname())
	if err != nil {
		return "", fmt.Errorf("look up the host of %s: %w", to, err)
	}
	return net.JoinHostPort(hosts[0], port), nil
}

// sender sends the requests of one kind.
type sender struct {
	kind     Kind
	address  string
	url      url.URL
	recorder *Recorder
	pool     *pool
}

func (s *sender) run(ctx context.Context) {
	var requests sync.WaitGroup
	ticker := time.NewTicker(s.kind.Every)
	defer ticker.Stop()
	for ctx.Err() == nil {
		requests.Go(s.send)
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
	requests.Wait()
	if s.pool != nil {
		s.pool.close()
	}
}

// send sends one request and records how it ended.
func (s *sender) send() {
	attempt := s.recorder.begin(s.kind.Name)
	// Not the context of run: a request that was started is carried to its end.
	ctx, cancel := context.WithDeadline(context.Background(), attempt.started.Add(s.kind.Limit))
	defer cancel()
	text, err := s.exchange(ctx, attempt)
	attempt.end(text, err)
}

func (s *sender) exchange(ctx context.Context, attempt *attempt) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url.String(), nil)
	if err != nil {
		return "", err
	}
	deadline, _ := ctx.Deadline()
	if s.pool == nil {
		request.Close = true
		c, err := dial(ctx, s.address)
		if err != nil {
			return "", err
		}
		defer c.Close()
		attempt.opened()
		text, _, err := c.get(request, deadline)
		return text, err
	}
	c, endedByServer := s.pool.take()
	attempt.endedByServer(endedByServer)
	if c == nil {
		if c, err = dial(ctx, s.address); err != nil {
			s.pool.put(nil)
			return "", err
		}
		attempt.opened()
	}
	text, keep, err := c.get(request, deadline)
	if !keep {
		c.Close()
		c = nil
	}
	s.pool.put(c)
	return text, err
}
