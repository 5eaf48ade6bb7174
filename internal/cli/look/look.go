// Package look reads what the screens of the plugin show: an object, all that belongs to it, and what the rules find.
package look

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-io/heliostat/internal/cli/kube"
	"github.com/heliostat-io/heliostat/internal/diagnose"
	"github.com/heliostat-io/heliostat/internal/diagnose/gather"
)

// Sight is one look at one object.
type Sight struct {
	Target   kube.Target
	Object   client.Object
	Snapshot *diagnose.Snapshot
	Findings []diagnose.Finding
}

// Looker looks at objects over one connection.
type Looker struct {
	env    *kube.Env
	source gather.Source
}

// Open connects. An error of the package comes with the exit code for not being able to look.
func Open(env *kube.Env) (*Looker, error) {
	source, err := Source(env)
	if err != nil {
		return nil, kube.ExitError{Code: kube.ExitCannotLook, Err: err}
	}
	return &Looker{env, source}, nil
}

// At looks at the object that the user named.
func (l *Looker) At(ctx context.Context, argument string) (*Sight, error) {
	sight, err := l.at(ctx, argument)
	if err != nil {
		return nil, kube.ExitError{Code: kube.ExitCannotLook, Err: err}
	}
	return sight, nil
}

func (l *Looker) at(ctx context.Context, argument string) (*Sight, error) {
	namespace, err := l.env.Namespace()
	if err != nil {
		return nil, err
	}
	object, target, err := kube.Find(ctx, l.source.Client, namespace, argument)
	if err != nil {
		return nil, err
	}
	snapshot := l.source.Of(ctx, object)
	return &Sight{Target: target, Object: object, Snapshot: snapshot, Findings: diagnose.Findings(snapshot)}, nil
}

// At looks once at the object that the user named.
func At(ctx context.Context, env *kube.Env, argument string) (*Sight, error) {
	looker, err := Open(env)
	if err != nil {
		return nil, err
	}
	return looker.At(ctx, argument)
}

// Source is the live cluster of the connection. Logs and dashboards are read where the connection allows it.
func Source(env *kube.Env) (gather.Source, error) {
	c, err := env.Client()
	if err != nil {
		return gather.Source{}, err
	}
	source := gather.Source{Client: c, Now: env.Now}
	if set, err := env.Clientset(); err == nil {
		source.Tail, source.Ask = tail(set), ask(set, env.Now)
	}
	return source, nil
}

const (
	// tailLines and tailBytes bound what is read of one log.
	tailLines = 20
	tailBytes = 16 << 10
	// askTime bounds how long a dashboard is waited for.
	askTime = 5 * time.Second
)

func tail(set kubernetes.Interface) gather.Tail {
	return func(ctx context.Context, namespace, pod, container string, previous bool) (string, error) {
		stream, err := set.CoreV1().Pods(namespace).GetLogs(pod, &corev1.PodLogOptions{
			Container: container, Previous: previous, TailLines: ptr.To(int64(tailLines)), LimitBytes: ptr.To(int64(tailBytes)),
		}).Stream(ctx)
		if err != nil {
			return "", fmt.Errorf("open: %w", err)
		}
		text, err := io.ReadAll(stream)
		if err := errors.Join(err, stream.Close()); err != nil {
			return "", fmt.Errorf("read: %w", err)
		}
		return string(text), nil
	}
}

// ask asks the dashboard for its version through the API server's proxy, which needs no way into the network of the Pods.
func ask(set kubernetes.Interface, now func() time.Time) gather.Ask {
	return func(ctx context.Context, namespace, service string) diagnose.Dashboard {
		ctx, cancel := context.WithTimeout(ctx, askTime)
		defer cancel()
		start := now()
		answer, err := set.CoreV1().Services(namespace).ProxyGet("http", service, "dashboard", "/api/version", nil).DoRaw(ctx)
		took := now().Sub(start)
		switch {
		case apierrors.IsForbidden(err):
			// Not being allowed to ask says nothing about the dashboard.
			return diagnose.Dashboard{}
		case apierrors.IsUnauthorized(err):
			// A dashboard that wants a token is one that answers.
			return diagnose.Dashboard{Took: took}
		case err != nil:
			return diagnose.Dashboard{Took: took, Error: reason(err)}
		}
		version := struct {
			RayVersion string `json:"ray_version"`
		}{}
		if err := json.Unmarshal(answer, &version); err != nil {
			return diagnose.Dashboard{Took: took, Error: "its answer is no JSON"}
		}
		return diagnose.Dashboard{Took: took, RayVersion: version.RayVersion}
	}
}

// reason is an error without what changes from one time to the next.
func reason(err error) string {
	var timeout net.Error
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout() {
		return fmt.Sprintf("no answer within %s", askTime)
	}
	return strings.Join(strings.Fields(err.Error()), " ")
}
