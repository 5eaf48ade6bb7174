package get

import (
	"bytes"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/heliostat-io/heliostat/internal/cli/kube"
)

// none stands in a cell for what is not there, as in kubectl's own tables.
const none = "<none>"

// column is one column of a table of T.
type column[T any] struct {
	name string
	cell func(T) string
	// wide columns are shown with "-o wide" only.
	wide bool
}

// printTable writes a table as kubectl does, or says that there is nothing to show.
func printTable[T any](env *kube.Env, columns []column[T], items []T, format string, where scope) error {
	if len(items) == 0 {
		_, err := fmt.Fprintln(env.ErrOut, nothing(where))
		return err
	}
	table := &metav1.Table{}
	for _, c := range columns {
		definition := metav1.TableColumnDefinition{Name: c.name, Type: "string"}
		if c.wide {
			definition.Priority = 1
		}
		table.ColumnDefinitions = append(table.ColumnDefinitions, definition)
	}
	for _, item := range items {
		row := metav1.TableRow{}
		for _, c := range columns {
			row.Cells = append(row.Cells, c.cell(item))
		}
		table.Rows = append(table.Rows, row)
	}
	var text bytes.Buffer
	tabs := printers.GetNewTabWriter(&text)
	printer := printers.NewTablePrinter(printers.PrintOptions{Wide: format == kube.OutputWide})
	if err := printer.PrintObj(table, tabs); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	if err := tabs.Flush(); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	_, err := env.Out.Write(text.Bytes())
	return err
}

func nothing(where scope) string {
	if where.all() {
		return "No resources found"
	}
	return fmt.Sprintf("No resources found in %s namespace.", where.namespace)
}

// printObjects writes objects as JSON, YAML or names. A single one that was asked for by name stands alone, else they
// are items of a List, as kubectl has it.
func printObjects(env *kube.Env, format string, objects []*unstructured.Unstructured, byName bool) error {
	var text bytes.Buffer
	if format == kube.OutputName {
		for _, object := range objects {
			if err := (&printers.NamePrinter{}).PrintObj(object, &text); err != nil {
				return fmt.Errorf("write the name of %s/%s: %w", object.GetNamespace(), object.GetName(), err)
			}
		}
		_, err := env.Out.Write(text.Bytes())
		return err
	}
	printer, err := genericclioptions.NewJSONYamlPrintFlags().ToPrinter(format)
	if err != nil {
		return err
	}
	var document runtime.Object
	if byName && len(objects) == 1 {
		document = objects[0]
	} else {
		document = listOf(objects)
	}
	if err := printer.PrintObj(document, &text); err != nil {
		return fmt.Errorf("write the objects as %s: %w", format, err)
	}
	_, err = env.Out.Write(text.Bytes())
	return err
}

func listOf(objects []*unstructured.Unstructured) *metav1.List {
	list := &metav1.List{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"},
		Items:    make([]runtime.RawExtension, 0, len(objects)),
	}
	for _, object := range objects {
		list.Items = append(list.Items, runtime.RawExtension{Object: object})
	}
	return list
}
