// Package session is the command session: ports of a head on this machine (spec/ecosystem.md, section 2.6).
package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-io/heliostat/internal/cli/forward"
	"github.com/heliostat-io/heliostat/internal/cli/head"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
	"github.com/heliostat-io/heliostat/internal/ray"
)

// pause is the time between a loss and the next attempt, and between looks at who is the head (spec/ecosystem.md, 2.6).
const pause = 3 * time.Second

// patience is how long one attempt to connect may take.
const patience = time.Minute

const long = `Make the ports of a head reachable on this machine, under the same numbers:

  RayCluster  the dashboard (8265) and the Ray client (10001)
  RayJob      the dashboard (8265)
  RayService  the dashboard (8265) and Ray Serve (8000)

The session goes on when the connection is lost or the head is replaced. Ctrl-C ends it.`

// New returns the command session.
func New(env *kube.Env) *cobra.Command { return newSession(env, pause) }

func newSession(env *kube.Env, pause time.Duration) *cobra.Command {
	verbose := false
	cmd := &cobra.Command{
		Use:               "session (NAME | TYPE/NAME)",
		Short:             "Reach the dashboard, the Ray client and Ray Serve from this machine",
		Long:              long,
		Example:           fmt.Sprintf("  %[1]s session demo\n  %[1]s session rayservice/shop", env.Program),
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: env.CompleteNames(kube.RayCluster, kube.RayJob, kube.RayService),
		RunE: func(cmd *cobra.Command, args []string) error {
			s := &session{env: env, log: io.Discard, pause: pause}
			if verbose {
				s.log = env.ErrOut
			}
			return s.run(cmd.Context(), args[0])
		},
	}
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "Say which Pod is reached, and what happens to single connections.")
	return cmd
}

// session is one run of the command.
type session struct {
	env    *kube.Env
	client client.WithWatch
	target kube.Target
	log    io.Writer
	pause  time.Duration
	// said is what the user was told last.
	said string
}

// entrance is one port that a session offers.
type entrance struct {
	// name is that of the port of the head Service, and number the port when the Service does not tell.
	name   string
	number int32
	// title and scheme are for the user.
	title, scheme string
}

// entrances are what a session offers for a kind.
func entrances(kind kube.Kind) []entrance {
	dashboard := entrance{ray.PortNameDashboard, ray.DefaultDashboardPort, "Ray dashboard", "http"}
	switch kind {
	case kube.RayCluster:
		return []entrance{dashboard, {ray.PortNameClient, ray.DefaultClientPort, "Ray client", "ray"}}
	case kube.RayService:
		return []entrance{dashboard, {ray.PortNameServe, ray.DefaultServePort, "Ray Serve", "http"}}
	default:
		return []entrance{dashboard}
	}
}

// run connects, and connects again after each loss. What stands in the way of the first connection is an error.
func (s *session) run(ctx context.Context, argument string) error {
	namespace, err := s.env.Namespace()
	if err != nil {
		return err
	}
	if s.client, err = s.env.Client(); err != nil {
		return err
	}
	if _, s.target, err = kube.Find(ctx, s.client, namespace, argument); err != nil {
		return err
	}
	for connected := false; ; {
		f, service, pod, err := s.connect(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			s.welcome(f, pod, connected)
			connected = true
			err = s.watch(ctx, f, service, pod)
			f.Close()
		case !connected, errors.Is(err, forward.ErrPortTaken), errors.Is(err, errGone):
			return err
		}
		if ctx.Err() != nil {
			return nil
		}
		s.say("%v; trying again", err)
		if kube.Sleep(ctx, s.pause) != nil {
			return nil
		}
	}
}

// errGone says that what the session is about was deleted.
var errGone = errors.New("it was deleted")

// say tells the user something, unless it is what was said before: attempts fail for the same reason many times.
func (s *session) say(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if text != s.said {
		_, _ = fmt.Fprintln(s.env.ErrOut, text)
	}
	s.said = text
}

// resolve finds the head Service of the target, and the Pod behind it.
func (s *session) resolve(ctx context.Context) (*corev1.Service, *corev1.Pod, error) {
	object := s.target.Kind.New()
	if err := s.client.Get(ctx, s.target.NamespacedName, object); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil, fmt.Errorf("%s: %w", s.target, errGone)
		}
		return nil, nil, fmt.Errorf("read %s: %w", s.target, err)
	}
	cluster, err := head.Cluster(ctx, s.client, object)
	if err != nil {
		return nil, nil, err
	}
	return forward.PodOf(ctx, s.client, head.Service(cluster))
}

// connect forwards the ports of the present head.
func (s *session) connect(ctx context.Context) (*forward.Forwarding, *corev1.Service, *corev1.Pod, error) {
	service, pod, err := s.resolve(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	config, err := s.env.Config()
	if err != nil {
		return nil, nil, nil, err
	}
	var ports []forward.Port
	for _, e := range entrances(s.target.Kind) {
		port := forward.ServicePort(service, e.name, e.number)
		ports = append(ports, forward.Port{Local: port, Remote: forward.TargetPort(service, pod, port)})
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	f, err := forward.Start(limited, config, types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, ports, s.log)
	return f, service, pod, err
}

// welcome says where to find what, once.
func (s *session) welcome(f *forward.Forwarding, pod *corev1.Pod, before bool) {
	_, _ = fmt.Fprintf(s.log, "Connected to Pod %s/%s.\n", pod.Namespace, pod.Name)
	if before {
		s.say("Connected again, to Pod %s.", pod.Name)
		return
	}
	for i, e := range entrances(s.target.Kind) {
		_, _ = fmt.Fprintf(s.env.Out, "%-14s %s://%s\n", e.title+":", e.scheme, f.Address(i))
	}
}

// watch returns why the connection is of no use any more. The connection itself may not notice when the head is replaced,
// for example while its node is cut off.
func (s *session) watch(ctx context.Context, f *forward.Forwarding, service *corev1.Service, pod *corev1.Pod) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-f.Done():
			if err := f.Err(); err != nil {
				return fmt.Errorf("the connection to Pod %s is lost", pod.Name)
			}
			return nil
		case <-clock.RealClock{}.After(s.pause):
		}
		now, present, err := s.resolve(ctx)
		if err != nil {
			continue // While the connection works, it does not matter what the API server says.
		}
		if present.UID != pod.UID || present.Name != pod.Name || now.Name != service.Name {
			return fmt.Errorf("the head was replaced: Pod %s by Pod %s", pod.Name, present.Name)
		}
	}
}
