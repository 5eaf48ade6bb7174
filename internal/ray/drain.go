package ray

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// kubernetesGracePeriod is how many seconds a Pod has for its end where nothing is said.
const kubernetesGracePeriod = 30

// SetDrain lets the work of a worker end before it is stopped, with releases of Ray that do not do so by themselves: those before
// 2.57, which end at SIGTERM at once. Those are given a preStop hook, which Kubernetes runs before that signal, whatever deletes
// the Pod. A hook of the user's stands, a version that is not known is taken for a newer one, and a Pod that sees the processes of
// its whole node gets no hook, which could take another Pod's raylet for its own.
//
// The hook takes no longer than the Pod has, less the time of the shutdown, and ends at once where there is nothing to drain: no
// raylet runs any more, or the GCS is gone, too.
func (n Node) SetDrain(pod *corev1.PodSpec, shell Shell) {
	container := &pod.Containers[0]
	known, drainsItself := VersionAtLeast(n.Cluster.Version, 0, 0), VersionAtLeast(n.Cluster.Version, 2, 57)
	if n.Role != Worker || !known || drainsItself || pod.HostPID {
		return
	}
	seconds := ptr.Deref(pod.TerminationGracePeriodSeconds, kubernetesGracePeriod) - shutdownTime
	if seconds <= 0 || container.Lifecycle != nil && container.Lifecycle.PreStop != nil {
		return
	}
	if container.Lifecycle == nil {
		container.Lifecycle = &corev1.Lifecycle{}
	}
	container.Lifecycle.PreStop = &corev1.LifecycleHandler{Exec: &corev1.ExecAction{
		Command: slices.Concat(shell.Command(), []string{drainScript("/proc", n.joinAddress(), seconds)}),
	}}
}

// drainScript returns a script that has the GCS drain the node in whose Pod it runs, and waits until the raylet has ended, which it
// does when nothing runs on it any more. "ray drain-node" is what Ray's autoscaler uses underneath, and takes the id of the node,
// which stands in the arguments of the raylet. The processes are those of a directory like /proc. The script fails where the GCS is there and will not drain.
func drainScript(processes, address string, seconds int64) string {
	return `gcs=` + address + `
limit=` + strconv.FormatInt(seconds, 10) + `
SECONDS=0
gcs_answers() {
  timeout 2 bash -c ': < "/dev/tcp/$1/$2"' bash "${gcs%:*}" "${gcs##*:}" 2> /dev/null
}
node= raylet=
for process in ` + processes + `/[0-9]*; do
  mapfile -d '' words 2> /dev/null < "$process/cmdline" || continue
  [[ ${words[0]} == */raylet ]] || continue
  for word in "${words[@]}"; do
    if [[ $word == --node_id=* ]]; then
      node=${word#*=} raylet=$process
      break
    fi
  done
done
[ -n "$node" ] && gcs_answers || exit 0
if ! timeout "$limit" ray drain-node --address "$gcs" --node-id "$node" --reason DRAIN_NODE_REASON_PREEMPTION \
  --reason-message "its Pod is deleted" --deadline-remaining-seconds "$limit"; then
  gcs_answers && exit 1
  exit 0
fi
while [ -d "$raylet" ] && [ "$SECONDS" -lt "$limit" ] && gcs_answers; do
  sleep 1
done
`
}
