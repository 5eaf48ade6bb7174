package conformance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"testing"
)

func mustMarshal(t *testing.T, value any) json.RawMessage {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatalf("encoding %T: %v", value, err)
	}
	return data
}

func newBufferedReader(data []byte) *bufio.Reader { return bufio.NewReader(bytes.NewReader(data)) }
