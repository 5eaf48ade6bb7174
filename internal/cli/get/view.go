package get

import (
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
)

// view shows the objects of one kind.
type view[T client.Object] struct {
	source[T]
	kind kube.Kind
	// word is what users write for the kind; its plural is an alias.
	word  string
	short string
	// columns are those of the table. One with the namespace is put in front when all are looked at.
	columns func(now time.Time) []column[T]
}

func (v view[T]) command(env *kube.Env) *cobra.Command {
	var where scopeFlag
	cmd := &cobra.Command{
		Use:               v.word + " [NAME]",
		Aliases:           []string{v.word + "s"},
		Short:             v.short,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: kube.CompleteFirst(env.CompleteNames(v.kind)),
	}
	where.add(cmd)
	output := kube.AddOutputFlag(cmd, kube.OutputJSON, kube.OutputYAML, kube.OutputWide, kube.OutputName)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := where.scope(env)
		if err != nil {
			return err
		}
		return v.show(cmd, env, s, first(args), output.Format)
	}
	return cmd
}

func (v view[T]) show(cmd *cobra.Command, env *kube.Env, where scope, name, format string) error {
	c, err := env.Client()
	if err != nil {
		return err
	}
	if format != "" && format != kube.OutputWide {
		objects, err := raw(v.what, rayv1.GroupVersion.WithKind(string(v.kind))).find(cmd.Context(), c, where, name)
		if err != nil {
			return err
		}
		return printObjects(env, format, objects, name != "")
	}
	objects, err := v.find(cmd.Context(), c, where, name)
	if err != nil {
		return err
	}
	columns := v.columns(env.Now())
	if where.all() {
		columns = withNamespace(columns)
	}
	return printTable(env, columns, objects, format, where)
}

// withNamespace puts the namespace in front, unless it has its column already.
func withNamespace[T client.Object](columns []column[T]) []column[T] {
	for _, c := range columns {
		if c.name == namespaceColumn {
			return columns
		}
	}
	return append([]column[T]{{name: namespaceColumn, cell: func(object T) string { return object.GetNamespace() }}}, columns...)
}

const namespaceColumn = "NAMESPACE"

func nameOf[T client.Object](object T) string { return object.GetName() }

func ageOf[T client.Object](now time.Time) func(T) string {
	return func(object T) string { return kube.Age(now, object.GetCreationTimestamp()) }
}

func first(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}
