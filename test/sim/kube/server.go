package kube

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Sender is who sends a request.
type Sender struct {
	// Name is for people, such as "kubelet" or "operator-1".
	Name string
	// UID is that of the Pod in the sender's token; empty for senders that the fence does not concern.
	UID string
	// Term is the term in which the request was made.
	Term int64
}

// Verb is what a request asks for.
type Verb string

// The verbs that write.
const (
	Create Verb = "create"
	Update Verb = "update"
	Patch  Verb = "patch"
	Delete Verb = "delete"
)

// Request is one write as it travels to the server.
type Request struct {
	Sender      Sender
	Verb        Verb
	Kind        string
	Name        types.NamespacedName
	Subresource string
	// Object is what to create, or to replace by. The server keeps it.
	Object client.Object
	// Patch of PatchType is what to change.
	Patch     []byte
	PatchType types.PatchType
	// Manager is the field manager; Force takes fields from others in an apply.
	Manager string
	Force   bool
	// Preconditions of a delete.
	Preconditions *metav1.Preconditions
	// Now makes a delete of a Pod immediate.
	Now bool
}

// String names verb, kind and name.
func (r Request) String() string {
	kind := r.Kind
	if r.Subresource != "" {
		kind += "/" + r.Subresource
	}
	return fmt.Sprintf("%s %s %s", r.Verb, kind, r.Name.Name)
}

// Write is a request that changed something.
type Write struct {
	Request
	RV int64
	// Before is nil for a create, After for an object that was removed.
	Before, After client.Object
}

// change is one entry of the history that watches are served from.
type change struct {
	rv            int64
	name          types.NamespacedName
	before, after client.Object
}

// Server is the model of the API server and of what it stores. Objects that it hands out must not be changed.
type Server struct {
	Schema *Schema
	// Clock is the server's.
	Clock func() time.Time
	// Admit may refuse a request. Optional.
	Admit func(Request) error
	// Accepted is told of every write that changed something. Optional.
	Accepted func(Write)
	// IgnorePreconditions and FreshNames break the server on purpose: it does not compare UIDs and resourceVersions, or
	// stores each new Pod under a name of its own. Tests use them to prove that they would notice.
	IgnorePreconditions, FreshNames bool
	// Forget is given each changed object before it is stored, to break it in the same way. Optional.
	Forget func(client.Object)

	objects map[string]map[types.NamespacedName]client.Object
	history map[string][]change
	lives   map[string]int
	rv      int64
	ips     int
}

// NewServer returns an empty Server.
func NewServer(schema *Schema, clock func() time.Time) *Server {
	s := &Server{Schema: schema, Clock: clock, objects: map[string]map[types.NamespacedName]client.Object{},
		history: map[string][]change{}, lives: map[string]int{}}
	for name := range schema.byName {
		s.objects[name] = map[types.NamespacedName]client.Object{}
	}
	return s
}

// RV returns the resourceVersion of the last change.
func (s *Server) RV() int64 { return s.rv }

// Get returns an object as it is stored, or nil.
func (s *Server) Get(kind string, name types.NamespacedName) client.Object {
	if object, ok := s.objects[kind][name]; ok {
		return object
	}
	return nil
}

// List returns all objects of a kind by name.
func (s *Server) List(kind string) []client.Object { return sorted(s.objects[kind]) }

func sorted(objects map[types.NamespacedName]client.Object) []client.Object {
	list := make([]client.Object, 0, len(objects))
	for _, object := range objects {
		list = append(list, object)
	}
	slices.SortFunc(list, byName)
	return list
}

func byName(a, b client.Object) int {
	if c := strings.Compare(a.GetNamespace(), b.GetNamespace()); c != 0 {
		return c
	}
	return strings.Compare(a.GetName(), b.GetName())
}

// Orphans returns the objects whose owners are all gone. The garbage collector deletes them.
func (s *Server) Orphans() []client.Object {
	alive := map[types.UID]bool{}
	for _, objects := range s.objects {
		for _, object := range objects {
			alive[object.GetUID()] = true
		}
	}
	var orphans []client.Object
	for _, kind := range s.Schema.Kinds() {
		for _, object := range s.List(kind) {
			owners := object.GetOwnerReferences()
			owned := slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return alive[o.UID] })
			if len(owners) > 0 && !owned && object.GetDeletionTimestamp() == nil {
				orphans = append(orphans, object)
			}
		}
	}
	return orphans
}

// Change lets a part of Kubernetes, such as the kubelet, change an object. Nothing happens if it is gone.
func (s *Server) Change(who string, object client.Object, subresource string, change func(client.Object)) error {
	kind, name := s.Schema.KindOf(object), client.ObjectKeyFromObject(object)
	live := s.Get(kind, name)
	if live == nil {
		return nil
	}
	next := copyOf(live)
	change(next)
	_, err := s.Do(Request{Sender: Sender{Name: who}, Verb: Update, Kind: kind, Name: name, Subresource: subresource, Object: next})
	return err
}

// Remove lets a part of Kubernetes delete an object; now skips the grace of a Pod.
func (s *Server) Remove(who string, object client.Object, now bool) error {
	uid := object.GetUID()
	_, err := s.Do(Request{Sender: Sender{Name: who}, Verb: Delete, Kind: s.Schema.KindOf(object),
		Name: client.ObjectKeyFromObject(object), Preconditions: &metav1.Preconditions{UID: &uid}, Now: now})
	return client.IgnoreNotFound(err)
}

// Add lets a user create an object.
func (s *Server) Add(object client.Object) error {
	_, err := s.Do(Request{Sender: Sender{Name: "user"}, Verb: Create, Kind: s.Schema.KindOf(object),
		Name: client.ObjectKeyFromObject(object), Object: copyOf(object), Manager: "user"})
	return err
}

// Do carries a request out and returns the object as it is afterwards. Of a removed object that is the last state.
func (s *Server) Do(r Request) (client.Object, error) {
	if s.Admit != nil {
		if err := s.Admit(r); err != nil {
			return nil, err
		}
	}
	k := s.Schema.byName[r.Kind]
	live := s.Get(r.Kind, r.Name)
	switch {
	case r.Verb == Create:
		return s.create(k, r, live)
	case live == nil:
		return nil, apierrors.NewNotFound(k.resource, r.Name.Name)
	case r.Verb == Delete:
		return s.remove(k, r, live)
	}
	next, err := s.changed(k, r, live)
	if err != nil {
		return nil, err
	}
	return s.store(k, r, live, next)
}

// commit makes a change visible.
func (s *Server) commit(k *kind, r Request, before, after client.Object) {
	s.rv++
	entry := change{rv: s.rv, name: r.Name, before: before, after: after}
	if after == nil {
		delete(s.objects[k.name], r.Name)
	} else {
		after.SetResourceVersion(strconv.FormatInt(s.rv, 10))
		s.objects[k.name][r.Name] = after
	}
	s.history[k.name] = append(s.history[k.name], entry)
	if s.Accepted != nil {
		s.Accepted(Write{Request: r, RV: s.rv, Before: before, After: after})
	}
}
