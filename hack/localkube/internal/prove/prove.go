// Package prove checks on a running cluster that everything is true which is
// claimed about it, one claim at a time.
package prove

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/heliostat-io/heliostat/hack/localkube/internal/component"
)

// namespace is made for the checks and removed after them.
const namespace = "localkube-prove"

// limit is how long any one thing may take to come true.
const limit = 90 * time.Second

//go:embed objects.yaml
var objects string

// Kubectl makes a command that runs kubectl against the cluster.
type Kubectl func(ctx context.Context, args ...string) (*exec.Cmd, error)

// Prover runs the checks.
type Prover struct {
	// Kubectl reaches the cluster as its administrator.
	Kubectl Kubectl
	// Out gets a line for each check.
	Out io.Writer

	nodes []string
}

// check is one claim. It returns what was seen, for the person who reads along.
type check struct {
	claim string
	run   func(context.Context) (string, error)
}

// Run runs all checks and prints PASS or FAIL for each. It returns an error when
// one failed or when the objects for the checks could not be made.
func (p *Prover) Run(ctx context.Context) error {
	defer p.remove(context.WithoutCancel(ctx))
	if err := p.create(ctx); err != nil {
		return err
	}
	passed, failed := 0, 0
	for _, one := range p.checks() {
		start := time.Now()
		seen, err := one.run(ctx)
		if ctx.Err() != nil {
			return fmt.Errorf("checking that %s: %w", one.claim, context.Cause(ctx))
		}
		verdict := "PASS"
		if err != nil {
			verdict, seen = "FAIL", err.Error()
			failed++
		} else {
			passed++
		}
		fmt.Fprintf(p.Out, "%s %5.1fs  %s: %s\n", verdict, time.Since(start).Seconds(), one.claim, oneLine(seen))
	}
	fmt.Fprintf(p.Out, "%d passed, %d failed\n", passed, failed)
	if failed > 0 {
		return fmt.Errorf("%d of %d checks failed", failed, passed+failed)
	}
	return nil
}

func oneLine(text string) string {
	const width = 200
	line := strings.ReplaceAll(strings.TrimSpace(text), "\n", " | ")
	if len(line) > width {
		return line[:width] + "..."
	}
	return line
}

func (p *Prover) create(ctx context.Context) error {
	names, err := p.kubectl(ctx, "get", "nodes", "--output=jsonpath={.items[*].metadata.name}")
	if err != nil {
		return err
	}
	p.nodes = strings.Fields(names)
	if len(p.nodes) == 0 {
		return errors.New("the cluster has no nodes")
	}
	// What an earlier run that was killed has left.
	p.remove(ctx)
	if _, err := p.kubectl(ctx, "create", "namespace", namespace); err != nil {
		return err
	}
	// Pods are refused until the namespace has its service account.
	err = p.eventually(ctx, func() error {
		_, err := p.in(ctx, "get", "serviceaccount", "default")
		return err
	})
	if err != nil {
		return err
	}
	manifest := strings.NewReplacer(
		"IMAGE", component.BusyboxImage, "FIRST", p.nodes[0], "LAST", p.nodes[len(p.nodes)-1],
	).Replace(objects)
	_, err = p.withInput(ctx, manifest, "apply", "--filename=-")
	return err
}

func (p *Prover) remove(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	// What cannot be removed disturbs the next run, which then says so.
	_, _ = p.kubectl(ctx, "delete", "namespace", namespace, "--ignore-not-found", "--timeout=60s")
}

// kubectl runs kubectl and returns what it printed.
func (p *Prover) kubectl(ctx context.Context, args ...string) (string, error) {
	command, err := p.Kubectl(ctx, args...)
	if err != nil {
		return "", err
	}
	return run(command, args)
}

// in runs kubectl in the namespace of the checks.
func (p *Prover) in(ctx context.Context, args ...string) (string, error) {
	return p.kubectl(ctx, append([]string{"--namespace=" + namespace}, args...)...)
}

// withInput runs kubectl in the namespace of the checks with standard input.
func (p *Prover) withInput(ctx context.Context, input string, args ...string) (string, error) {
	command, err := p.Kubectl(ctx, append([]string{"--namespace=" + namespace}, args...)...)
	if err != nil {
		return "", err
	}
	command.Stdin = strings.NewReader(input)
	return run(command, args)
}

// sh runs a shell command in a Pod.
func (p *Prover) sh(ctx context.Context, pod, script string) (string, error) {
	return p.in(ctx, "exec", pod, "--", "sh", "-c", script)
}

func run(command *exec.Cmd, args []string) (string, error) {
	var out, problem bytes.Buffer
	command.Stdout, command.Stderr = &out, &problem
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("kubectl %s: %w: %s%s", strings.Join(args, " "), err, out.String(), problem.String())
	}
	return out.String(), nil
}

// eventually asks again and again until do returns nil.
func (p *Prover) eventually(ctx context.Context, do func() error) error {
	deadline := time.Now().Add(limit)
	for {
		err := do()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not within %s: %w", limit, err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// becomes waits until a field of an object has a value.
func (p *Prover) becomes(ctx context.Context, object, path, want string) (string, error) {
	var got string
	err := p.eventually(ctx, func() error {
		var err error
		if got, err = p.in(ctx, "get", object, "--output=jsonpath="+path); err != nil {
			return err
		}
		if got != want {
			return fmt.Errorf("%s of %s is %q, want %q", path, object, got, want)
		}
		return nil
	})
	return object + " " + got, err
}
