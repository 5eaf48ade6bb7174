package log

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/exec"

	"github.com/heliostat-io/heliostat/internal/cli/kube"
	"github.com/heliostat-io/heliostat/internal/cli/podexec"
)

const (
	// logsOfRay is where Ray keeps its logs.
	logsOfRay = "/tmp/ray/session_latest/logs"
	// printed is the name of the file with what the container printed.
	printed = "stdout.log"
	// changedWhileRead is the exit code of tar when a file grew meanwhile, which logs do.
	changedWhileRead = 1
)

// downloader gets the logs of Pods.
type downloader struct {
	env    *kube.Env
	config *rest.Config
	set    kubernetes.Interface
}

// download writes the logs of each Pod into a directory of its own. A Pod that gives none does not keep the others from
// being read.
func download(ctx context.Context, env *kube.Env, directory string, pods []corev1.Pod) error {
	config, err := env.Config()
	if err != nil {
		return err
	}
	set, err := env.Clientset()
	if err != nil {
		return err
	}
	d := &downloader{env: env, config: config, set: set}
	var failures []error
	for i := range pods {
		into := filepath.Join(directory, pods[i].Name)
		if _, err := fmt.Fprintf(env.ErrOut, "Downloading the logs of Pod %s to %s\n", pods[i].Name, into); err != nil {
			return err
		}
		if err := d.pod(ctx, into, &pods[i]); err != nil {
			failures = append(failures, err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return errors.Join(failures...)
}

// pod gets the logs of one Pod.
func (d *downloader) pod(ctx context.Context, into string, pod *corev1.Pod) error {
	if err := os.MkdirAll(into, 0o750); err != nil {
		return fmt.Errorf("make the directory for the logs: %w", err)
	}
	// Nothing that the Pod sends gets out of this directory.
	root, err := os.OpenRoot(into)
	if err != nil {
		return fmt.Errorf("use the directory for the logs: %w", err)
	}
	defer root.Close()
	// The Ray container is the first one (spec/raycluster.md).
	container := pod.Spec.Containers[0].Name
	return errors.Join(d.printed(ctx, root, pod, container), d.files(ctx, root, pod, container))
}

// printed gets what the container printed.
func (d *downloader) printed(ctx context.Context, root *os.Root, pod *corev1.Pod, container string) error {
	stream, err := d.set.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: container}).Stream(ctx)
	if err != nil {
		return fmt.Errorf("read the log of Pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	defer stream.Close()
	if err := save(root, printed, stream, maxFile); err != nil {
		return fmt.Errorf("save the log of Pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

// files gets the files of Ray.
func (d *downloader) files(ctx context.Context, root *os.Root, pod *corev1.Pod, container string) error {
	if pod.Status.Phase != corev1.PodRunning {
		return fmt.Errorf("the files of Ray in Pod %s/%s cannot be read, because the Pod is %s", pod.Namespace, pod.Name, pod.Status.Phase)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	reader, writer := io.Pipe()
	extracted := make(chan error, 1)
	go func() { extracted <- unpack(root, reader, stop) }()
	name := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
	runErr := podexec.Run(ctx, d.config, name, container, []string{"tar", "-C", logsOfRay, "-cf", "-", "."}, writer)
	stopped := ctx.Err() != nil
	if err := writer.Close(); err != nil {
		return fmt.Errorf("read the files of Ray in Pod %s: %w", name, err)
	}
	err := <-extracted
	if err != nil {
		if !stopped {
			err = errors.Join(runErr, err)
		}
		return fmt.Errorf("read the files of Ray in Pod %s: %w", name, err)
	}
	var exit exec.CodeExitError
	if errors.As(runErr, &exit) && exit.Code == changedWhileRead {
		return nil
	}
	if runErr != nil {
		return fmt.Errorf("read the files of Ray in Pod %s: %w", name, runErr)
	}
	return nil
}

// unpack writes the files of an archive. When that fails, what is to come is of no use: stop ends what sends it.
func unpack(root *os.Root, archive *io.PipeReader, stop func()) error {
	if err := extract(root, archive); err != nil {
		stop()
		return errors.Join(err, archive.CloseWithError(err))
	}
	// What tar writes after the end of the archive must go somewhere.
	_, err := io.Copy(io.Discard, archive)
	return err
}
