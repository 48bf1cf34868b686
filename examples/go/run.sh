#!/usr/bin/env bash
# examples/go/run.sh PREFIX: a small engine in plain Go runs SmolLM2 (examples/model.sh fetches it) with
# the librkv of PREFIX as its decode attention, and checks its tokens.
set -euo pipefail
prefix=$(cd "${1:?usage: run.sh PREFIX}" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")/engine"
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export GOFLAGS=-buildvcs=false
model=$(../../model.sh)
go vet .
go run . "$model" ../../../tests/golden/smollm2-greedy.json
