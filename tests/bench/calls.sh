#!/usr/bin/env bash
# tests/bench/calls.sh [PREFIX]: what a call of librkv costs from each language, as a table. PREFIX is
# where it is installed (default: build/prefix, where tests/run.sh installs it). A language whose tools
# are missing has no row.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
prefix=$(cd "${1:-build/prefix}" && pwd)
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib RKV_DIR=$prefix
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

c() {
  local flags
  read -ra flags <<<"$(pkg-config --cflags --libs rkv)"
  cc -std=c11 -O2 tests/bench/calls.c "${flags[@]}" -o "$dir/calls" && "$dir/calls"
}
python() { .deps/quickstart-venv/bin/python bindings/python/tests/bench.py; }
rust() {
  CARGO_TARGET_DIR=$PWD/build/rust cargo run -q --release --locked -p rkv --example call_cost \
    --manifest-path bindings/rust/Cargo.toml
}
java() (
  unset LD_LIBRARY_PATH
  bindings/java/bench/run.sh "$prefix"
)
go() { bindings/go/bench.sh "$prefix"; }

echo '| language | trivial call | `rkv_decode`, one row | a token of 32 layers |'
echo '|---|---:|---:|---:|'
for language in c rust go java python; do
  if line=$($language 2>"$dir/log" | grep '^calls '); then
    sed -n 's/^calls \(.*\): trivial \(.*\), decode \(.*\), token \(.*\)$/| \1 | \2 | \3 | \4 |/p' <<<"$line"
  else
    echo "calls: $language: $(tail -n 1 "$dir/log")" >&2
  fi
done
