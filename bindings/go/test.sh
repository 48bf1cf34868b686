#!/usr/bin/env bash
# bindings/go/test.sh PREFIX: everything about the Go binding, against the librkv that is installed in
# PREFIX. Ends with the golden line and the counts; exit 1 on failure, 77 where there is no Go.
set -uo pipefail
prefix=$(cd "${1:?usage: test.sh PREFIX}" && pwd) || exit 1
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1
least=1.21 # runtime.Pinner

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }
new_enough() {
  local version
  version=$(go env GOVERSION 2>/dev/null) && [ "$(printf '%s\n' "$least" "${version#go}" | sort -V | head -1)" = "$least" ]
}
if ! new_enough && command -v apt-get >/dev/null; then
  candidate=$(apt-cache policy golang-go 2>/dev/null | awk '/Candidate:/ {print $2}')
  if dpkg --compare-versions "${candidate#*:}" ge "$least" 2>/dev/null; then
    as_root apt-get install -y -q golang-go >&2
  fi
fi
if ! new_enough; then
  echo "skipped: go: install Go $least or newer (go.dev/dl, or Debian's golang-go where it is new enough)"
  exit 77
fi
if ! command -v pkg-config >/dev/null || ! command -v cc >/dev/null; then
  as_root apt-get install -y -q pkg-config gcc libc6-dev >&2
fi

export PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export GOFLAGS=-buildvcs=false
log=$(mktemp)
trap 'rm -f "$log"' EXIT
passed=0 failed=0 skipped=0

# part NAME COMMAND...: counts the tests of `go test -v` in the output; a command without any is one.
part() {
  local name=$1 start=$SECONDS code=0 good bad left
  shift
  "$@" >"$log" 2>&1 || code=$?
  good=$(grep -c '^ *--- PASS' "$log")
  bad=$(grep -c '^ *--- FAIL' "$log")
  left=$(grep -c '^ *--- SKIP' "$log")
  if [ $((good + bad + left)) = 0 ] && [ $code = 0 ]; then good=1; fi
  if [ $code != 0 ] && [ "$bad" = 0 ]; then bad=1; fi
  passed=$((passed + good)) failed=$((failed + bad)) skipped=$((skipped + left))
  printf '%-12s %5d s  %d passed, %d failed, %d skipped\n' "$name" $((SECONDS - start)) "$good" "$bad" "$left"
  [ "$bad" = 0 ] || tail -n "${RKV_LOG_LINES:-60}" "$log" | sed 's/^/    /'
}

format() {
  local files
  files=$(gofmt -l . ../../examples/go)
  [ -z "$files" ] || { echo "gofmt: $files"; return 1; }
}

# Which of a struct's pointers are Go's is what cgocheck2 looks at, on every store.
cgocheck() { GOEXPERIMENT=cgocheck2 go test -count=1 -short -v . ./internal/golden; }

part format format
part vet go vet ./...
part tests go test -count=1 -v ./...
part race go test -count=1 -short -v -race . ./internal/golden
part cgocheck2 cgocheck
part purego ./purego/test.sh "$prefix"
part package ./package_test.sh "$prefix"
part engine ../../examples/go/run.sh "$prefix"
part golden go run ./cmd/rkv-golden ../../tests/golden/*.txt
tail -n 1 "$log"
echo "tests: $passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
