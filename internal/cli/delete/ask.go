package delete

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/heliostat-io/heliostat/internal/cli/kube"
)

// ask asks until the answer is one of y, yes, n and no, in any case, or the context ends.
func ask(ctx context.Context, env *kube.Env, victims []victim) (bool, error) {
	answers := bufio.NewScanner(env.In)
	for {
		if _, err := fmt.Fprintf(env.ErrOut, "Delete %s? (y/yes/n/no) ", list(victims)); err != nil {
			return false, err
		}
		more, err := scan(ctx, answers)
		if err != nil {
			// What is said next stands on a line of its own, not behind the question.
			_, _ = fmt.Fprintln(env.ErrOut)
			return false, err
		}
		if !more {
			break
		}
		switch strings.ToLower(strings.TrimSpace(answers.Text())) {
		case "y", "yes":
			return true, nil
		case "n", "no":
			return false, nil
		}
	}
	if err := answers.Err(); err != nil {
		return false, fmt.Errorf("read the answer: %w", err)
	}
	return false, errors.New("nobody answered, so nothing was deleted: answer y or n, or give --yes")
}

// scan reads a line and tells whether there was one. Nothing can end the reading itself, so when the context ends it is
// left behind, to end with the program.
func scan(ctx context.Context, lines *bufio.Scanner) (bool, error) {
	read := make(chan bool, 1)
	go func() { read <- lines.Scan() }()
	select {
	case more := <-read:
		return more, nil
	case <-ctx.Done():
		return false, fmt.Errorf("nothing was deleted: %w", context.Cause(ctx))
	}
}
