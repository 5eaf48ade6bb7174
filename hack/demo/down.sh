#!/usr/bin/env bash
# Removes what hack/demo/up.sh started. Built programs and images stay for the next time.
set -euo pipefail
cd "$(dirname "$0")/../.."
make --no-print-directory localkube
bin/localkube down --name demo
