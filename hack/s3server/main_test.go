package main

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestServerNeedsCredentials(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	err := run(context.Background(), "127.0.0.1:0", t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "AWS_ACCESS_KEY_ID") {
		t.Errorf("got error %v, want one that names the missing variable", err)
	}
}

func TestServerAnswersProbesAndRefusesUnsignedRequests(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "demo")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "demo-secret")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	address := freeAddress(t)
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, address, t.TempDir()) }()

	waitUntilHealthy(ctx, t, address, ended)
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://"+address+"/bucket", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatalf("creating a bucket: %v", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusForbidden {
		t.Errorf("creating a bucket without a signature: got %s, want status 403", response.Status)
	}
	cancel()
	<-ended
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func waitUntilHealthy(ctx context.Context, t *testing.T, address string, ended <-chan error) {
	t.Helper()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case err := <-ended:
			t.Fatalf("the server ended: %v", err)
		case <-ctx.Done():
			t.Fatal("the server did not become healthy")
		case <-ticker.C:
		}
		response, err := http.Get("http://" + address + "/healthz")
		if err != nil {
			continue
		}
		response.Body.Close()
		if response.StatusCode == http.StatusOK {
			return
		}
	}
}
