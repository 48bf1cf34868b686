#!/usr/bin/env bash
# Installs the peers of the benchmark into .deps/peers; nothing of them is part of librkv.
#
#   tests/bench/peers.sh
#
#   ggml         from the source of the Python package llama-cpp-python, built alone
#   onnxruntime  in a virtual environment of its own
#   OpenBLAS     the one that numpy brings there: Debian 12's takes a newer processor for a Prescott
#
# What is there stays. Exit 1 if one is missing in the end; the benchmark runs without it.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
peers=$root/.deps/peers
source_version=0.3.36
mkdir -p "$peers"
missing=()
say() { echo "peers: $*"; }

cpu_flags=" $(sed -n '0,/^flags/s/^flags[^:]*://p' /proc/cpuinfo) "
has_flag() { [[ $cpu_flags == *" $1 "* ]]; }
on() { has_flag "$1" && echo ON || echo OFF; }

# GGML_NATIVE would also switch on AMX, whose code there ends in an illegal instruction.
ggml_options() {
  echo "-DGGML_AVX=$(on avx) -DGGML_AVX2=$(on avx2) -DGGML_FMA=$(on fma) -DGGML_F16C=$(on f16c)" \
    "-DGGML_BMI2=$(on bmi2) -DGGML_AVX512=$(on avx512bw) -DGGML_AVX512_VNNI=$(on avx512_vnni)" \
    "-DGGML_AVX512_VBMI=$(on avx512vbmi) -DGGML_AVX512_BF16=$(on avx512_bf16)"
}

build_ggml() {
  local work archive options
  work=$(mktemp -d)
  # Only the package's source is wanted; pip asks its build system for the metadata on the way.
  pip3 download -q --disable-pip-version-check --no-deps --no-binary llama-cpp-python \
    -d "$work" "llama-cpp-python==$source_version" || return 1
  archive=$(ls "$work"/llama_cpp_python-*.tar.gz) || return 1
  tar xzf "$archive" -C "$work" --strip-components=3 --wildcards '*/vendor/llama.cpp/ggml/*' ||
    return 1
  # The package leaves this template out, which a build of ggml alone asks for.
  [ -e "$work/ggml/ggml.pc.in" ] || : >"$work/ggml/ggml.pc.in"
  read -r -a options <<<"$(ggml_options)"
  nice cmake -S "$work/ggml" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DBUILD_SHARED_LIBS=OFF -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DGGML_NATIVE=OFF \
    -DGGML_CCACHE=OFF -DGGML_BUILD_TESTS=OFF -DGGML_BUILD_EXAMPLES=OFF \
    -DCMAKE_INSTALL_PREFIX="$peers" -DCMAKE_INSTALL_LIBDIR=lib "${options[@]}" &&
    nice cmake --build "$work/build" -j 2 && cmake --install "$work/build" || return 1
  printf '%s\n' "llama-cpp-python $source_version:" "${options[@]}" | sed -n '1p;s/^-DGGML_\(.*\)=ON$/\1/p' |
    paste -sd ' ' >"$peers/ggml.txt"
  rm -rf "$work"
}

if [ -e "$peers/lib/libggml-cpu.a" ] && [ -s "$peers/ggml.txt" ]; then say "ggml: found"; else
  say "ggml: building from llama-cpp-python $source_version"
  if build_ggml >"$peers/ggml.log" 2>&1; then say "ggml: installed"; else
    tail -n 15 "$peers/ggml.log" >&2
    missing+=(ggml)
  fi
fi

python=$peers/venv/bin/python
if "$python" -c 'import onnx, onnxruntime' 2>/dev/null; then say "onnxruntime: found"; else
  say "onnxruntime: installing"
  { [ -x "$python" ] || python3 -m venv "$peers/venv"; } &&
    "$python" -m pip install -q --disable-pip-version-check \
      'onnxruntime==1.32.0' 'onnx==1.23.2' numpy || missing+=(onnxruntime)
fi

[ ${#missing[@]} = 0 ] || { say "missing: ${missing[*]}" >&2; exit 1; }
