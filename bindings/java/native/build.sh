#!/usr/bin/env bash
# build.sh PREFIX BUILD: the JNI library against the librkv that is installed in PREFIX. Leaves
# BUILD/java (generated sources) and BUILD/resources (the libraries, as they go into the jar).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
prefix=${1:?build.sh PREFIX BUILD} build=${2:?build.sh PREFIX BUILD}
[ -e "$prefix/include/rkv/rkv.h" ] || { echo "no include/rkv/rkv.h in '$prefix': -Drkv.prefix" >&2; exit 1; }
mkdir -p "$build"
prefix=$(cd "$prefix" && pwd) build=$(cd "$build" && pwd)
swig=${SWIG:-$here/../../../.deps/venv/bin/swig}
[ -x "$swig" ] || swig=$(command -v swig) ||
  { echo "no swig >= 4.1 (cmake/deps.sh python installs it; or set SWIG)" >&2; exit 1; }
cmake -S "$here" -B "$build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$prefix" \
  -DSWIG_EXECUTABLE="$swig" >"$build.log" 2>&1 && cmake --build "$build" >>"$build.log" 2>&1 ||
  { tail -n 40 "$build.log" >&2; exit 1; }
"$build/rkv_layout" >"$build/layout.txt"
