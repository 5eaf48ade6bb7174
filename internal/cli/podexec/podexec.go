// Package podexec runs commands in containers, as kubectl exec does.
package podexec

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/heliostat-io/heliostat/internal/cli/kube"
)

// maxComplaint is how much of what a command complains about is kept, in bytes.
const maxComplaint = 1 << 10

// Run runs a command in a container and writes its output. The error of a command that fails holds what it complained about,
// and wraps k8s.io/client-go/util/exec.CodeExitError.
func Run(ctx context.Context, config *rest.Config, pod types.NamespacedName, container string, command []string, output io.Writer) error {
	set, err := corev1client.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	request := set.RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: container, Command: command, Stdout: true, Stderr: true}, scheme.ParameterCodec)
	modern, err := remotecommand.NewWebSocketExecutor(config, http.MethodGet, request.URL().String())
	if err != nil {
		return fmt.Errorf("run a command in Pod %s: %w", pod, err)
	}
	old, err := remotecommand.NewSPDYExecutor(config, http.MethodPost, request.URL())
	if err != nil {
		return fmt.Errorf("run a command in Pod %s: %w", pod, err)
	}
	executor, err := remotecommand.NewFallbackExecutor(modern, old, kube.RefusesWebsocket)
	if err != nil {
		return fmt.Errorf("run a command in Pod %s: %w", pod, err)
	}
	complaint := &beginning{}
	if err := executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: output, Stderr: complaint}); err != nil {
		if text := strings.TrimSpace(complaint.String()); text != "" {
			err = fmt.Errorf("%w: %s", err, text)
		}
		return fmt.Errorf("run %q in Pod %s: %w", command[0], pod, err)
	}
	return nil
}

// beginning keeps the first bytes of what is written.
type beginning struct{ bytes.Buffer }

// Write keeps what there is room for.
func (b *beginning) Write(text []byte) (int, error) {
	if room := maxComplaint - b.Len(); room > 0 {
		b.Buffer.Write(text[:min(room, len(text))])
	}
	return len(text), nil
}
