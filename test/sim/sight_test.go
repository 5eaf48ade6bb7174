package sim

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// sight is how the controller of RayServices reads. With some protections switched off it does not see what they rest on.
func (p *process) sight(reader client.Reader) client.Reader {
	switch p.world.plan.broken {
	case noPods:
		return credulous{reader}
	case noSight:
		return headless{reader}
	default:
		return reader
	}
}

// credulous takes every endpoint for ready.
type credulous struct{ client.Reader }

// List shows EndpointSlices as they may become.
func (r credulous) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	err := r.Reader.List(ctx, list, options...)
	if endpoints, ok := list.(*discoveryv1.EndpointSliceList); ok {
		for i := range endpoints.Items {
			for j := range endpoints.Items[i].Endpoints {
				endpoints.Items[i].Endpoints[j].Conditions.Ready = ptr.To(true)
			}
		}
	}
	return err
}

// headless does not see that the Service of the head still leads to another cluster than that of Serve: so far as that goes,
// nothing keeps a cluster from being retired.
type headless struct{ client.Reader }

// Get hides where the Service of a head leads to.
func (r headless) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	err := r.Reader.Get(ctx, key, into, options...)
	if service, ok := into.(*corev1.Service); ok && err == nil {
		r.hide(ctx, service)
	}
	return err
}

// List hides where the Services of heads lead to.
func (r headless) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	err := r.Reader.List(ctx, list, options...)
	if services, ok := list.(*corev1.ServiceList); ok {
		for i := range services.Items {
			r.hide(ctx, &services.Items[i])
		}
	}
	return err
}

func (r headless) hide(ctx context.Context, service *corev1.Service) {
	owner, isOfHead := strings.CutSuffix(service.Name, "-head-svc")
	serve := &corev1.Service{}
	if !isOfHead || r.Reader.Get(ctx, named(owner+"-serve-svc"), serve) != nil {
		return
	}
	if service.Spec.Selector[rayv1.LabelCluster] != serve.Spec.Selector[rayv1.LabelCluster] {
		delete(service.Spec.Selector, rayv1.LabelCluster)
	}
}
