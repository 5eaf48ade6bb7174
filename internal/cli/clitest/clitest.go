// Package clitest runs commands of the plugin against objects in memory.
package clitest

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/spf13/cobra"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// Now is the time on the clock of every command under test.
func Now() time.Time { return now }

// Kube is a cluster in memory and what a command wrote.
type Kube struct {
	client.WithWatch
	// Env is what the commands run in. Tests may replace parts of it before Run.
	Env *kube.Env
	// In is what the user types.
	In *bytes.Buffer
	// Out and ErrOut are what the last command wrote.
	Out, ErrOut *bytes.Buffer
}

// create makes objects, and answers reviews of what an account may do: all.
func create(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
	if review, ok := object.(*authorizationv1.SubjectAccessReview); ok {
		review.Status.Allowed = true
		return nil
	}
	return c.Create(ctx, object, options...)
}

// New returns a cluster that holds the objects, status included.
func New(objects ...client.Object) *Kube {
	c := fake.NewClientBuilder().WithScheme(kube.Scheme()).WithObjects(objects...).
		WithStatusSubresource(&rayv1.RayCluster{}, &rayv1.RayJob{}, &rayv1.RayService{}, &rayv1.RayCronJob{}).
		WithReturnManagedFields().WithInterceptorFuncs(interceptor.Funcs{Create: create}).Build()
	k := &Kube{WithWatch: c, In: &bytes.Buffer{}, Out: &bytes.Buffer{}, ErrOut: &bytes.Buffer{}}
	k.Env = kube.NewEnv(genericiooptions.IOStreams{In: k.In, Out: k.Out, ErrOut: k.ErrOut}, "kubectl ray", "v0.0.0-test")
	// No kubeconfig of the machine must be read.
	*k.Env.Flags.KubeConfig = "/dev/null"
	k.Env.Client = func() (client.WithWatch, error) { return c, nil }
	k.Env.Config = func() (*rest.Config, error) { return nil, errors.New("there is no API server in this test") }
	k.Env.Now = Now
	return k
}

// Run runs one command with arguments, the name of the command not included, and returns its exit code. An error stands in
// ErrOut as the program would print it.
func (k *Kube) Run(t testing.TB, command func(*kube.Env) *cobra.Command, args ...string) int {
	t.Helper()
	k.Out.Reset()
	k.ErrOut.Reset()
	root := &cobra.Command{Use: "ray", SilenceErrors: true, SilenceUsage: true}
	root.SetIn(k.In)
	root.SetOut(k.Out)
	root.SetErr(k.ErrOut)
	k.Env.Flags.AddFlags(root.PersistentFlags())
	sub := command(k.Env)
	root.AddCommand(sub)
	kube.MarkUsageErrors(root)
	root.SetArgs(append([]string{sub.Name()}, args...))
	err := root.ExecuteContext(t.Context())
	if err == nil {
		return 0
	}
	var exit kube.ExitError
	if !errors.As(err, &exit) {
		exit = kube.ExitError{Code: kube.ExitFailed, Err: err}
	}
	if exit.Err != nil {
		k.ErrOut.WriteString("Error: " + exit.Err.Error() + "\n")
	}
	return exit.Code
}
