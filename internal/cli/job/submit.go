package job

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
)

const submitLong = `Run a command on Ray and wait for its end.

A RayJob is made, from a file or from the flags, and with it a RayCluster. Once the cluster is ready, the working directory
is uploaded, the job is submitted and its log is printed. The exit code is 0 if the job has succeeded, else 1.

Everything that can be checked on this machine is checked before anything is made.`

const submitExample = `  # Run a script on a new cluster with two workers that goes away after the job
  %[1]s job submit --name train --working-dir . --worker-replicas 2 --ttl-seconds-after-finished 60 -- python train.py --epochs 3

  # Run it on the cluster that a RayJob in InteractiveMode describes, and do not wait for the end
  %[1]s job submit -f rayjob.yaml --working-dir . --no-wait -- python train.py`

// newSubmit returns the command job submit.
func newSubmit(env *kube.Env, pace pace) *cobra.Command {
	f := &flags{}
	cmd := &cobra.Command{
		Use:     "submit [-f RAYJOB.yaml] -- ENTRYPOINT",
		Short:   "Submit a job to Ray and wait for its end",
		Long:    submitLong,
		Example: fmt.Sprintf(submitExample, env.Program),
		RunE: func(cmd *cobra.Command, args []string) error {
			return submit(cmd.Context(), env, f, args, pace)
		},
	}
	f.add(cmd)
	return cmd
}

// pace says how often things are looked at, and how long a connection to the head is tried for. guard is how often it is
// checked that a quiet connection is still of use, and stall how long an upload may stand still.
type pace struct{ look, follow, guard, connect, stall time.Duration }

// usualPace is gentle with the API server and with Ray.
func usualPace() pace {
	return pace{look: time.Second, follow: 2 * time.Second, guard: 10 * time.Second, connect: time.Minute, stall: time.Minute}
}

// submit checks everything that can be checked here, and then runs the job.
func submit(ctx context.Context, env *kube.Env, f *flags, args []string, pace pace) error {
	plan, err := prepare(env, f, args)
	if err != nil {
		return err
	}
	if f.dryRun != kube.DryRunNone {
		return try(ctx, env, f.dryRun, plan.job)
	}
	if err := plan.pack(ctx); err != nil {
		return err
	}
	defer plan.cleanUp(env.ErrOut)
	c, err := env.Client()
	if err != nil {
		return err
	}
	r := &run{env: env, flags: f, plan: plan, client: c, pace: pace, progress: newProgress(env, f)}
	return r.run(ctx)
}

// try prints the RayJob that would be made.
func try(ctx context.Context, env *kube.Env, mode kube.DryRun, job *rayv1.RayJob) error {
	if mode == kube.DryRunServer {
		c, err := env.Client()
		if err != nil {
			return err
		}
		if err := c.Create(ctx, job, client.DryRunAll, client.FieldOwner(kube.FieldManager)); err != nil {
			return fmt.Errorf("try to create RayJob %s/%s: %w", job.Namespace, job.Name, err)
		}
		job.ManagedFields = nil
	}
	return show(env.Out, job)
}

// show prints a RayJob as one would write it.
func show(out io.Writer, job *rayv1.RayJob) error {
	text, err := yaml.Marshal(job)
	if err != nil {
		return fmt.Errorf("print the RayJob: %w", err)
	}
	fields := map[string]any{}
	if err := yaml.Unmarshal(text, &fields); err != nil {
		return fmt.Errorf("print the RayJob: %w", err)
	}
	delete(fields, "status")
	if text, err = yaml.Marshal(fields); err != nil {
		return fmt.Errorf("print the RayJob: %w", err)
	}
	_, err = out.Write(text)
	return err
}
