// Package rights says what the operator has to be allowed to do, and what a missing right is called. Operator and plugin ask
// the API server for the same list.
package rights

import (
	"fmt"
	"regexp"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
)

// Right is one permission.
type Right struct {
	// User is the account that needs it, or empty where nobody has to be told.
	User string
	Verb string
	// Group is the API group, empty for the core group.
	Group string
	// Resource is the plural of the kind, with the subresource after a slash.
	Resource string
	// Name is that of the only object, or empty for all.
	Name string
	// Namespace is empty for all namespaces, and for what belongs to none.
	Namespace string
}

// Same tells whether two rights are for the same, whoever needs them.
func (r Right) Same(other Right) bool {
	other.User = r.User
	return r == other
}

// Attributes are what an access review asks.
func (r Right) Attributes() *authorizationv1.ResourceAttributes {
	resource, subresource, _ := strings.Cut(r.Resource, "/")
	return &authorizationv1.ResourceAttributes{Verb: r.Verb, Group: r.Group, Resource: resource, Subresource: subresource,
		Name: r.Name, Namespace: r.Namespace}
}

// String is the right as it stands in a sentence: "create pods in namespace a".
func (r Right) String() string { return r.Verb + " " + r.what() }

func (r Right) what() string {
	text := r.Resource
	if r.Group != "" {
		text += "." + r.Group
	}
	if r.Name != "" {
		text += " " + r.Name
	}
	switch {
	case r.Namespace != "":
		return text + " in namespace " + r.Namespace
	case r.Group == holderGroup:
		return text // belongs to no namespace
	default:
		return text + " in all namespaces"
	}
}

// Question is the command that asks for the right.
func (r Right) Question() string {
	main, sub, divided := strings.Cut(r.Resource, "/")
	if r.Group != "" {
		main += "." + r.Group
	}
	if r.Name != "" {
		main += "/" + r.Name
	}
	command := "kubectl auth can-i " + r.Verb + " " + main
	if divided {
		command += " --subresource=" + sub
	}
	if r.Namespace != "" {
		command += " -n " + r.Namespace
	} else if r.Group != holderGroup {
		command += " -A"
	}
	if r.User != "" {
		command += " --as=" + r.User
	}
	return command
}

// Role is which of the chart's roles has the right.
func (r Right) Role() string {
	switch {
	case r.Group == holderGroup:
		return "the operator's ClusterRole for the fence"
	case r.Group == leaseGroup:
		return "the operator's Role for leader election in namespace " + r.Namespace
	case r.Namespace != "":
		return "the operator's ClusterRole, or its Role in namespace " + r.Namespace
	default:
		return "the operator's ClusterRole"
	}
}

// Names puts rights together that differ in the verb only, and names no more than most of those.
func Names(all []Right, most int) string {
	var order []Right
	verbs := map[Right][]string{}
	for _, r := range all {
		of := r
		of.Verb = ""
		if verbs[of] == nil {
			order = append(order, of)
		}
		verbs[of] = append(verbs[of], r.Verb)
	}
	var parts []string
	for i, of := range order {
		if i == most {
			parts = append(parts, fmt.Sprintf("%d more", len(order)-most))
			break
		}
		parts = append(parts, strings.Join(verbs[of], ", ")+" "+of.what())
	}
	return strings.Join(parts, "; ")
}

// denied is what the API server says of a request that its authorizer does not allow.
var denied = regexp.MustCompile(`User "([^"]*)" cannot (\S+) resource "([^"]*)" in API group "([^"]*)"(?: in the namespace "([^"]*)")?`)

// Denied reads the missing right out of what the API server says, and tells whether there is one.
func Denied(text string) (Right, bool) {
	m := denied.FindStringSubmatch(text)
	if m == nil {
		return Right{}, false
	}
	return Right{User: m[1], Verb: m[2], Resource: m[3], Group: m[4], Namespace: m[5]}, true
}
