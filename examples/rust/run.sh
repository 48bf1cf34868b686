#!/usr/bin/env bash
# examples/rust/run.sh PREFIX: builds the candle example beside the librkv that is installed there, and
# runs it once on the real model.
set -euo pipefail
prefix=$(cd "${1:?usage: examples/rust/run.sh PREFIX}" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")/candle-smollm2"
model=$(../../model.sh)
RKV_DIR=$prefix exec cargo run --quiet --release --locked -- "$model" ../../../tests/golden
