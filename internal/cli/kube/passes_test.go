package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestWhatPasses(t *testing.T) {
	clusters := schema.GroupResource{Group: "ray.io", Resource: "rayclusters"}
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"no error":                            {nil, false},
		"the version is forgotten":            {apierrors.NewResourceExpired("too old resource version"), true},
		"the same, wrapped":                   {fmt.Errorf("read: %w", apierrors.NewResourceExpired("too old")), true},
		"the API server is about to go":       {apierrors.NewServiceUnavailable("shutting down"), true},
		"it has too much to do":               {apierrors.NewTooManyRequests("later", 1), true},
		"its storage is not well":             {apierrors.NewInternalError(errors.New("etcd has no leader")), true},
		"nobody listens":                      {fmt.Errorf("dial: %w", syscall.ECONNREFUSED), true},
		"the connection breaks":               {fmt.Errorf("read: %w", syscall.ECONNRESET), true},
		"the answer ends in the middle":       {io.ErrUnexpectedEOF, true},
		"the name server does not answer":     {fmt.Errorf("dial: %w", &net.DNSError{IsTimeout: true}), true},
		"the network is being changed":        {fmt.Errorf("dial: %w", &net.DNSError{IsTemporary: true}), true},
		"no API server has that name":         {fmt.Errorf("dial: %w", &net.DNSError{IsNotFound: true}), false},
		"it is forbidden":                     {apierrors.NewForbidden(clusters, "c", errors.New("not you")), false},
		"the login is over":                   {apierrors.NewUnauthorized("expired"), false},
		"the kind is not served":              {apierrors.NewNotFound(clusters, ""), false},
		"the user interrupts":                 {context.Canceled, false},
		"it is an error that nobody knows of": {errors.New("what"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := passes(c.err); got != c.want {
				t.Errorf("%v passes: %v, want %v", c.err, got, c.want)
			}
		})
	}
}
