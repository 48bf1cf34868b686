#!/usr/bin/env bash
# tests/run.sh          installs what is missing, builds, and runs every test
# tests/run.sh PART...  only these parts (their names: tests/run.sh --list)
#
# Each part prints its seconds, its full output goes to build/logs/PART.log. The last line is
# "N passed, N failed": test cases and scripts; exit 1 if any failed. What is skipped says what to
# install; RKV_NO_SKIP=1 makes it a failure.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export CTEST_PARALLEL_LEVEL=2 CMAKE_BUILD_PARALLEL_LEVEL=2
logs=$PWD/build/logs
results=$PWD/build/results
mkdir -p "$logs"
rm -rf "$results"
python=.deps/venv/bin/python
venv=.deps/quickstart-venv
wanted=("$@")
prefix=$PWD/build/prefix
passed=0 failed=0 skipped=0

# part NAME KIND COMMAND...: runs the command. KIND says what it counts for:
#   step    nothing, unless it fails
#   script  one test case
#   shown   the same, and its output is shown
#   cases   the cases in the JUnit files that it leaves in build/results/NAME
#   counted the line "tests: P passed, F failed, S skipped" that it prints; exit 77: all is skipped
part() {
  local name=$1 kind=$2 start=$SECONDS code=0 good=0 bad=0 left=0
  shift 2
  if [ "${wanted[0]:-}" = --list ]; then echo "$name"; return; fi
  if [ ${#wanted[@]} -gt 0 ] && [[ " ${wanted[*]} " != *" $name "* ]]; then return; fi
  mkdir -p "$results/$name"
  RESULTS=$results/$name "$@" >"$logs/$name.log" 2>&1 </dev/null || code=$?
  case $kind in
    script | shown) good=1 ;;
    cases) read -r good bad < <("$python" tests/count.py "$results/$name") || good=0 bad=0 ;;
    counted)
      read -r good bad left < <(sed -n 's/^tests: \([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p' \
        "$logs/$name.log" | tail -n 1) || good=0 bad=0 left=0
      if [ $code = 77 ]; then code=0 left=1; fi
      if [ "$left" != 0 ] && [ -n "${RKV_NO_SKIP:-}" ]; then bad=$((bad + left)) left=0; fi
      ;;
  esac
  # A part that failed, or ran no case, without saying which case failed, is itself a failure.
  if [ $code != 0 ] && [[ $kind = s* ]]; then good=0; fi
  if [ $code != 0 ] || { [[ $kind = c* ]] && [ $((good + left)) = 0 ]; }; then bad=$((bad ? bad : 1)); fi
  passed=$((passed + good)) failed=$((failed + bad)) skipped=$((skipped + left))
  printf '%-16s %5d s  %s\n' "$name" $((SECONDS - start)) \
    "$([ "$kind$bad" = step0 ] && echo done || echo "$good passed, $bad failed$([ "$left" = 0 ] || echo ", $left skipped")")"
  [ "$kind$bad" != shown0 ] || sed 's/^/    /' "$logs/$name.log"
  [ "$left" = 0 ] || grep -h '^skipped: ' "$logs/$name.log" | sed 's/^/    /'
  [ "$bad" = 0 ] || tail -n "${RKV_LOG_LINES:-60}" "$logs/$name.log" | sed 's/^/    /'
}

# build PRESET [TARGET...]
build() {
  local preset=$1
  shift
  cmake --preset "$preset" && cmake --build --preset "$preset" ${1:+--target "$@"}
}

# ctests PRESET [SIMD [OPTION...]]: RKV_SIMD forces the SIMD target; options of ctest. A sanitizer
# makes each iteration of a random test slow, so there are fewer.
ctests() {
  local preset=$1
  [ -z "${2:-}" ] || export RKV_SIMD=$2
  [ "$preset" = release ] || export RKV_TEST_SCALE=${RKV_TEST_SCALE:-0.1}
  shift $(($# > 1 ? 2 : 1))
  GTEST_OUTPUT=xml:$RESULTS/ ctest --preset "$preset" --output-junit "$RESULTS/ctest.xml" "$@"
}

# one_of NAME...: a pattern that matches these names.
one_of() { local IFS='|'; echo "^($*)\$"; }

# The package as a user installs it, by the steps of the quickstart (--help runs only those).
python_tests() {
  examples/quickstart.sh --help &&
    "$venv/bin/pip" install -q --disable-pip-version-check pytest mypy ml_dtypes &&
    "$venv/bin/python" -m pytest -q --junit-xml "$RESULTS/pytest.xml" "$@"
}

# Every language reads the golden vectors, in a part of its own; all print the same line.
golden_lines() {
  local language line first='' different=0
  for language in c python rust java go; do
    line=$(grep -h '^golden: ' "$logs/golden-$language.log" "$logs/$language.log" 2>/dev/null | tail -n 1)
    if [ -z "$line" ] && grep -q '^skipped: ' "$logs/$language.log" 2>/dev/null; then line=skipped; fi
    printf '%-8s %s\n' "$language" "${line:-no line}"
    [ "$line" != skipped ] || continue
    first=${first:-$line}
    [ -n "$line" ] && [ "$line" = "$first" ] || different=1
  done
  return $different
}

# The two best SIMD targets of this machine.
simd_targets() {
  local flags all=()
  flags=" $(sed -n '0,/^flags/s/^flags[^:]*://p' /proc/cpuinfo) "
  [[ $flags == *" avx512bw "* && $flags == *" avx512vl "* ]] && all+=(avx3)
  [[ $flags == *" avx2 "* && $flags == *" fma "* ]] && all+=(avx2)
  [[ $flags == *" sse2 "* ]] && all+=(sse2)
  echo "${all[@]:0:2}"
}

part deps step cmake/deps.sh core test python format
part format script cmake/format.sh --check
part build step build release
part tests cases ctests release
part python cases python_tests bindings/python/tests tests/python_engine
part quickstart script examples/quickstart.sh --quick
part install step cmake --install build/release --prefix "$prefix"
part readme script "$venv/bin/python" tests/readme.py "$prefix" "$venv/bin/python"
part golden-c script build/release/tests/golden/make/golden_runner tests/golden/*.txt
part golden-python script bindings/python/wheel.sh
part rust counted bindings/rust/test.sh "$prefix"
part java counted bindings/java/test.sh "$prefix"
part go counted bindings/go/test.sh "$prefix"
part languages shown golden_lines
# The NEON target: what computes, in an emulator, which is slow.
if [ "$(uname -m)" != aarch64 ]; then
  computing=(core_{attend,decode,select,shared,stage1_edges,summaries,topk}_test
    conformance_{bits,degenerate,nonfinite,stage1,stage2,state,ties}_test capi_{selection,states,windows})
  part deps-arm64 step cmake/deps.sh core test arm64
  part build-arm64 step build arm64 "${computing[@]}" golden_runner
  RKV_TEST_SCALE=0.03 part arm64 cases ctests arm64 '' -R "$(one_of "${computing[@]}" golden_neon)"
fi
part accuracy script tests/accuracy/run.sh
part build-asan step build asan
for simd in $(simd_targets); do
  part "asan-$simd" cases ctests asan "$simd"
done
# What several threads touch: the pool, both stages shared between threads, callers side by side.
threaded=(core_pool_test core_shared_test conformance_threads_test conformance_process_test capi_in_use capi_caches capi_silence)
part build-tsan step build tsan "${threaded[@]}"
part tsan cases ctests tsan '' -R "$(one_of "${threaded[@]}")"

[ "${wanted[0]:-}" != --list ] || exit 0
echo
[ $skipped = 0 ] || echo "$skipped skipped"
echo "$passed passed, $failed failed"
[ $failed = 0 ]
