package kube

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Client is the client of one process. Reads are answered by Reader; writes travel through Send, which decides when
// they arrive and what becomes of the answer. Verbs that controllers do not use are missing, and panic.
type Client struct {
	client.Client
	Reader client.Reader
	Schema *Schema
	// Send carries a request to the server and returns the object of the answer.
	Send func(context.Context, Request) (client.Object, error)
}

// Get reads one object.
func (c *Client) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	return c.Reader.Get(ctx, key, into, options...)
}

// List reads objects of one kind.
func (c *Client) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	return c.Reader.List(ctx, into, options...)
}

// Scheme returns that of the Schema.
func (c *Client) Scheme() *runtime.Scheme { return c.Schema.Scheme }

// RESTMapper returns that of the Schema.
func (c *Client) RESTMapper() meta.RESTMapper { return c.Schema.Mapper }

// Create sends an object to be created, and takes in what it has become.
func (c *Client) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	o := (&client.CreateOptions{}).ApplyOptions(options)
	return c.send(ctx, Request{Verb: Create, Object: copyOf(object), Manager: o.FieldManager}, object)
}

// Delete sends a delete.
func (c *Client) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	o := (&client.DeleteOptions{}).ApplyOptions(options)
	now := o.GracePeriodSeconds != nil && *o.GracePeriodSeconds == 0
	return c.send(ctx, Request{Verb: Delete, Preconditions: o.Preconditions, Now: now}, object)
}

// Patch sends a patch, and takes in what the object has become.
func (c *Client) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	o := (&client.PatchOptions{}).ApplyOptions(options)
	return c.patch(ctx, object, patch, "", o)
}

// Status returns the client of the status subresource.
func (c *Client) Status() client.SubResourceWriter { return statusClient{client: c} }

type statusClient struct {
	client.SubResourceWriter
	client *Client
}

// Patch sends a patch of the status.
func (s statusClient) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	o := (&client.SubResourcePatchOptions{}).ApplyOptions(options)
	return s.client.patch(ctx, object, patch, "status", &o.PatchOptions)
}

func (c *Client) patch(ctx context.Context, object client.Object, patch client.Patch, subresource string, o *client.PatchOptions) error {
	data, err := patch.Data(object)
	if err != nil {
		return fmt.Errorf("write the patch: %w", err)
	}
	force := o.Force != nil && *o.Force
	return c.send(ctx, Request{Verb: Patch, Patch: data, PatchType: patch.Type(), Subresource: subresource,
		Manager: o.FieldManager, Force: force}, object)
}

func (c *Client) send(ctx context.Context, r Request, object client.Object) error {
	r.Kind, r.Name = c.Schema.KindOf(object), client.ObjectKeyFromObject(object)
	answer, err := c.Send(ctx, r)
	if err != nil || r.Verb == Delete {
		return err
	}
	setTo(object, copyOf(answer))
	return nil
}

// setTo overwrites an object by another one of its type.
func setTo(object, by client.Object) { reflect.ValueOf(object).Elem().Set(reflect.ValueOf(by).Elem()) }

func valueOf(v any) reflect.Value { return reflect.ValueOf(v) }

// fill puts an object into what a caller wants it in: its own type, or metadata only.
func (s *Schema) fill(into, object client.Object) {
	partial, isPartial := into.(*metav1.PartialObjectMetadata)
	if !isPartial {
		setTo(into, copyOf(object))
		return
	}
	copied := copyOf(object)
	field(copied, "ObjectMeta").Addr().Interface().(*metav1.ObjectMeta).DeepCopyInto(&partial.ObjectMeta)
}
