// Package ports finds free TCP ports.
package ports

import (
	"fmt"
	"net"
)

// Free returns count different ports of the loopback interface that nobody
// listens on. Somebody else may take one before the caller does: be ready to
// try again.
func Free(count int) ([]int, error) {
	var found []int
	for range count {
		// All listeners stay open until the last port is found, or one port
		// could be found twice.
		listener, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("looking for a free port: %w", err)
		}
		defer listener.Close()
		found = append(found, listener.Addr().(*net.TCPAddr).Port)
	}
	return found, nil
}
