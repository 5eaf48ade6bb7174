// Package log is the command log: the logs of a cluster in files of this machine (spec/ecosystem.md, section 2.7).
package log

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/head"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
)

const long = `Download the logs of the Pods of a cluster.

For each Pod there is a directory with stdout.log, which is what the container printed, and with the files that Ray keeps in
/tmp/ray/session_latest/logs.`

// The kinds of nodes that can be asked for.
const (
	allNodes = "all"
	noLink   = ""
	gke      = "gke"
)

// Flags are those of the command log. The command logs has them, too.
type Flags struct {
	outDir, nodeType, link string
}

// Add defines the flags.
func (f *Flags) Add(set *pflag.FlagSet) {
	set.StringVar(&f.outDir, "out-dir", "", "Existing directory to write to. Without it, a new one is made that is named after the cluster.")
	set.StringVar(&f.nodeType, "node-type", allNodes, "Download the logs of these nodes: all, head or worker.")
	set.StringVar(&f.link, "link", noLink, "Print a link to the logs instead of downloading them: gke, for the console of Google Cloud.")
}

// Given tells whether one of the flags is used.
func Given(set *pflag.FlagSet) bool {
	return slices.ContainsFunc([]string{"out-dir", "node-type", "link"}, set.Changed)
}

// New returns the command log.
func New(env *kube.Env) *cobra.Command {
	f := &Flags{}
	cmd := &cobra.Command{
		Use:               "log (NAME | TYPE/NAME)",
		Short:             "Download the logs of a cluster",
		Long:              long,
		Example:           fmt.Sprintf("  %[1]s log demo\n  %[1]s log rayjob/train --node-type head --out-dir .", env.Program),
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: env.CompleteNames(kube.RayCluster, kube.RayJob, kube.RayService),
		RunE:              func(cmd *cobra.Command, args []string) error { return f.Run(cmd.Context(), env, args[0]) },
	}
	f.Add(cmd.Flags())
	return cmd
}

// Run downloads the logs of the cluster behind the object, or prints a link to them.
func (f *Flags) Run(ctx context.Context, env *kube.Env, argument string) error {
	if !slices.Contains([]string{allNodes, rayv1.NodeTypeHead, rayv1.NodeTypeWorker}, f.nodeType) {
		return fmt.Errorf("--node-type %q is unknown: it must be all, head or worker", f.nodeType)
	}
	if f.link != noLink && f.link != gke {
		return fmt.Errorf("--link %q is unknown: it must be gke", f.link)
	}
	c, err := env.Client()
	if err != nil {
		return err
	}
	namespace, err := env.Namespace()
	if err != nil {
		return err
	}
	cluster, _, err := head.Find(ctx, c, namespace, argument)
	if err != nil {
		return err
	}
	if f.link == gke {
		return printLink(env, cluster, f.nodeType)
	}
	pods, err := f.pods(ctx, c, cluster)
	if err != nil {
		return err
	}
	directory, err := f.directory(cluster.Name)
	if err != nil {
		return err
	}
	return download(ctx, env, directory, pods)
}

// pods are those whose logs are asked for.
func (f *Flags) pods(ctx context.Context, c client.Reader, cluster *rayv1.RayCluster) ([]corev1.Pod, error) {
	labels := client.MatchingLabels{rayv1.LabelCluster: cluster.Name, rayv1.LabelIsRayNode: rayv1.IsRayNodeYes}
	if f.nodeType != allNodes {
		labels[rayv1.LabelNodeType] = f.nodeType
	}
	list := &corev1.PodList{}
	if err := c.List(ctx, list, client.InNamespace(cluster.Namespace), labels); err != nil {
		return nil, fmt.Errorf("list the Pods of RayCluster %s/%s: %w", cluster.Namespace, cluster.Name, err)
	}
	if len(list.Items) == 0 {
		return nil, fmt.Errorf("the RayCluster %s/%s has no Pods to download logs from (--node-type %s)", cluster.Namespace, cluster.Name, f.nodeType)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return list.Items, nil
}

// directory is where the logs go. The user's own must be there; another must not, so that no earlier download is mixed up
// with this one.
func (f *Flags) directory(cluster string) (string, error) {
	if f.outDir != "" {
		info, err := os.Stat(f.outDir)
		if errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("the directory %s does not exist: make it first, or leave --out-dir out", f.outDir)
		}
		if err != nil {
			return "", fmt.Errorf("use --out-dir: %w", err)
		}
		if !info.IsDir() {
			return "", fmt.Errorf("--out-dir %s is not a directory", f.outDir)
		}
		return f.outDir, nil
	}
	err := os.Mkdir(cluster, 0o750)
	if errors.Is(err, os.ErrExist) {
		return "", fmt.Errorf("the directory %s is there already: give another one with --out-dir", filepath.Join(".", cluster))
	}
	if err != nil {
		return "", fmt.Errorf("make the directory for the logs: %w", err)
	}
	return cluster, nil
}
