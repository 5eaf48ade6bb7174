package config

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestLogger(t *testing.T) {
	isJSON := func(line string) bool { return json.Valid([]byte(line)) }
	cases := map[string]struct {
		args       []string
		wantStdout bool // true for JSON
		wantFile   bool
	}{
		"given nothing, both places get JSON":          {wantStdout: true, wantFile: true},
		"given a console on standard output only":      {args: []string{"--log-stdout-encoder=console"}, wantFile: true},
		"given a console in the file only":             {args: []string{"--log-file-encoder=console"}, wantStdout: true},
		"given development mode, the encoders stay":    {args: []string{"--zap-devel"}, wantStdout: true, wantFile: true},
		"given the most talkative level, nothing ends": {args: []string{"--zap-log-level=9"}, wantStdout: true, wantFile: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "made", "operator.log")
			c, err := parse(append(tc.args, "--log-file-path="+path), nil, "")
			if err != nil {
				t.Fatalf("Parse: %v", err)
			}
			var stdout bytes.Buffer
			log, err := c.newLogger(&stdout)
			if err != nil {
				t.Fatalf("newLogger: %v", err)
			}
			log.Info("Starting", "cluster", "c1")

			file, err := os.ReadFile(path)
			if err != nil {
				t.Fatalf("reading the log file: %v", err)
			}
			for place, got := range map[string]struct {
				line string
				want bool
			}{"standard output": {stdout.String(), tc.wantStdout}, "file": {string(file), tc.wantFile}} {
				if isJSON(got.line) != got.want {
					t.Errorf("%s: JSON is %t, want %t: %s", place, !got.want, got.want, got.line)
				}
				if !strings.Contains(got.line, "Starting") || !regexp.MustCompile(`\d{4}-\d\d-\d\dT`).MatchString(got.line) {
					t.Errorf("%s has no message with an ISO 8601 time: %s", place, got.line)
				}
			}
		})
	}
}

func TestLoggerLevel(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want bool
	}{
		"given nothing, debug lines are left out":       {},
		"given level debug, debug lines are written":    {args: []string{"--zap-log-level=debug"}, want: true},
		"given development mode, debug lines are there": {args: []string{"--zap-devel"}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := parse(tc.args, nil, "")
			if err != nil {
				t.Fatalf("Parse: %v", err)
			}
			var stdout bytes.Buffer
			log, err := c.newLogger(&stdout)
			if err != nil {
				t.Fatalf("newLogger: %v", err)
			}
			log.V(1).Info("Looking")
			if got := stdout.Len() > 0; got != tc.want {
				t.Errorf("debug line written: %t, want %t", got, tc.want)
			}
		})
	}
}

func TestLoggerRefusesAPathThatCannotBeOpened(t *testing.T) {
	blocker := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocker, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := parse([]string{"--log-file-path=" + filepath.Join(blocker, "x.log")}, nil, "")
	if err != nil {
		t.Fatalf("Parse: %v", err)
	}
	if _, err := c.newLogger(&bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), blocker) {
		t.Errorf("newLogger: %v, want an error that names %s", err, blocker)
	}
}

func TestRESTConfigHasTheLimitsAndNamesABadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	const text = `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: k, user: u}}],
clusters: [{name: k, cluster: {server: "https://192.0.2.1:6443"}}], users: [{name: u, user: {token: t}}]}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := parse([]string{"--kubeconfig", path, "--qps=7", "--burst=8"}, nil, "")
	if err != nil {
		t.Fatalf("Parse: %v", err)
	}
	rc, err := c.RESTConfig("agent/1")
	if err != nil {
		t.Fatalf("RESTConfig: %v", err)
	}
	if rc.Host != "https://192.0.2.1:6443" || rc.QPS != 7 || rc.Burst != 8 || rc.UserAgent != "agent/1" {
		t.Errorf("host %s, qps %v, burst %d, agent %s", rc.Host, rc.QPS, rc.Burst, rc.UserAgent)
	}

	c.Kubeconfig = path + ".missing"
	if _, err := c.RESTConfig("agent/1"); err == nil || !strings.Contains(err.Error(), c.Kubeconfig) {
		t.Errorf("RESTConfig: %v, want an error that names %s", err, c.Kubeconfig)
	}
}
