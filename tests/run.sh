#!/usr/bin/env bash
# tests/run.sh          installs what is missing, builds, and runs every test
# tests/run.sh PART...  only these parts (their names: tests/run.sh --list)
#
# Each part prints its seconds, its full output goes to build/logs/PART.log. The last line is
# "N passed, N failed": test cases of GoogleTest and pytest, and scripts; exit 1 if any failed.
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
passed=0 failed=0

# part NAME KIND COMMAND...: runs the command. KIND says what it counts for:
#   step    nothing, unless it fails
#   script  one test case
#   cases   the cases in the JUnit files that it leaves in build/results/NAME
part() {
  local name=$1 kind=$2 start=$SECONDS code=0 good=0 bad=0
  shift 2
  if [ "${wanted[0]:-}" = --list ]; then echo "$name"; return; fi
  if [ ${#wanted[@]} -gt 0 ] && [[ " ${wanted[*]} " != *" $name "* ]]; then return; fi
  mkdir -p "$results/$name"
  RESULTS=$results/$name "$@" >"$logs/$name.log" 2>&1 </dev/null || code=$?
  case $kind in
    script) good=1 ;;
    cases) read -r good bad < <("$python" tests/count.py "$results/$name") || good=0 bad=0 ;;
  esac
  # A part that failed, or ran no case, without saying which case failed, is itself a failure.
  if [ $code != 0 ] && [ "$kind" = script ]; then good=0; fi
  if [ "$bad" = 0 ] && { [ $code != 0 ] || [ "$kind$good" = cases0 ]; }; then bad=1; fi
  passed=$((passed + good)) failed=$((failed + bad))
  printf '%-16s %5d s  %s\n' "$name" $((SECONDS - start)) \
    "$([ "$kind$bad" = step0 ] && echo done || echo "$good passed, $bad failed")"
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

# The package as a user installs it, by the steps of the quickstart (--help runs only those).
python_tests() {
  examples/quickstart.sh --help &&
    "$venv/bin/pip" install -q --disable-pip-version-check pytest mypy ml_dtypes &&
    "$venv/bin/python" -m pytest -q --junit-xml "$RESULTS/pytest.xml" "$@"
}

# What the README shows, against an installed library and the package of the part before.
readme() {
  cmake --install build/release --prefix build/prefix &&
    "$venv/bin/python" tests/readme.py build/prefix "$venv/bin/python"
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
part readme script readme
part build-asan step build asan
for simd in $(simd_targets); do
  part "asan-$simd" cases ctests asan "$simd"
done
# What several threads touch: the pool, both stages shared between threads, callers side by side.
threaded=(core_pool_test conformance_threads_test conformance_process_test capi_in_use capi_caches capi_silence)
part build-tsan step build tsan "${threaded[@]}"
part tsan cases ctests tsan '' -R "^($(IFS='|'; echo "${threaded[*]}"))\$"

[ "${wanted[0]:-}" != --list ] || exit 0
echo
echo "$passed passed, $failed failed"
[ $failed = 0 ]
