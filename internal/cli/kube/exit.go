package kube

import "fmt"

// Exit codes of the plugin (spec/cli-ux.md, section 4.2). They are part of its interface: scripts rely on them.
const (
	// ExitFailed says that what was asked for did not happen, or that findings were made.
	ExitFailed = 1
	// ExitCannotLook says that the plugin could not find out, for example because it was not told in words that it knows.
	ExitCannotLook = 2
	// ExitTimeout says that the time was over first, as in timeout(1).
	ExitTimeout = 124
)

// ExitError ends the program with a code. Its Err is printed when there is one.
type ExitError struct {
	Code int
	Err  error
}

func (e ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns what is printed.
func (e ExitError) Unwrap() error { return e.Err }
