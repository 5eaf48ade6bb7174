package rights

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// rulesFile is what the chart grants in the namespaces that are watched. hack/generate.sh writes both copies of it.
//
//go:embed rules.yaml
var rulesFile []byte

const (
	leaseGroup  = "coordination.k8s.io"
	holderGroup = "heliostat.io"
	eventGroup  = "events.k8s.io"
	// Gateways is the API group of what moves traffic step by step.
	Gateways = "gateway.networking.k8s.io"
	// Routes is the API group of OpenShift's way in.
	Routes = "route.openshift.io"
)

// Use is how an operator runs, as far as the rights that it needs follow from it.
type Use struct {
	// Namespaces are those that it watches; none means all.
	Namespaces []string
	// Home is the namespace of its Pods, whose events it writes. Empty means that it runs outside of a cluster.
	Home string
	// Lease names the Lease that its replicas compete for, or nothing where there is only one.
	Lease Lease
	// Fence tells that it must not lead without the fence. Where it may, the fence itself says what is missing.
	Fence bool
	// Proxy tells that dashboards are reached through the API server.
	Proxy bool
	// CronJobs, Gateways and Routes tell whether it makes something of these kinds.
	CronJobs, Gateways, Routes bool
}

// Lease is the name of a Lease.
type Lease struct{ Namespace, Name string }

// Needed are the rights that an operator needs, in a fixed order.
func Needed(use Use) []Right {
	var all []Right
	namespaces := use.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	for _, namespace := range namespaces {
		all = append(all, flat(watchedRules(use), namespace)...)
	}
	all = append(all, flat(homeRules(use), use.Home)...)
	all = append(all, flat(leaseRules(use), use.Lease.Namespace)...)
	all = append(all, flat(fenceRules(use), "")...)
	seen := map[Right]bool{}
	return slices.DeleteFunc(all, func(r Right) bool {
		covered := r
		covered.Namespace = ""
		again := seen[r] || seen[covered]
		seen[r] = true
		return again
	})
}

// watchedRules hold in each namespace that is watched.
func watchedRules(use Use) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	if err := yaml.UnmarshalStrict(rulesFile, &rules); err != nil {
		// The file is a part of this program.
		panic(fmt.Errorf("read the rules of the operator: %w", err))
	}
	if use.Proxy {
		rules = append(rules,
			rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"services/proxy"}, Verbs: []string{"create", "get", "update"}},
			rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/proxy"}, Verbs: []string{"get"}})
	}
	for i := range rules {
		rules[i].APIGroups = slices.DeleteFunc(rules[i].APIGroups, func(group string) bool {
			return group == Gateways && !use.Gateways || group == Routes && !use.Routes
		})
		rules[i].Resources = slices.DeleteFunc(rules[i].Resources, func(resource string) bool {
			return strings.HasPrefix(resource, "raycronjobs") && !use.CronJobs
		})
	}
	return rules
}

// homeRules let a replica tell of itself.
func homeRules(use Use) []rbacv1.PolicyRule {
	if use.Home == "" {
		return nil
	}
	return []rbacv1.PolicyRule{{APIGroups: []string{eventGroup}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}}}
}

// leaseRules let a replica win, keep and give back the Lease.
func leaseRules(use Use) []rbacv1.PolicyRule {
	if use.Lease.Name == "" {
		return nil
	}
	return []rbacv1.PolicyRule{
		{APIGroups: []string{leaseGroup}, Resources: []string{"leases"}, Verbs: []string{"create"}},
		{APIGroups: []string{leaseGroup}, Resources: []string{"leases"}, ResourceNames: []string{use.Lease.Name}, Verbs: []string{"get", "update"}},
	}
}

// fenceRules let a replica name itself as the holder.
func fenceRules(use Use) []rbacv1.PolicyRule {
	if !use.Fence {
		return nil
	}
	holder := []string{use.Lease.Namespace}
	return []rbacv1.PolicyRule{
		{APIGroups: []string{holderGroup}, Resources: []string{"holders"}, Verbs: []string{"create"}},
		{APIGroups: []string{holderGroup}, Resources: []string{"holders"}, ResourceNames: holder, Verbs: []string{"get", "update"}},
		{APIGroups: []string{holderGroup}, Resources: []string{"holders/status"}, ResourceNames: holder, Verbs: []string{"update"}},
	}
}

// flat are the single rights that rules give in a namespace.
func flat(rules []rbacv1.PolicyRule, namespace string) []Right {
	var all []Right
	for _, rule := range rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, name := range names {
					for _, verb := range rule.Verbs {
						all = append(all, Right{Verb: verb, Group: group, Resource: resource, Name: name, Namespace: namespace})
					}
				}
			}
		}
	}
	return all
}

// For are those of the rights that matter to the objects of one namespace. An operator for all namespaces lists and watches in
// all of them, but may have been allowed single namespaces for the rest.
func For(needed []Right, watched []string, namespace string) []Right {
	var all []Right
	for _, r := range needed {
		switch {
		case slices.Contains(watched, r.Namespace) && r.Namespace != namespace && r.Group != leaseGroup:
			continue
		case r.Namespace == "" && r.Group != holderGroup && r.Verb != "list" && r.Verb != "watch":
			r.Namespace = namespace
		}
		all = append(all, r)
	}
	return all
}
