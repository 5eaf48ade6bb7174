#!/usr/bin/env bash
# Lints, and fails if formatting, modules or generated files are not as the sources say.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf -- '--- %s\n' "$*"; }

say "gofmt"
unformatted=$(git ls-files '*.go' | xargs gofmt -l)
[ -z "$unformatted" ] || { echo "not formatted; run gofmt -w on:"; echo "$unformatted"; exit 1; }

say "generated files"
before=$(mktemp) && after=$(mktemp)
trap 'rm -f "$before" "$after"' EXIT
state() { cat api/*/zz_generated.*.go api/*/*/zz_generated.*.go charts/heliostat/crds/*.yaml charts/heliostat/files/*.yaml docs/reference/*.md | sha256sum; }
state >"$before"
hack/generate.sh
state >"$after"
cmp -s "$before" "$after" || { echo "generated files were out of date; they are regenerated now, commit them:"; git status --short api charts docs/reference; exit 1; }

say "modules are tidy"
for module in . hack/localkube hack/s3server hack/tools hack/lint hack/helm test/chart; do
  (cd "$module" && go mod tidy -diff)
done

say "lint"
make --no-print-directory lint
