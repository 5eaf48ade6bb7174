package loadgen

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
)

const patience = time.Minute

// serverOf answers with handler and counts connections and requests.
type serverOf struct {
	*httptest.Server
	connections, requests atomic.Int32
}

func serve(t *testing.T, handler http.HandlerFunc) *serverOf {
	t.Helper()
	s := &serverOf{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		handler(w, r)
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.connections.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func answer(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }
}

func newSender(t *testing.T, address string, kind Kind, connections int) *sender {
	t.Helper()
	to, err := url.Parse("http://" + address + "/?" + kind.Query)
	if err != nil {
		t.Fatal(err)
	}
	kind.Name = "kind"
	if kind.Limit == 0 {
		kind.Limit = patience
	}
	s := &sender{kind: kind, address: address, url: *to, recorder: NewRecorder("first")}
	if kind.Keep {
		s.pool = &pool{size: connections, maxAge: patience}
		t.Cleanup(s.pool.close)
	}
	return s
}

func (s *sender) tally() Tally { return s.recorder.Summary().Phases[0].Kinds["kind"] }

func TestConnections(t *testing.T) {
	for _, test := range []struct {
		name   string
		kind   Kind
		maxAge time.Duration
		want   int32
	}{
		{"given fresh connections, then each request has its own", Kind{}, 0, 5},
		{"given kept connections, then no more than wanted are opened", Kind{Keep: true}, patience, 2},
		{"given kept connections that are too old, then each request has a new one", Kind{Keep: true}, -1, 5},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := serve(t, answer("v1"))
			s := newSender(t, server.Listener.Addr().String(), test.kind, 2)
			if s.pool != nil {
				s.pool.maxAge = test.maxAge
			}
			for range 5 {
				s.send()
			}
			got := s.tally()
			if server.connections.Load() != test.want || got.Connections != int(test.want) {
				t.Errorf("connections: the server saw %d, the summary says %d, want %d", server.connections.Load(), got.Connections, test.want)
			}
			if got.Sent != 5 || got.Failed != 0 || got.UnderWay != 0 {
				t.Errorf("got %+v, want 5 sent and none failed", got)
			}
			if diff := cmp.Diff(map[string]int{"v1": 5}, got.Answers); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFailures(t *testing.T) {
	hangUp := func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			conn.Close()
		}
	}
	for _, test := range []struct {
		name    string
		kind    Kind
		handler http.HandlerFunc
		want    string
	}{
		{"given an error, then its status and text are told", Kind{}, func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "No replicas are available yet.", http.StatusServiceUnavailable)
		}, `status 503 Service Unavailable: "No replicas are available yet.\n"`},
		{"given a server that hangs up on a fresh connection", Kind{}, hangUp, "read answer: unexpected EOF"},
		{"given a server that hangs up on a kept connection", Kind{Keep: true}, hangUp, "read answer: unexpected EOF"},
		{"given no answer in time", Kind{Limit: 50 * time.Millisecond}, func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
		}, "i/o timeout"},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := serve(t, test.handler)
			s := newSender(t, server.Listener.Addr().String(), test.kind, 1)
			s.send()
			got := s.tally()
			if got.Sent != 1 || got.Failed != 1 || got.UnderWay != 0 || len(got.Failures) != 1 {
				t.Fatalf("got %+v, want one failure", got)
			}
			if !strings.Contains(got.Failures[0].Text, test.want) {
				t.Errorf("got %q, want %q in it", got.Failures[0].Text, test.want)
			}
			if server.requests.Load() != 1 {
				t.Errorf("the server saw %d requests: a failed one must not be sent again", server.requests.Load())
			}
		})
	}
}

func TestNobodyListens(t *testing.T) {
	server := serve(t, answer(""))
	server.Close()
	s := newSender(t, server.Listener.Addr().String(), Kind{Keep: true}, 1)
	s.send()
	if got := s.tally(); got.Failed != 1 || !strings.HasPrefix(got.Failures[0].Text, "connect: ") {
		t.Errorf("got %+v, want one failure to connect", got)
	}
}

// once answers one request on each of its first connections and hangs up when it is told to: on the idle connection or
// in the middle of the next request.
func once(t *testing.T, hangUp func(*bufio.Reader)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			reader := bufio.NewReader(conn)
			if _, err := http.ReadRequest(reader); err == nil {
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nv1")
			}
			hangUp(reader)
			conn.Close()
		}
	}()
	return listener.Addr().String()
}

func TestServerEndsAnIdleConnection(t *testing.T) {
	g := NewWithT(t)
	s := newSender(t, once(t, func(*bufio.Reader) {}), Kind{Keep: true}, 1)
	s.send()
	g.Eventually(s.pool.idle[0].closed, patience).Should(BeTrue())
	s.send()
	if got := s.tally(); got.Failed != 0 || got.EndedByServer != 1 || got.Connections != 2 {
		t.Errorf("got %+v, want no failure, and a second connection", got)
	}
}

func TestServerEndsAConnectionThatIsUsed(t *testing.T) {
	s := newSender(t, once(t, func(reader *bufio.Reader) { _, _ = http.ReadRequest(reader) }), Kind{Keep: true}, 1)
	s.send()
	s.send()
	if got := s.tally(); got.Sent != 2 || got.Failed != 1 || got.EndedByServer != 0 || got.Connections != 1 {
		t.Errorf("got %+v, want the second request to fail", got)
	}
}

func TestRun(t *testing.T) {
	g := NewWithT(t)
	server := serve(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "sleep="+r.URL.Query().Get("sleep")) })
	to, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	recorder := NewRecorder("first")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, Options{URL: to, Connections: 2, MaxAge: patience, Kinds: []Kind{
			{Name: "short", Every: time.Millisecond, Limit: patience},
			{Name: "long", Query: "sleep=20", Every: time.Millisecond, Limit: patience, Keep: true},
		}}, recorder)
	}()
	answered := func(phase int) func() bool {
		return func() bool {
			kinds := recorder.Summary().Phases[phase].Kinds
			return kinds["short"].Answers["sleep="] > 1 && kinds["long"].Answers["sleep=20"] > 1
		}
	}
	g.Eventually(answered(0), patience).Should(BeTrue())
	recorder.Begin("second")
	g.Eventually(answered(1), patience).Should(BeTrue())
	stop()
	g.Eventually(ended, patience).Should(Receive(BeNil()))
	for _, phase := range recorder.Summary().Phases {
		for kind, tally := range phase.Kinds {
			if tally.UnderWay != 0 || tally.Failed != 0 {
				t.Errorf("%s/%s: got %+v, want all answered when Run returns", phase.Name, kind, tally)
			}
		}
	}
}

func TestPercentiles(t *testing.T) {
	recorder := NewRecorder("first")
	for i := range 200 {
		attempt := recorder.begin("kind")
		attempt.started = attempt.started.Add(-time.Duration(i+1) * time.Minute)
		attempt.end("v1", nil)
	}
	recorder.begin("kind").end("", errors.New("late"))
	got := recorder.Summary().Phases[0].Kinds["kind"]
	rounded := []time.Duration{got.Half.Round(time.Minute), got.Most.Round(time.Minute), got.Slowest.Round(time.Minute)}
	if diff := cmp.Diff([]time.Duration{100 * time.Minute, 198 * time.Minute, 200 * time.Minute}, rounded); diff != "" {
		t.Errorf("50th, 99th percentile and slowest (-want +got):\n%s", diff)
	}
}

func TestHandler(t *testing.T) {
	recorder := NewRecorder("first")
	handler := Handler(recorder)
	recorder.begin("kind").end("v1", nil)
	ask := func(method, path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, nil))
		return w
	}
	if got := ask(http.MethodPost, "/phases").Code; got != http.StatusBadRequest {
		t.Errorf("a phase without a name: got %d, want 400", got)
	}
	if got := ask(http.MethodPost, "/phases?name=second").Code; got != http.StatusOK {
		t.Errorf("a phase with a name: got %d, want 200", got)
	}
	recorder.begin("kind")
	var got Summary
	if err := json.Unmarshal(ask(http.MethodGet, "/summary").Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	var read []string
	for _, phase := range got.Phases {
		read = append(read, fmt.Sprintf("%s: %d sent, %d under way, answers %v", phase.Name, phase.Kinds["kind"].Sent,
			phase.Kinds["kind"].UnderWay, phase.Kinds["kind"].Answers))
	}
	want := []string{"first: 1 sent, 0 under way, answers map[v1:1]", "second: 1 sent, 1 under way, answers map[]"}
	if diff := cmp.Diff(want, read); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
}
