#!/usr/bin/env bash
# tests/bench/run.sh [--json FILE] [--markdown FILE] [--quick] [--no-peers] [--threads N] [--rounds N]
#                    [--only decode|stage1|pieces|threads|memory|peers|topk]
#
# Builds what is needed (release) and prints the table of speed and memory: each row a ratio inside one
# process, with its floor, its goal and the bandwidth of plain reads of the same run. Exit status 1
# where a row is below its floor. --quick: one type of K and V, shorter prompts in stage 1.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$root/build/bench
args=("$@") peers=1 threads=$(($(nproc) < 2 ? 1 : 2)) rounds=15 quick= only=
for ((i = 0; i < $#; ++i)); do
  case ${args[i]} in
    -h | --help) sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 0 ;;
    --no-peers) peers=0 ;;
    --quick) quick=--quick ;;
    --only) only=${args[i + 1]:?--only needs a part} ;;
    --threads) threads=${args[i + 1]:?--threads needs a number} ;;
    --rounds) rounds=${args[i + 1]:?--rounds needs a number} ;;
    # The program runs elsewhere than the caller.
    --json | --markdown) args[i + 1]=$(realpath -m "${args[i + 1]:?${args[i]} needs a file}") ;;
  esac
done

say() { echo "bench: $*" >&2; }
if [ $peers = 1 ]; then "$root/tests/bench/peers.sh" >&2 || say "running without the missing peers"; fi
mkdir -p "$build"
{ cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DRKV_BUILD_TESTS=OFF \
    -DRKV_BUILD_BENCH=ON && nice cmake --build "$build" -j 2; } >"$build/build.log" 2>&1 ||
  { tail -n 40 "$build/build.log" >&2; exit 3; }

# Settings meant for older OpenBLAS would slow the one here, and so flatter stage 1.
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE
unset RKV_SIMD
extra=()
for library in "$root"/.deps/peers/venv/lib/python3*/site-packages/numpy.libs/libscipy_openblas64*.so; do
  [ ! -e "$library" ] || extra+=(--openblas "$library")
done
python=$root/.deps/peers/venv/bin/python
if [ $peers = 1 ] && [[ -z $only || $only = peers ]] && [ -x "$python" ]; then
  say "onnxruntime beside dense decode"
  if "$python" "$root/tests/bench/ort_gqa.py" $quick --library "$build/tests/bench/librkv_bench_dense.so" \
      --threads "$threads" --rounds "$rounds" --output "$build/onnxruntime.txt" >&2; then
    extra+=(--onnxruntime "$build/onnxruntime.txt")
  else
    say "onnxruntime failed"
  fi
fi
exec "$build/tests/bench/rkv_bench" "${args[@]}" "${extra[@]}"
