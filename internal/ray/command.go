package ray

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// raiseFileLimit precedes "ray start" in the container's line of shell. Ray opens a file for each connection, and
// the limit that container runtimes give is often too low for more than a few hundred workers.
const raiseFileLimit = "ulimit -n ${RAY_START_ULIMIT_OPEN_FILES:-65536}"

// Shell says how the line of shell in a container is run.
type Shell struct {
	// Login makes it a login shell, which reads the profile files of the image.
	Login bool
}

// Command returns the command of a container whose only argument is a line of shell.
func (s Shell) Command() []string {
	if s.Login {
		return []string{"/bin/bash", "-cl", "--"}
	}
	return []string{"/bin/bash", "-c", "--"}
}

// StartCommand renders the parameters of a node as the "ray start" line that its container runs.
//
// Flags are sorted by name. The values true and false, in any letter case, make a switch that is given or left out,
// except for the three flags of which Ray expects the value. All other values become shell text as described in
// quote.go.
func StartCommand(role Role, params map[string]string) string {
	words := []string{"ray start"}
	if role == Head {
		words = append(words, "--head")
	}
	for _, key := range slices.Sorted(maps.Keys(params)) {
		if flag := renderFlag(key, params[key]); flag != "" {
			words = append(words, flag)
		}
	}
	return strings.Join(words, " ")
}

func renderFlag(key, value string) string {
	flag := "--" + quoteKey(key)
	if !takesBoolean(key) {
		if strings.EqualFold(value, "true") {
			return flag
		}
		if strings.EqualFold(value, "false") {
			return ""
		}
	}
	return flag + "=" + quoteFlagValue(value)
}

// takesBoolean reports whether Ray's command line expects true or false after the flag. For all other booleans the
// flag alone means true.
func takesBoolean(key string) bool {
	return key == "log-color" || key == "include-dashboard" || key == "include-log-monitor"
}

// OwnCommand says what becomes of the command that the user gave to the Ray container.
type OwnCommand int

const (
	// RunsFirst has it run before Ray, which starts even when it fails: && binds only the limit command. That is as on
	// KubeRay, whose users have written their manifests for it and whose clients compare this text.
	RunsFirst OwnCommand = iota
	// MustSucceed has it run before Ray, and ends the container when it fails.
	MustSucceed
	// IsAll leaves the container as it is.
	IsAll
)

// SetCommand makes the container run the start command, unless the user runs Ray by other means: by IsAll, or because
// one word of the container's command or arguments holds the text "ray start". Other words of the user are run before Ray
// as a line of shell, whereby they lose the quoting that the list form gave them.
func SetCommand(container *corev1.Container, start string, shell Shell, own OwnCommand) {
	words := slices.Concat(container.Command, container.Args)
	runsRay := func(word string) bool { return strings.Contains(word, "ray start") }
	if own == IsAll || slices.ContainsFunc(words, runsRay) {
		return
	}
	line := raiseFileLimit + "; " + start
	switch {
	case len(words) == 0:
	case own == MustSucceed:
		line = strings.Join(words, " ") + " && { " + line + "; }"
	default:
		line = strings.Join(words, " ") + " && " + line
	}
	container.Command = shell.Command()
	container.Args = []string{line}
}
