package log

import (
	"fmt"
	"net/url"
	"strings"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
)

// logsExplorer is where Google Cloud shows logs.
const logsExplorer = "https://console.cloud.google.com/logs/query"

// printLink prints a link to the logs of a cluster in the console of Google Cloud. Which Google Cloud cluster it is, is told
// by the name of the kubeconfig's cluster, as gcloud writes it: gke_PROJECT_LOCATION_NAME.
func printLink(env *kube.Env, cluster *rayv1.RayCluster, nodeType string) error {
	config, err := env.Flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	name := config.CurrentContext
	if asked := env.Flags.Context; asked != nil && *asked != "" {
		name = *asked
	}
	inGoogle := ""
	if context, ok := config.Contexts[name]; ok {
		inGoogle = context.Cluster
	}
	_, err = fmt.Fprintln(env.Out, link(cluster, nodeType, inGoogle))
	return err
}

// link is the address. Where the name says nothing, the console asks for the project.
func link(cluster *rayv1.RayCluster, nodeType, inGoogle string) string {
	query := []string{`resource.type="k8s_container"`}
	project := ""
	if parts := strings.Split(inGoogle, "_"); len(parts) == 4 && parts[0] == "gke" {
		project = parts[1]
		query = append(query, fmt.Sprintf("resource.labels.location=%q", parts[2]), fmt.Sprintf("resource.labels.cluster_name=%q", parts[3]))
	}
	query = append(query, fmt.Sprintf("resource.labels.namespace_name=%q", cluster.Namespace), label(rayv1.LabelCluster, cluster.Name))
	if nodeType != allNodes {
		query = append(query, label(rayv1.LabelNodeType, nodeType))
	}
	address := logsExplorer + ";query=" + url.QueryEscape(strings.Join(query, "\n"))
	if project != "" {
		address += "?project=" + url.QueryEscape(project)
	}
	return address
}

// label asks for a label of Pods as Cloud Logging writes them: dots in the key are underscores there.
func label(key, value string) string {
	return fmt.Sprintf(`labels."k8s-pod/%s"=%q`, strings.ReplaceAll(key, ".", "_"), value)
}
