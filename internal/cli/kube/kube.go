// Package kube is what every command of the plugin needs: the connection that kubectl's flags describe, the streams to
// write to, the names of objects as users type them, and exit codes.
package kube

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"golang.org/x/term"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// FieldManager is the field manager of what the plugin writes, the one that KubeRay's plugin has (spec/ecosystem.md,
// section 2).
const FieldManager = "ray-kubectl-plugin"

// Env is what a command runs in. Tests replace its functions.
type Env struct {
	genericiooptions.IOStreams
	// Flags are kubectl's global flags.
	Flags *genericclioptions.ConfigFlags
	// Version is that of the plugin.
	Version string
	// Program is what the user types to run the plugin, for example "kubectl ray".
	Program string
	// Config returns the connection to the API server.
	Config func() (*rest.Config, error)
	// Client returns a client that reads and writes typed objects without a cache.
	Client func() (client.WithWatch, error)
	// Clientset returns a client for what only it can do: logs, port forwarding, exec.
	Clientset func() (kubernetes.Interface, error)
	// Now is the clock.
	Now func() time.Time
	// Color is auto, always or never.
	Color string
}

// NewEnv returns the environment that the flags describe. The flags may be parsed later, before the first use.
func NewEnv(streams genericiooptions.IOStreams, program, version string) *Env {
	flags := genericclioptions.NewConfigFlags(true)
	e := &Env{IOStreams: streams, Flags: flags, Version: version, Program: program, Now: time.Now, Color: "auto"}
	// Commands may make several clients. What the API server warns of is told once, whichever of them hears it.
	warnings := rest.NewWarningWriter(streams.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
	e.Config = func() (*rest.Config, error) {
		config, err := flags.ToRESTConfig()
		if err != nil {
			return nil, fmt.Errorf("read the connection to the cluster: %w", err)
		}
		config.UserAgent = "kubectl-ray/" + version
		// The plugin asks for many kinds at once. The server's own priority and fairness protects it.
		config.QPS, config.Burst = 50, 100
		config.WarningHandler = warnings
		return config, nil
	}
	e.Client = func() (client.WithWatch, error) {
		config, err := e.Config()
		if err != nil {
			return nil, err
		}
		c, err := client.NewWithWatch(config, client.Options{Scheme: Scheme()})
		if err != nil {
			return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
		}
		return c, nil
	}
	e.Clientset = func() (kubernetes.Interface, error) {
		config, err := e.Config()
		if err != nil {
			return nil, err
		}
		set, err := kubernetes.NewForConfig(config)
		if err != nil {
			return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
		}
		return set, nil
	}
	return e
}

// Scheme knows Kubernetes' own kinds, those of ray.io/v1, and those of the Gateway API.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(rayv1.AddToScheme(scheme))
	utilruntime.Must(gatewayv1.Install(scheme))
	return scheme
}

// Namespace is the one that the flags or the kubeconfig name, "default" when neither does.
func (e *Env) Namespace() (string, error) {
	namespace, _, err := e.Flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", fmt.Errorf("read the namespace of the connection: %w", err)
	}
	if namespace == "" {
		namespace = corev1.NamespaceDefault
	}
	return namespace, nil
}

// Terminal tells whether a stream is one that a person looks at.
func Terminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// defaultWidth is the width of what is not a terminal, in columns. Lines are never cut there.
const defaultWidth = 100

// Width is the number of columns of the stream. Where it is no terminal, the variable COLUMNS may say it.
func Width(stream io.Writer) int {
	if file, ok := stream.(*os.File); ok {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
			return width
		}
	}
	if width, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && width > 0 {
		return width
	}
	return defaultWidth
}

// Size is the number of columns and rows of a terminal, or zero where they are not known.
func Size(stream io.Writer) (columns, rows int) {
	file, ok := stream.(*os.File)
	if !ok {
		return 0, 0
	}
	columns, rows, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0, 0
	}
	return columns, rows
}

// Colored tells whether to write colours to the stream. NO_COLOR is honoured, see https://no-color.org.
func (e *Env) Colored(stream any) bool {
	switch e.Color {
	case "always":
		return true
	case "never":
		return false
	default:
		return os.Getenv("NO_COLOR") == "" && Terminal(stream)
	}
}
