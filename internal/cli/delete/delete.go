// Package delete deletes Ray's objects after asking.
package delete

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
)

// New returns the command "delete" (spec/ecosystem.md, section 2.4). RayCronJob is added to the types.
func New(env *kube.Env) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "delete (NAME | TYPE/NAME)...",
		Short: "Delete clusters, jobs, services and cron jobs",
		Long: "Delete clusters, jobs, services and cron jobs. TYPE is raycluster, rayjob, rayservice or raycronjob; NAME alone is\n" +
			"that of a RayCluster. When one of the objects does not exist, none is deleted.",
		Example:           "  " + env.Program + " delete mine rayjob/nightly",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: env.CompleteNames(kube.Kinds()...),
		RunE: func(cmd *cobra.Command, args []string) error {
			return run(cmd.Context(), env, args, yes)
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "Delete without asking.")
	return cmd
}

// victim is an object that exists and was asked to be deleted.
type victim struct {
	kube.Target
	object *metav1.PartialObjectMetadata
}

func run(ctx context.Context, env *kube.Env, args []string, yes bool) error {
	c, err := env.Client()
	if err != nil {
		return err
	}
	targets, err := parse(env, args)
	if err != nil {
		return err
	}
	victims, err := find(ctx, c, targets)
	if err != nil {
		return err
	}
	if err := warn(env, victims); err != nil {
		return err
	}
	if !yes {
		agreed, err := ask(ctx, env, victims)
		if err != nil {
			return err
		}
		if !agreed {
			_, err := fmt.Fprintln(env.ErrOut, "Nothing was deleted.")
			return err
		}
	}
	return deleteAll(ctx, env, c, victims)
}

// parse reads the arguments. Each object is taken once, however often it is named.
func parse(env *kube.Env, args []string) ([]kube.Target, error) {
	namespace, err := env.Namespace()
	if err != nil {
		return nil, err
	}
	var targets []kube.Target
	for _, arg := range args {
		target, err := kube.ParseTarget(namespace, arg)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(targets, target) {
			targets = append(targets, target)
		}
	}
	return targets, nil
}

func find(ctx context.Context, c client.Reader, targets []kube.Target) ([]victim, error) {
	var victims []victim
	var errs []error
	for _, target := range targets {
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(rayv1.GroupVersion.WithKind(string(target.Kind)))
		err := c.Get(ctx, target.NamespacedName, object)
		switch {
		case apierrors.IsNotFound(err):
			errs = append(errs, kube.NotFound(target))
		case err != nil:
			errs = append(errs, fmt.Errorf("read %s: %w", target, err))
		default:
			victims = append(victims, victim{Target: target, object: object})
		}
	}
	return victims, errors.Join(errs...)
}

// warn tells of objects that their owners make anew.
func warn(env *kube.Env, victims []victim) error {
	for _, v := range victims {
		owner := metav1.GetControllerOf(v.object)
		if owner == nil || named(victims, owner) {
			continue
		}
		if _, err := fmt.Fprintf(env.ErrOut, "Warning: %s belongs to %s %s, which may make it anew.\n",
			v.Target, owner.Kind, owner.Name); err != nil {
			return err
		}
	}
	return nil
}

func named(victims []victim, owner *metav1.OwnerReference) bool {
	return slices.ContainsFunc(victims, func(v victim) bool { return v.object.UID == owner.UID })
}

// deleteAll deletes the very objects that were looked at, and no later ones of their names. It goes on after an error.
func deleteAll(ctx context.Context, env *kube.Env, c client.Writer, victims []victim) error {
	var errs []error
	for _, v := range victims {
		uid := v.object.UID
		err := c.Delete(ctx, v.object, client.Preconditions{UID: &uid})
		switch {
		case apierrors.IsNotFound(err):
			errs = append(errs, fmt.Errorf("delete %s: it is gone already", v.Target))
			continue
		case err != nil:
			errs = append(errs, fmt.Errorf("delete %s: %w", v.Target, err))
			continue
		}
		if _, err := fmt.Fprintf(env.Out, "Deleted %s\n", v.Target); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func list(victims []victim) string {
	names := make([]string, 0, len(victims))
	for _, v := range victims {
		names = append(names, v.String())
	}
	return strings.Join(names, ", ")
}
