// Command loadgen sends requests to a URL at a steady rate, short and long ones, on fresh connections and on kept ones.
// GET /summary at its own address tells what became of them; on SIGTERM it stops, waits for the requests under way and
// prints the same, one line of JSON for each phase and kind.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/heliostat-io/heliostat/test/loadgen"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "loadgen: "+err.Error())
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("loadgen", flag.ContinueOnError)
	target := flags.String("url", "", "where requests go")
	listen := flags.String("listen", ":8080", "address of GET /summary and POST /phases?name=NAME")
	short := flags.Float64("short", 10, "short requests per second of each kind; 0 means none")
	long := flags.Float64("long", 0.5, "long requests per second of each kind; 0 means none")
	lasts := flags.Int("long-seconds", 20, "how long a long request lasts: the server is asked to by ?sleep=SECONDS")
	connections := flags.Int("connections", 8, "kept connections of each kind")
	maxAge := flags.Duration("max-age", 30*time.Second, "age at which a kept connection is renewed")
	if err := flags.Parse(args); err != nil {
		return err
	}
	to, err := url.Parse(*target)
	if err != nil || to.Host == "" {
		return fmt.Errorf("--url %q: give the URL that requests go to, such as http://service:8000/", *target)
	}
	recorder := loadgen.NewRecorder("start")
	server := &http.Server{Addr: *listen, Handler: loadgen.Handler(recorder), ReadHeaderTimeout: 10 * time.Second}
	listening := make(chan error, 1)
	go func() { listening <- server.ListenAndServe() }()
	defer server.Close()

	sending := make(chan error, 1)
	go func() {
		sending <- loadgen.Run(ctx, loadgen.Options{
			URL: to, Kinds: kinds(*short, *long, *lasts), Connections: *connections, MaxAge: *maxAge,
		}, recorder)
	}()
	select {
	case err := <-listening:
		return fmt.Errorf("listen at %s: %w", *listen, err)
	case err := <-sending:
		if err != nil {
			return err
		}
		return printSummary(out, recorder.Summary())
	}
}

// kinds gives every request far more time than it should need, so that one that hangs is told from one that is slow.
func kinds(short, long float64, seconds int) []loadgen.Kind {
	var all []loadgen.Kind
	for _, keep := range []bool{false, true} {
		connection := map[bool]string{false: "fresh", true: "kept"}[keep]
		if short > 0 {
			all = append(all, loadgen.Kind{Name: "short-" + connection, Every: every(short), Limit: 30 * time.Second, Keep: keep})
		}
		if long > 0 {
			all = append(all, loadgen.Kind{
				Name: "long-" + connection, Query: fmt.Sprintf("sleep=%d", seconds), Every: every(long),
				Limit: time.Duration(seconds)*time.Second + 40*time.Second, Keep: keep,
			})
		}
	}
	return all
}

func every(rate float64) time.Duration { return time.Duration(float64(time.Second) / rate) }

func printSummary(out io.Writer, summary loadgen.Summary) error {
	lines := json.NewEncoder(out)
	for _, phase := range summary.Phases {
		for kind, tally := range phase.Kinds {
			line := struct {
				Phase string `json:"phase"`
				Kind  string `json:"kind"`
				loadgen.Tally
			}{phase.Name, kind, tally}
			if err := lines.Encode(line); err != nil {
				return fmt.Errorf("print the summary: %w", err)
			}
		}
	}
	return nil
}
