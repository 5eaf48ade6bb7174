package kube

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ErrNotFound is wrapped by errors that say that an object is not there. Other errors say that it could not be looked for,
// so that it may be there.
var ErrNotFound = errors.New("not found")

// NotFound returns the error for an object that is not there. It wraps ErrNotFound.
func NotFound(t Target) error {
	return missing{what: string(t.Kind), name: t.Name, namespace: t.Namespace}
}

// missing says what is not there.
type missing struct{ what, name, namespace string }

func (m missing) Error() string {
	return fmt.Sprintf("no %s %q in namespace %q", m.what, m.name, m.namespace)
}

// Unwrap makes it an ErrNotFound.
func (missing) Unwrap() error { return ErrNotFound }

// Find reads the object that a user named. NAME without a type is that of a RayCluster, or else that of the only object
// of another kind that has it. The error wraps ErrNotFound only when it is certain that there is no such object.
func Find(ctx context.Context, c client.Reader, namespace, argument string) (client.Object, Target, error) {
	target, err := ParseTarget(namespace, argument)
	if err != nil {
		return nil, target, err
	}
	if !strings.Contains(argument, "/") {
		return findUntyped(ctx, c, target)
	}
	object, err := get(ctx, c, target)
	return object, target, err
}

// get reads an object of a known kind.
func get(ctx context.Context, c client.Reader, target Target) (client.Object, error) {
	object := target.Kind.New()
	err := c.Get(ctx, target.NamespacedName, object)
	switch {
	case apierrors.IsNotFound(err):
		return nil, NotFound(target)
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", target, err)
	}
	return object, nil
}

// match is an object of the name that is looked for.
type match struct {
	object client.Object
	target Target
}

// findUntyped reads the object of a name whose kind the user did not say. A kind that the user may not read does not end
// the search, because many may read only some kinds.
func findUntyped(ctx context.Context, c client.Reader, target Target) (client.Object, Target, error) {
	var matches []match
	var absent []string
	var refused []error
	for _, kind := range Kinds() {
		candidate := Target{Kind: kind, NamespacedName: target.NamespacedName}
		object, err := get(ctx, c, candidate)
		switch {
		case err == nil && kind == RayCluster:
			return object, candidate, nil
		case err == nil:
			matches = append(matches, match{object: object, target: candidate})
		case errors.Is(err, ErrNotFound), kind != RayCluster && meta.IsNoMatchError(err):
			// An older API may lack a kind, as it is with RayCronJob. Without RayClusters there is none at all.
			absent = append(absent, string(kind))
		case apierrors.IsForbidden(err):
			refused = append(refused, err)
		default:
			return nil, target, err
		}
	}
	if len(matches) == 1 {
		return matches[0].object, matches[0].target, nil
	}
	if len(matches) > 1 {
		return nil, target, ambiguous(matches)
	}
	return nil, target, nobody(target, absent, refused)
}

// ambiguous asks for a type, with the words to type.
func ambiguous(matches []match) error {
	words := make([]string, 0, len(matches))
	for _, m := range matches {
		words = append(words, strings.ToLower(string(m.target.Kind))+"/"+m.target.Name)
	}
	return fmt.Errorf("%q in namespace %q may be one of several objects: write %s",
		matches[0].target.Name, matches[0].target.Namespace, alternatives(words))
}

// nobody says which kinds have no object of the name, and which could not be read.
func nobody(target Target, absent []string, refused []error) error {
	none := missing{what: alternatives(absent), name: target.Name, namespace: target.Namespace}
	switch {
	case len(refused) == 0:
		return none
	case len(absent) == 0:
		return errors.Join(refused...)
	default:
		return fmt.Errorf("%s, and other kinds may not be read: %w", none.Error(), errors.Join(refused...))
	}
}
