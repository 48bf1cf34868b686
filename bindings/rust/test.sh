#!/usr/bin/env bash
# bindings/rust/test.sh PREFIX: builds, checks and tests the Rust binding against the librkv that is
# installed in PREFIX, packages both crates, uses the packages alone, and runs the candle example. The
# last two lines are
#   golden: N cases, checksum X
#   tests: P passed, F failed, S skipped
# Exit 1 on a failure, 77 where there is no Rust toolchain and none can be installed.
set -uo pipefail
prefix=$(cd "${1:?usage: test.sh PREFIX}" && pwd) || exit 1
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1
root=$(cd ../.. && pwd)
build=$root/build/rust
least=1.90 # packages two crates of which one needs the other; the crates themselves need 1.85

at_least() { [ "$(printf '%s\n' "$1" "$2" | sort -V | head -n 1)" = "$2" ]; }
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }
new_enough() {
  local version
  version=$(cargo --version 2>/dev/null) && at_least "$(cut -d ' ' -f 2 <<<"$version")" "$least" &&
    cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1
}
# Debian's compiler is old; beside it Debian keeps the one that its browsers are built with.
install_toolchain() {
  command -v apt-get >/dev/null || return 1
  as_root apt-get update -q >&2
  local name version
  for name in 'rustc cargo rustfmt rust-clippy' 'rustc-web cargo-web rustfmt-web rust-web-clippy'; do
    version=$(apt-cache policy "${name%% *}" 2>/dev/null | awk '/Candidate:/ {print $2}')
    if [ -n "$version" ] && at_least "$version" "$least"; then
      # shellcheck disable=SC2086
      as_root apt-get install -y -q $name >&2 && return
    fi
  done
  return 1
}
if ! new_enough && ! { install_toolchain && hash -r && new_enough; }; then
  echo "skipped: rust: install Rust $least or newer with rustfmt and clippy (rustup.rs, or Debian's rustc-web cargo-web rustfmt-web rust-web-clippy)"
  exit 77
fi
if ! command -v pkg-config >/dev/null || ! command -v cc >/dev/null; then
  as_root apt-get install -y -q pkg-config gcc libc6-dev >&2
fi

export RKV_DIR=$prefix CARGO_TERM_COLOR=never CARGO_BUILD_JOBS=${CARGO_BUILD_JOBS:-2}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
passed=0 failed=0 skipped=0

# part NAME COMMAND...: counts the tests that `cargo test` sums up; a command without any is one.
part() {
  local name=$1 start=$SECONDS code=0 good=0 bad=0 left=0 one
  shift
  "$@" >"$log" 2>&1 </dev/null || code=$?
  while read -r -a one; do # test result: ok. 3 passed; 0 failed; 1 ignored; ...
    good=$((good + one[3])) bad=$((bad + one[5])) left=$((left + one[7]))
  done < <(grep '^test result: ' "$log")
  if [ $((good + bad + left)) = 0 ] && [ $code = 0 ]; then good=1; fi
  if [ $code != 0 ] && [ $bad = 0 ]; then bad=1; fi
  passed=$((passed + good)) failed=$((failed + bad)) skipped=$((skipped + left))
  printf '%-10s %5d s  %d passed, %d failed, %d skipped\n' "$name" $((SECONDS - start)) \
    "$good" "$bad" "$left"
  [ $bad = 0 ] || tail -n "${RKV_LOG_LINES:-60}" "$log" | sed 's/^/    /'
}

format() {
  cargo fmt --all --check && cargo fmt --check --manifest-path "$root/examples/rust/candle-smollm2/Cargo.toml"
}
lint() { cargo clippy --locked --all-targets --all-features -- -D warnings; }

# Documentation needs no library at all.
document() {
  env -u RKV_DIR PKG_CONFIG_LIBDIR=/nonexistent DOCS_RS=1 RUSTDOCFLAGS='-D warnings' \
    cargo doc --locked --no-deps --all-features --target-dir "$build/doc"
}

# A build that finds no library says where it looked.
not_found() {
  local code=0 text
  text=$(RKV_DIR=/nonexistent PKG_CONFIG_LIBDIR=/nonexistent PKG_CONFIG_PATH='' \
    cargo check --locked -p rkv-sys --target-dir "$build/doc" 2>&1) || code=$?
  echo "$text"
  [ $code != 0 ] && grep -q 'RKV_DIR: /nonexistent/lib: ' <<<"$text" && grep -q 'pkg-config: ' <<<"$text"
}

# The committed bindings are what this header gives. libclang comes as a Python package.
bindings() {
  local clang=$root/.deps/libclang
  if [ ! -e "$clang/clang/native/libclang.so" ]; then
    "$root/cmake/deps.sh" core python &&
      "$root/.deps/venv/bin/pip" --disable-pip-version-check install -q --no-deps --target "$clang" libclang==18.1.1 ||
      return 1
  fi
  LIBCLANG_PATH=$clang/clang/native cargo run --quiet --locked -p xtask -- bindings --check \
    -isystem "$(cc -print-file-name=include)"
}

# Both crates as they would be published, then a program that has nothing but them and pkg-config.
package() {
  local app=$build/package-test version
  cargo package --locked --allow-dirty -p rkv-sys -p rkv || return 1
  version=$(cargo pkgid -p rkv) && version=${version##*[#@]}
  rm -rf "$app" && mkdir -p "$app/src" || return 1
  for crate in rkv-sys rkv; do
    tar -xzf "$build/package/$crate-$version.crate" -C "$app" || return 1
  done
  cp "$app/rkv-$version/examples/minimal.rs" "$app/src/main.rs"
  cat >"$app/Cargo.toml" <<END
[package]
name = "package-test"
version = "0.0.0"
edition = "2021"
[dependencies]
rkv = "=$version"
[patch.crates-io]
rkv = { path = "rkv-$version" }
rkv-sys = { path = "rkv-sys-$version" }
[workspace]
END
  local text
  text=$(cd "$app" && unset RKV_DIR && PKG_CONFIG_PATH=$prefix/lib/pkgconfig cargo run --target-dir target) || return 1
  echo "$text"
  version=$(sed -n 's/^Version: //p' "$prefix/lib/pkgconfig/rkv.pc")
  [[ $text == "librkv $version: kept "* ]]
}

golden() { cargo run --quiet --locked -p rkv --example golden -- "$root"/tests/golden/*.txt; }

part format format
part lint lint
part doc document
part not-found not_found
part tests cargo test --locked --all-features
part bindings bindings
part package package
part engine "$root/examples/rust/run.sh" "$prefix"
part golden golden
tail -n 1 "$log"
echo "tests: $passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
