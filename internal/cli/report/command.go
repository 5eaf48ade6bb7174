// Package report is the command that packs what somebody else needs to help, without secrets.
package report

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-io/heliostat/internal/cli/kube"
	"github.com/heliostat-io/heliostat/internal/cli/look"
	"github.com/heliostat-io/heliostat/internal/diagnose"
)

type options struct {
	file string
	logs bool
}

// New returns the command `report`.
func New(env *kube.Env) *cobra.Command {
	o := &options{}
	command := &cobra.Command{
		Use:   "report (NAME | TYPE/NAME)",
		Short: "Pack what somebody else needs to help into one file, without secrets",
		Long: "Pack an object, all that belongs to it, events, findings, logs and what can be seen of the operator into a ZIP file. Secrets " +
			"and ConfigMaps keep their keys and lose their values; so do environment variables other than Ray's own, and whatever in command " +
			"lines looks like a secret. Logs and messages of programs are packed as they are: leave them out with --logs=false where they may " +
			"hold secrets. What may not be read is left out and named.",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: env.CompleteNames(kube.Kinds()...),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), env, args[0])
		},
	}
	command.Flags().StringVarP(&o.file, "file", "f", "", "The file to write. Default: ray-report-NAMESPACE-NAME-TIME.zip.")
	command.Flags().BoolVar(&o.logs, "logs", true, "Pack the ends of the logs, too.")
	return command
}

func (o *options) run(ctx context.Context, env *kube.Env, argument string) error {
	sight, err := look.At(ctx, env, argument)
	if err != nil {
		return err
	}
	folder := fmt.Sprintf("ray-report-%s-%s-%s", sight.Target.Namespace, sight.Target.Name, env.Now().UTC().Format("20060102T150405Z"))
	file := o.file
	if file == "" {
		file = folder + ".zip"
	}
	err = create(file, folder, env.Now(), func(b *bundle) error {
		r := redactor{silent: !o.logs}
		return errors.Join(objects(b, r, sight), about(b, r, sight), o.packLogs(ctx, env, b, sight.Snapshot))
	})
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(env.Out, file); err != nil {
		return fmt.Errorf("write the name of the file: %w", err)
	}
	return nil
}

// objects adds the manifests.
func objects(b *bundle, r redactor, sight *look.Sight) error {
	s := sight.Snapshot
	errs := []error{b.addObject(r, "objects", sight.Object)}
	for _, object := range slices.Concat(
		list(s.Jobs), list(s.Clusters), list(s.Pods), list(s.SubmitterJobs), list(s.Services), list(s.Slices), list(s.Ingresses),
		list(s.Policies), list(s.Claims), list(s.Accounts), list(s.Roles), list(s.Bindings), list(s.Quotas), list(s.Nodes),
	) {
		if object.GetUID() != sight.Object.GetUID() || object.GetUID() == "" {
			errs = append(errs, b.addObject(r, "objects", object))
		}
	}
	for _, object := range slices.Concat(list(s.Operator.Deployments), list(s.Operator.Pods), list(s.Operator.Leases)) {
		errs = append(errs, b.addObject(r, "operator", object))
	}
	errs = append(errs, b.addYAML("objects/secret-keys.yaml", s.Secrets), b.addYAML("objects/configmap-keys.yaml", s.ConfigMaps))
	return errors.Join(errs...)
}

func list[T client.Object](of []T) []client.Object {
	all := make([]client.Object, 0, len(of))
	for _, object := range of {
		all = append(all, object)
	}
	return all
}

// about adds what the rules found, the events and what could not be read.
func about(b *bundle, r redactor, sight *look.Sight) error {
	var findings strings.Builder
	for _, f := range sight.Findings {
		entry := f.Explained()
		evidence := r.text("message", f.Message)
		fmt.Fprintf(&findings, "%s (%s): %s\n  evidence: %s\n  cause: %s\n  next: %s\n", f.ID, f.Severity, f.Object, evidence, entry.Cause, entry.Next)
	}
	var gaps strings.Builder
	for _, g := range sight.Snapshot.Gaps {
		gaps.WriteString(g.What + ": " + g.Why + "\n")
	}
	errs := []error{b.add("findings.txt", findings.String()), b.add("not-readable.txt", gaps.String())}
	for i := range sight.Snapshot.Events {
		errs = append(errs, b.addObject(r, "events", &sight.Snapshot.Events[i]))
	}
	return errors.Join(errs...)
}

// packLogs adds the ends of the logs of all containers, the operator's included.
func (o *options) packLogs(ctx context.Context, env *kube.Env, b *bundle, s *diagnose.Snapshot) error {
	source, err := look.Source(env)
	if err != nil || source.Tail == nil || !o.logs {
		return err
	}
	var errs []error
	for _, pod := range slices.Concat(s.Pods, s.Operator.Pods) {
		for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			for _, previous := range []bool{false, true} {
				if previous && c.RestartCount == 0 {
					continue
				}
				name := path.Join("logs", pod.Namespace, pod.Name, c.Name+".log")
				if previous {
					name = path.Join("logs", pod.Namespace, pod.Name, c.Name+".previous.log")
				}
				text, err := source.Tail(ctx, pod.Namespace, pod.Name, c.Name, previous)
				if ctx.Err() != nil {
					return ctx.Err()
				}
				if err != nil {
					text = "not readable: " + err.Error() + "\n"
				}
				errs = append(errs, b.add(name, text))
			}
		}
	}
	return errors.Join(errs...)
}
