package kube_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/streaming/pkg/httpstream"

	"github.com/heliostat-io/heliostat/internal/cli/kube"
)

func TestWhatIsAboutTheWebsocket(t *testing.T) {
	cases := map[string]struct {
		err  error
		want bool
	}{
		"given the upgrade was refused, then it is":         {fmt.Errorf("dial: %w", &httpstream.UpgradeFailureError{Cause: errors.New("400")}), true},
		"given a proxy that takes no websocket, then it is": {errors.New("proxy: unknown scheme: https"), true},
		"given there is no answer, then it is not":          {errors.New("connection refused"), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := kube.RefusesWebsocket(tc.err); got != tc.want {
				t.Errorf("RefusesWebsocket = %v", got)
			}
		})
	}
}

func TestSleepEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	if err := kube.Sleep(ctx, time.Nanosecond); err != nil {
		t.Errorf("Sleep returned %v", err)
	}
	cancel()
	if err := kube.Sleep(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("Sleep returned %v", err)
	}
}
