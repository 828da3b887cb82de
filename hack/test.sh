#!/usr/bin/env bash
# The recipe of `make test`. MAKE is the make that called it.
set -euo pipefail

# not_run reports what was left out and why, at once and in the summary, like the macro of the same name in hack/make/test.mk.
not_run() {
  printf 'not run: %s\n' "$1" | tee -a "$HERALD_TEST_NOTES"
}

export HERALD_TEST_NOTES=$(mktemp)
beside=$(mktemp -d)
trap 'rm -rf "$HERALD_TEST_NOTES" "$beside"' EXIT
# If the version changed, a lane would link the programs again while another one is running them.
VERSION=$("$MAKE" -s image-tag)
export VERSION
race=1
if ! why=$(CGO_ENABLED=1 go build -race runtime/cgo 2>&1); then
  race=
  not_run "the race detector; the tests ran without it. It needs cgo and a C compiler: ${why##*$'\n'}"
fi
if ! command -v ffmpeg >/dev/null; then
  not_run "tests that take pictures out of videos; there is no ffmpeg in PATH: apt-get install --no-install-recommends ffmpeg"
fi
results=()
failed=0
step() {
  local name=$1 start=$SECONDS word=ok notes
  notes=$(wc -l <"$HERALD_TEST_NOTES")
  shift
  printf '\n==> %s\n' "$name"
  "$@" || { word=FAILED; failed=1; }
  if [ $word = ok ] && [ "$(wc -l <"$HERALD_TEST_NOTES")" != "$notes" ]; then word='not run'; fi
  results+=("$(printf '%-7s %4ds  %s' "$word" $((SECONDS - start)) "$name")")
}
step 'generated files (make verify)' "$MAKE" verify
step 'modules are what go.sum says (make modules)' "$MAKE" modules
step 'known vulnerabilities (make vuln)' "$MAKE" vuln
step 'formatting and linters (make lint)' "$MAKE" lint
step "unit tests (make test-unit${race:+ RACE=1})" "$MAKE" test-unit RACE=$race
step 'chart by Kubernetes and kube-score (make chart-conform)' "$MAKE" chart-conform
# The crash matrix mostly waits, so all that follows runs alongside it, one after the other. Each writes its notes, output and
# exit code to its own folder.
step 'programs that the following tests start (make controlplane)' "$MAKE" controlplane
# The lane is a process group, so that an interrupt stops all of it.
set -m
{
  for target in test-integration test-monitoring test-browser test-agents test-upgrade test-counting test-oddfiles test-hostile; do
    own=$beside/$target
    mkdir "$own"
    : >"$own/notes"
    status=0
    HERALD_TEST_NOTES="$own/notes" "$MAKE" $target LONG= SHORT=1 >"$own/log" 2>&1 || status=$?
    echo "$status" >"$own/status"
  done
} &
others=$!
set +m
trap 'kill -- -"$others" 2>/dev/null; exit 130' INT TERM
begun() {
  wait "$others" || true
  cat "$beside/$1/log"
  cat "$beside/$1/notes" >>"$HERALD_TEST_NOTES"
  return "$(cat "$beside/$1/status")"
}
# In one process: with more, the pages beside it would be too slow for their time limits.
step 'crash matrix, short (make test-crash)' "$MAKE" test-crash LONG= PROCS=1
step 'suites with an API server (make test-integration), begun beside it' begun test-integration
step 'alerts and dashboard in Prometheus (make test-monitoring), begun beside it' begun test-monitoring
step 'pages in a browser (make test-browser), begun beside it' begun test-browser
step 'agents and clients that others wrote (make test-agents), begun beside it' begun test-agents
step 'upgrade and rollback, short (make test-upgrade), begun beside it' begun test-upgrade
step 'counts of captions compared with others (make test-counting), begun beside it' begun test-counting
step 'odd files to every platform, short (make test-oddfiles), begun beside it' begun test-oddfiles
step 'strangers at every door, short (make test-hostile), begun beside it' begun test-hostile
printf '\n==> summary\n'
printf '%s\n' "${results[@]}"
cat "$HERALD_TEST_NOTES"
if [ $failed = 1 ]; then
  echo "make test: FAILED"
  exit 1
fi
if [ -s "$HERALD_TEST_NOTES" ]; then
  echo "make test: what ran is fine; see above what did not run"
else
  echo "make test: all is well"
fi
