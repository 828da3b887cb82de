#!/usr/bin/env bash
# The recipe of `make test`. MAKE is the make that called it.
set -euo pipefail

# not_run reports an omitted check and the reason, at once and in the summary, like the macro of the same name in hack/make/test.mk.
not_run() {
  printf 'not run: %s\n' "$1" | tee -a "$HERALD_TEST_NOTES"
}

export HERALD_TEST_NOTES=$(mktemp)
reports=$(mktemp -d)
trap 'rm -rf "$HERALD_TEST_NOTES" "$reports"' EXIT
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
# step runs a command, measured or await, and records its result. The command writes its duration and its processor time to
# $reports/seconds.
step() {
  local name=$1 word=ok notes took
  notes=$(wc -l <"$HERALD_TEST_NOTES")
  shift
  printf '\n==> %s\n' "$name"
  rm -f "$reports/seconds"
  "$@" || { word=FAILED; failed=1; }
  if [ $word = ok ] && [ "$(wc -l <"$HERALD_TEST_NOTES")" != "$notes" ]; then word='not run'; fi
  took=$(cat "$reports/seconds" 2>/dev/null || echo 0 0)
  # shellcheck disable=SC2086 # two numbers
  results+=("$(printf '%-7s %4ds %5ds  %s' "$word" $took "$name")")
}

# measured runs a command and writes its duration and processor time, in seconds, to $seconds. Its subshell does not count the processor
# time of lanes that end meanwhile.
seconds=$reports/seconds
measured() (
  start=$SECONDS status=0
  "$@" || status=$?
  times >"$seconds.times"
  cpu=$(awk 'NR == 2 { for (i = 1; i <= 2; i++) { split($i, t, /[ms]/); sum += 60 * t[1] + t[2] }; printf "%d", sum }' "$seconds.times")
  echo $((SECONDS - start)) "$cpu" >"$seconds"
  exit $status
)

# lane runs targets in the background, one after the other. Each has a folder for its notes, output, exit code, duration and processor
# time. A lane is a process group, so that an interrupt stops all of it.
lanes=()
lane() {
  set -m
  run_lane "$@" &
  lanes+=($!)
  set +m
  trap 'for group in "${lanes[@]}"; do kill -- -"$group" 2>/dev/null; done; exit 130' INT TERM
}
run_lane() {
  local target own status
  for target in "$@"; do
    own=$reports/$target status=0
    mkdir "$own"
    : >"$own/notes"
    HERALD_TEST_NOTES="$own/notes" seconds="$own/seconds" measured "$MAKE" $target LONG= SHORT=1 >"$own/log" 2>&1 || status=$?
    echo $status >"$own/status.new"
    mv "$own/status.new" "$own/status" # complete, since await reads it
  done
}
# await waits for a lane's target, prints its output and returns its exit code.
await() {
  until [ -e "$reports/$1/status" ]; do
    if [ -z "$(jobs -r)" ] && [ ! -e "$reports/$1/status" ]; then
      echo "its lane was killed"
      return 1
    fi
    sleep 1
  done
  cat "$reports/$1/log"
  cat "$reports/$1/notes" >>"$HERALD_TEST_NOTES"
  cp "$reports/$1/seconds" "$reports/seconds"
  return "$(cat "$reports/$1/status")"
}

step 'generated files (make verify)' measured "$MAKE" verify
step 'modules match go.sum (make modules)' measured "$MAKE" modules
step 'programs that the tests start (make controlplane)' measured "$MAKE" controlplane
# The crash matrix mostly waits, so it runs in one process next to all others; with more, the pages would be too slow for their time
# limits. Linters and unit tests need all processors and can wait, so they have a lower priority.
lane 'test-crash PROCS=1' test-bluesky
lane test-integration test-monitoring test-browser test-agents test-upgrade test-counting test-signatures test-mastodon test-oddfiles test-hostile
step 'known vulnerabilities (make vuln)' measured "$MAKE" vuln
step 'formatting and linters (make lint)' measured nice "$MAKE" lint
step "unit tests (make test-unit${race:+ RACE=1})" measured nice "$MAKE" test-unit RACE=$race
step 'chart, with kubeconform and kube-score (make chart-conform)' measured "$MAKE" chart-conform
step 'suites with an API server (make test-integration)' await test-integration
step 'alerts and dashboard in Prometheus (make test-monitoring)' await test-monitoring
step 'pages in a browser (make test-browser)' await test-browser
step 'third-party agents and clients (make test-agents)' await test-agents
step 'upgrade and rollback, short (make test-upgrade)' await test-upgrade
step 'comparison of caption counts (make test-counting)' await test-counting
step 'notification signatures in JavaScript (make test-signatures)' await test-signatures
step "Bluesky's own server (make test-bluesky)" await test-bluesky
step 'Mastodon clients (make test-mastodon)' await test-mastodon
step 'odd files to every platform, short (make test-oddfiles)' await test-oddfiles
step 'unauthenticated clients, short (make test-hostile)' await test-hostile
step 'crash matrix, short (make test-crash)' await 'test-crash PROCS=1'
printf '\n==> summary: duration, processor time\n'
printf '%s\n' "${results[@]}"
cat "$HERALD_TEST_NOTES"
if [ $failed = 1 ]; then
  echo "make test: FAILED"
  exit 1
fi
if [ -s "$HERALD_TEST_NOTES" ]; then
  echo "make test: all that ran passed; see above for what could not run"
else
  echo "make test: all passed"
fi
