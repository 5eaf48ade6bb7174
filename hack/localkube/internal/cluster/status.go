package cluster

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/heliostat-io/heliostat/hack/localkube/internal/proc"
)

// Status prints what is known of the cluster and returns nil when it is well.
func (m Manager) Status(ctx context.Context, out io.Writer) error {
	cluster, err := m.owned()
	if err != nil {
		return err
	}
	if cluster == nil {
		return fmt.Errorf("cluster %s is not up", m.Dirs.Name)
	}
	records, err := proc.Records(m.Dirs.Records())
	if err != nil {
		return err
	}
	byName := map[string]proc.Record{}
	for _, record := range records {
		byName[record.Name] = record
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "COMPONENT\tPID\tSTATE")
	for _, name := range componentNames(cluster.Nodes) {
		record, found := byName[name]
		switch {
		case !found:
			fmt.Fprintf(table, "%s\t-\tnever started\n", name)
		case record.Alive():
			fmt.Fprintf(table, "%s\t%d\trunning\n", name, record.PID)
		default:
			fmt.Fprintf(table, "%s\t%d\tended\n", name, record.PID)
		}
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("printing the components: %w", err)
	}
	if client, err := m.client(*cluster); err == nil {
		nodes, err := client.Nodes(ctx)
		if err == nil {
			for _, node := range nodes {
				fmt.Fprintf(out, "%s: ready %t\n", node.Name, node.Ready)
			}
		}
	}
	fmt.Fprintf(out, "server:     %s\nkubeconfig: %s\nlogs:       %s\n", serverURL(*cluster), m.Dirs.Kubeconfig(), m.Dirs.Logs())
	if err := m.healthy(ctx, *cluster); err != nil {
		return fmt.Errorf("cluster %s is not well: %w", m.Dirs.Name, err)
	}
	return nil
}
