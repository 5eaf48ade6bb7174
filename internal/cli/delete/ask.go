package delete

import (
	"bufio"
	"errors"
	"fmt"
	"strings"

	"github.com/heliostat-io/heliostat/internal/cli/kube"
)

// ask asks until the answer is one of y, yes, n and no, in any case.
func ask(env *kube.Env, victims []victim) (bool, error) {
	answers := bufio.NewScanner(env.In)
	for {
		if _, err := fmt.Fprintf(env.ErrOut, "Delete %s? (y/yes/n/no) ", list(victims)); err != nil {
			return false, err
		}
		if !answers.Scan() {
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
