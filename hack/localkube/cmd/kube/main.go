// Command kube is every Kubernetes component and etcd in one program.
//
// The first argument picks the component: `kube kube-apiserver --flags`. One
// program instead of eight shares what the components share: it is built and
// linked once, takes a third of the disk, and its pages are read once.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	_ "time/tzdata" // CronJobs with a time zone work on hosts without tzdata.

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// component runs one component with os.Args set to its name and its flags, and
// returns the exit code.
type component func() int

func components() map[string]component {
	return map[string]component{
		"etcd":                    runEtcd,
		"kube-apiserver":          func() int { return run(apiserver.NewAPIServerCommand()) },
		"kube-controller-manager": func() int { return run(controllermanager.NewControllerManagerCommand()) },
		"kube-scheduler":          func() int { return run(scheduler.NewSchedulerCommand()) },
		"kube-proxy":              func() int { return run(proxy.NewProxyCommand()) },
		"kubelet":                 func() int { return run(kubelet.NewKubeletCommand(context.Background())) },
		"kubectl":                 runKubectl,
	}
}

func run(command *cobra.Command) int {
	return cli.Run(command)
}

func runEtcd() int {
	etcdmain.Main(os.Args)
	return 0
}

func runKubectl() int {
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err)
	}
	return 0
}

// pick finds the component that args ask for, by the name the program was
// called under (a link kubectl -> kube works) or else by the first argument. It
// returns the component's own arguments, its name being the first of them.
func pick(all map[string]component, args []string) (component, []string) {
	if len(args) > 0 {
		if found := all[filepath.Base(args[0])]; found != nil {
			return found, args
		}
	}
	if len(args) > 1 {
		if found := all[args[1]]; found != nil {
			return found, args[1:]
		}
	}
	return nil, nil
}

func printUsage(out io.Writer, all map[string]component) {
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	fmt.Fprintln(out, "usage: kube COMPONENT [flags]; the components are:")
	for _, name := range names {
		fmt.Fprintln(out, "  "+name)
	}
}

func main() {
	all := components()
	chosen, args := pick(all, os.Args)
	if chosen == nil {
		printUsage(os.Stderr, all)
		os.Exit(2)
	}
	// The components parse os.Args themselves.
	os.Args = args
	os.Exit(chosen())
}
