package prove

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// portForward asks the Service through `kubectl port-forward`, which chooses a
// free port itself and says which.
func (p *Prover) portForward(ctx context.Context) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	forward, err := p.Kubectl(ctx, "--namespace="+namespace, "port-forward", "service/web", ":80", "--address=127.0.0.1")
	if err != nil {
		return "", err
	}
	out, err := forward.StdoutPipe()
	if err != nil {
		return "", fmt.Errorf("preparing port-forward: %w", err)
	}
	if err := forward.Start(); err != nil {
		return "", fmt.Errorf("starting port-forward: %w", err)
	}
	defer func() {
		cancel()
		// It was killed, and says so.
		_ = forward.Wait()
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("waiting for port-forward: %w", err)
	}
	// Forwarding from 127.0.0.1:41043 -> 8080
	fields := strings.Fields(line)
	if len(fields) < 3 {
		return "", fmt.Errorf("port-forward says %q", line)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+fields[2]+"/", nil)
	if err != nil {
		return "", fmt.Errorf("asking through port-forward: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", fmt.Errorf("asking through port-forward: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return "", fmt.Errorf("reading an answer through port-forward: %w", err)
	}
	if !strings.HasPrefix(string(body), "hello from") {
		return "", fmt.Errorf("the answer through port-forward is %q", body)
	}
	return string(body), nil
}
