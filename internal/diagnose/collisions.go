package diagnose

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// The words in which the operator names an object that stands in its way, see internal/raycluster, internal/rayservice and
// internal/rayjob.
var (
	collisionNeeds  = regexp.MustCompile(`needs ([A-Z]\w+) (\S+), but one of that name exists already and (?:belongs to ([A-Z]\w+) (\S+))?`)
	collisionExists = regexp.MustCompile(`([A-Z]\w+) [^\s/]+/(\S+) exists and belongs to someone else`)
	collisionLabel  = regexp.MustCompile(`Pod (\S+) carries the label (\S+) of this cluster`)
)

// collisionNext says for each object in the way what to do about it. One that has an owner comes back when it is deleted, so it is the
// owner that must go.
func collisionNext(o object, message string) string {
	var commands, owned []string
	remove := func(kind, name string) {
		commands = append(commands, fmt.Sprintf("\"kubectl delete %s %s\"", strings.ToLower(kind), name))
	}
	for _, m := range collisionNeeds.FindAllStringSubmatch(message, -1) {
		if m[3] != "" {
			owned = append(owned, fmt.Sprintf("%s %s is that of %s %s", m[1], m[2], m[3], m[4]))
			continue
		}
		remove(m[1], m[2])
	}
	for _, m := range collisionExists.FindAllStringSubmatch(message, -1) {
		remove(m[1], m[2])
	}
	for _, m := range collisionLabel.FindAllStringSubmatch(message, -1) {
		commands = append(commands, fmt.Sprintf("\"kubectl label pod %s %s-\"", m[1], m[2]))
	}
	slices.Sort(commands)
	commands = slices.Compact(commands)
	rename := fmt.Sprintf("give %s another metadata.name", o)
	switch {
	case len(owned) > 0:
		return fmt.Sprintf("G%s: %s, which would make it again.", rename[1:], strings.Join(owned, "; "))
	case len(commands) == 0:
		return fmt.Sprintf("Rename or delete those objects if nobody needs them, or %s.", rename)
	case len(commands) == 1:
		return fmt.Sprintf("Run %s if nobody needs it, or %s.", commands[0], rename)
	default:
		return fmt.Sprintf("Run %s if nobody needs them, or %s.", strings.Join(commands, " and "), rename)
	}
}
