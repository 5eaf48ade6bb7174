#!/usr/bin/env bash
# From nothing to a finished Ray job on a real Kubernetes on this machine.
set -euo pipefail
cd "$(dirname "$0")/../.."

make --no-print-directory localkube
export HELIOSTAT_LOCALKUBE=$PWD/bin/localkube
start=$SECONDS
hack/cluster.sh demo
KUBECONFIG=$("$HELIOSTAT_LOCALKUBE" kubeconfig --name demo --path)
export KUBECONFIG
k() { "$HELIOSTAT_LOCALKUBE" kubectl --name demo -- "$@"; }
say() { printf '\n[%4ds] %s\n' $((SECONDS - start)) "$*"; }

say "A RayJob: docs/examples/rayjob.yaml"
k delete rayjob count-primes --ignore-not-found --wait
k apply -f docs/examples/rayjob.yaml

state() { k get rayjob count-primes -o jsonpath='{.status.jobDeploymentStatus}/{.status.jobStatus}' 2>/dev/null || true; }
seen=
until [ $((SECONDS - start)) -gt 3600 ]; do
  now=$(state)
  if [ "$now" != "$seen" ]; then
    say "RayJob is ${now:-new}"
    seen=$now
  fi
  case $now in
    Complete/* | Failed/* | ValidationFailed/*) break ;;
  esac
  sleep 1
done

say "What the job printed"
k logs job/count-primes --tail=-1 | sed 's/^/    /' || echo "    (the submitter printed nothing)"
say "What the operator made"
k get rayjobs,rayclusters,pods,services,jobs
say "What the plugin says: kubectl ray status job/count-primes"
make --no-print-directory kubectl-ray
bin/kubectl-ray status job/count-primes
case $seen in
  Complete/SUCCEEDED) ;;
  *)
    echo
    echo "The job did not succeed. The operator's own words:"
    k describe rayjob count-primes | tail -n 30
    bin/kubectl-ray diagnose job/count-primes || true
    exit 1
    ;;
esac
cat <<TXT

Done in $((SECONDS - start)) seconds. To look further:

  export KUBECONFIG=$KUBECONFIG
  alias kubectl='$HELIOSTAT_LOCALKUBE kubectl --name demo --'     # or your own kubectl
  alias kubectl-ray='$PWD/bin/kubectl-ray'
  kubectl-ray check                                               # is the operator well
  kubectl-ray diagnose job/count-primes                           # why something does not work
  kubectl port-forward service/count-primes-head-svc 8265         # Ray's dashboard on http://localhost:8265
  kubectl -n heliostat-system logs -l app.kubernetes.io/name=kuberay-operator --prefix --tail=20
  kubectl apply -f docs/examples/raycluster.yaml

To remove everything that is running: make demo-clean
TXT
