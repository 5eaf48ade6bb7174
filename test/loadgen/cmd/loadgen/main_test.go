package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
)

func TestSummaryIsPrintedAtTheEnd(t *testing.T) {
	g := NewWithT(t)
	var short, long atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("sleep") == "7" {
			long.Add(1)
			return
		}
		short.Add(1)
	}))
	defer server.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var out bytes.Buffer
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"--url=" + server.URL, "--listen=127.0.0.1:0", "--short=100", "--long=100", "--long-seconds=7"}, &out)
	}()
	g.Eventually(func() bool { return short.Load() > 2 && long.Load() > 2 }, time.Minute).Should(BeTrue())
	stop()
	g.Eventually(ended, time.Minute).Should(Receive(BeNil()))

	var kinds []string
	for line := range strings.Lines(out.String()) {
		var tally struct {
			Phase, Kind    string
			Sent, UnderWay int
		}
		if err := json.Unmarshal([]byte(line), &tally); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if tally.Phase != "start" || tally.Sent == 0 || tally.UnderWay != 0 {
			t.Errorf("got %+v, want requests, all of them ended, in the phase start", tally)
		}
		kinds = append(kinds, tally.Kind)
	}
	slices.Sort(kinds)
	if diff := cmp.Diff([]string{"long-fresh", "long-kept", "short-fresh", "short-kept"}, kinds); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
}

func TestArgumentsThatCannotBe(t *testing.T) {
	for _, test := range []struct {
		name, want string
		args       []string
	}{
		{"given no URL", "give the URL", nil},
		{"given a URL without a host", "give the URL", []string{"--url=echo"}},
		{"given a host that does not exist", "look up the host", []string{"--url=http://nowhere.invalid/", "--listen=127.0.0.1:0"}},
		{"given an address that cannot be listened at", "listen at", []string{"--url=http://127.0.0.1:1/", "--listen=256.0.0.1:0"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := run(t.Context(), test.args, &bytes.Buffer{})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q in it", err, test.want)
			}
		})
	}
}
