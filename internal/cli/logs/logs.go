// Package logs is the command logs: the logs of a cluster's Pods on the screen (spec/cli-ux.md, section 4.2). KubeRay's
// plugin has the same word for its command log, so with the flags of that command it does the same.
package logs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-io/heliostat/internal/cli/kube"
	"github.com/heliostat-io/heliostat/internal/cli/log"
)

const long = `Print the logs of the Pods of a cluster, each line with the name of its Pod before it.

Logs that containers printed are put in the order of time. With -f the logs go on: also when Pods are replaced, and with Pods
that are added, and with those of the cluster to which a RayService is upgraded. The deletion of the cluster ends that, and
Ctrl-C.

--source says which logs:
  container   what the Ray containers printed
  ray         the files in which Ray keeps its logs, and those of jobs
  submitter   what the submitter of a RayJob printed, which is the log of its job

With --out-dir, --node-type or --link it does the same as the command log.`

// The sources of logs.
const (
	sourceContainer = "container"
	sourceRay       = "ray"
	sourceSubmitter = "submitter"
)

// everything stands for all lines, as in kubectl logs.
const everything = -1

// pause is the time before a broken connection is made again.
const pause = time.Second

// options are what the flags say.
type options struct {
	group, worker, source string
	follow                bool
	since                 time.Duration
	tail                  int64
}

// New returns the command logs.
func New(env *kube.Env) *cobra.Command { return newLogs(env, pause) }

func newLogs(env *kube.Env, pause time.Duration) *cobra.Command {
	o := &options{}
	download := &log.Flags{}
	cmd := &cobra.Command{
		Use:   "logs (NAME | TYPE/NAME)",
		Short: "Print the logs of a cluster's Pods, merged",
		Long:  long,
		Example: fmt.Sprintf("  %[1]s logs demo -f\n  %[1]s logs demo --group gpu --worker 3 --source ray --tail 100\n  %[1]s logs rayjob/train --source submitter -f",
			env.Program),
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: env.CompleteNames(kube.RayCluster, kube.RayJob, kube.RayService),
		RunE: func(cmd *cobra.Command, args []string) error {
			if log.Given(cmd.Flags()) {
				return download.Run(cmd.Context(), env, args[0])
			}
			return run(cmd.Context(), env, o, args[0], pause)
		},
	}
	set := cmd.Flags()
	set.StringVar(&o.group, "group", "", "Only the Pods of this group; head stands for the head.")
	set.StringVar(&o.worker, "worker", "", "Only this worker: the name of its Pod, or the number of its replica in the group, from 0.")
	set.StringVar(&o.source, "source", sourceContainer, "Which logs: container, ray or submitter.")
	set.BoolVarP(&o.follow, "follow", "f", false, "Go on with what is logged from now on.")
	set.DurationVar(&o.since, "since", 0, "Only lines newer than this, for example 10m. Not with --source ray.")
	set.Int64Var(&o.tail, "tail", everything, "Only the last lines of each Pod. -1 is all of them.")
	download.Add(set)
	return cmd
}

// check says what is wrong with the flags.
func (o *options) check() error {
	switch {
	case !slices.Contains([]string{sourceContainer, sourceRay, sourceSubmitter}, o.source):
		return fmt.Errorf("--source %q is unknown: it must be container, ray or submitter", o.source)
	case o.source == sourceRay && o.since != 0:
		return errors.New("--since needs lines with times, which the files of Ray have not: use --tail with --source ray")
	case o.source == sourceSubmitter && (o.group != "" || o.worker != ""):
		return errors.New("--group and --worker choose among the Pods of the cluster, to which the submitter does not belong")
	case o.since < 0:
		return errors.New("--since cannot be negative")
	case o.tail < everything:
		return errors.New("--tail cannot be less than -1")
	default:
		return nil
	}
}

// reader reads the logs of the Pods behind one object.
type reader struct {
	env     *kube.Env
	options *options
	client  client.WithWatch
	set     kubernetes.Interface
	config  *rest.Config
	chosen  choice
	printer *printer
	pause   time.Duration
	// target is what the user named, and uid that of the object.
	target kube.Target
	uid    types.UID
}

func run(ctx context.Context, env *kube.Env, o *options, argument string, pause time.Duration) error {
	if err := o.check(); err != nil {
		return err
	}
	r, err := newReader(ctx, env, o, argument)
	if err != nil {
		return err
	}
	r.pause = pause
	if o.follow {
		return r.follow(ctx)
	}
	return r.print(ctx)
}

// newReader finds the object, and with it the Pods to read from.
func newReader(ctx context.Context, env *kube.Env, o *options, argument string) (*reader, error) {
	r := &reader{env: env, options: o, printer: &printer{out: env.Out}}
	namespace, err := env.Namespace()
	if err != nil {
		return nil, err
	}
	if r.client, err = env.Client(); err != nil {
		return nil, err
	}
	object, target, err := kube.Find(ctx, r.client, namespace, argument)
	if err != nil {
		return nil, err
	}
	r.target, r.uid = target, object.GetUID()
	if r.chosen, err = r.choose(ctx, object); err != nil {
		return nil, err
	}
	if r.set, err = env.Clientset(); err != nil {
		return nil, err
	}
	r.config, err = env.Config()
	return r, err
}
