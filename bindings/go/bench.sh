#!/usr/bin/env bash
# bindings/go/bench.sh PREFIX: what a call costs from Go, against the librkv of PREFIX; one line.
set -euo pipefail
prefix=$(cd "${1:?usage: bench.sh PREFIX}" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")"
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
GOFLAGS=-buildvcs=false go run ./cmd/rkv-bench
