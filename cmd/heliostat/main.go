// Command heliostat is the operator.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/heliostat-io/heliostat/internal/config"
	"github.com/heliostat-io/heliostat/internal/operator"
)

// version is set by the linker.
var version = "dev"

// ownNamespaceFile is where a Pod finds the name of its namespace.
const ownNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

func main() {
	err := run(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		fmt.Print(config.Usage())
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "heliostat:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	cfg, err := config.Parse(args, os.Getenv, os.ReadFile)
	if err != nil {
		return err
	}
	log, err := cfg.NewLogger()
	if err != nil {
		return err
	}
	ctrl.SetLogger(log)
	klog.SetLogger(log.WithName("client-go"))
	for _, warning := range cfg.Warnings {
		log.Info("A setting may not do what is expected", "setting", warning)
	}
	// Tools and API server logs know the operator by this user agent, see the interface facts on identity.
	connection, err := cfg.RESTConfig("kuberay-operator/" + version)
	if err != nil {
		return err
	}
	identity, err := operator.Identity()
	if err != nil {
		return err
	}
	log.Info("Heliostat starts", "version", version, "identity", identity)
	return operator.Run(ctrl.SetupSignalHandler(), cfg, operator.Options{
		REST: connection, Identity: identity, Namespace: ownNamespace(), Version: version, Log: log,
	})
}

// ownNamespace is the namespace of the operator's Pod, or empty outside a cluster.
func ownNamespace() string {
	text, err := os.ReadFile(ownNamespaceFile)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
