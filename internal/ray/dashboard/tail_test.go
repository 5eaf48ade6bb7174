package dashboard_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
)

// tailing returns a client of a server that sends the frames of a log and then does what end says.
func tailing(t *testing.T, end func(*websocket.Conn), frames ...string) *dashboard.Client {
	t.Helper()
	upgrader := websocket.Upgrader{}
	return serving(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/jobs/j1/logs/tail" || r.Header.Get("X-Ray-Authorization") != "Bearer secret" {
			http.Error(w, "Unauthorized: Missing authentication token", http.StatusUnauthorized)
			return
		}
		connection, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer connection.Close()
		for _, frame := range frames {
			if err := connection.WriteMessage(websocket.TextMessage, []byte(frame)); err != nil {
				t.Error(err)
			}
		}
		end(connection)
	}, dashboard.WithToken(token("secret", nil)))
}

func closeNormally(connection *websocket.Conn) {
	message := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	_ = connection.WriteControl(websocket.CloseMessage, message, time.Time{})
}

func TestTailJobLogs(t *testing.T) {
	cases := map[string]struct {
		end     func(*websocket.Conn)
		wantErr bool
	}{
		"given Ray ends the log, then the job has ended":                  {end: closeNormally},
		"given the connection is lost, then that is not taken for an end": {end: func(*websocket.Conn) {}, wantErr: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			err := tailing(t, tc.end, "one\n", "two\n").TailJobLogs(t.Context(), "j1", &got)
			if (err != nil) != tc.wantErr || got.String() != "one\ntwo\n" {
				t.Errorf("TailJobLogs wrote %q and returned %v", &got, err)
			}
		})
	}
}

func TestTailJobLogsEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	client := tailing(t, func(connection *websocket.Conn) {
		cancel()
		_, _, _ = connection.ReadMessage()
	})
	if err := client.TailJobLogs(ctx, "j1", &bytes.Buffer{}); !errors.Is(err, context.Canceled) {
		t.Errorf("TailJobLogs returned %v", err)
	}
}

func TestTailJobLogsOfAnUnknownJob(t *testing.T) {
	client := answering(t, 404, "Job j1 does not exist")
	if err := client.TailJobLogs(t.Context(), "j1", &bytes.Buffer{}); !errors.Is(err, dashboard.ErrNotFound) {
		t.Errorf("TailJobLogs returned %v", err)
	}
}

func TestJobLogs(t *testing.T) {
	cases := map[string]struct {
		code    int
		body    string
		want    string
		wantErr error
	}{
		"given a log, then all of it is returned":    {200, `{"logs":"one\ntwo\n"}`, "one\ntwo\n", nil},
		"given no log, then the answer is not Ray's": {200, `{}`, "", dashboard.ErrUnexpectedAnswer},
		"given an unknown job, then that is said":    {404, "Job j1 does not exist", "", dashboard.ErrNotFound},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := answering(t, tc.code, tc.body).JobLogs(t.Context(), "j1")
			if got != tc.want || !errors.Is(err, tc.wantErr) {
				t.Errorf("JobLogs = %q, %v", got, err)
			}
		})
	}
}
