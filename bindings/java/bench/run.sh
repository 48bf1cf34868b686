#!/usr/bin/env bash
# bindings/java/bench/run.sh PREFIX: what a call costs from Java, against the librkv of PREFIX. Prints
#   calls java: trivial A ns, decode B ns, token C ns
set -euo pipefail
prefix=$(cd "${1:?run.sh PREFIX}" && pwd)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/../common.sh"
[ -e "$jar" ] || maven "$prefix" package -DskipTests
mkdir -p "$build/bench"
javac -Xlint:all -Werror -cp "$jar" -d "$build/bench" "$here/CallCost.java"
# librkv of PREFIX, not the one that was there when the jar was made.
shim=$(mktemp -d)
trap 'rm -rf "$shim"' EXIT
(cd "$shim" && jar xf "$jar" io/github/librkv/native)
cp "$prefix/lib/librkv.so.0" "$shim"/io/github/librkv/native/*/
java -Drkv.library.path="$(echo "$shim"/io/github/librkv/native/*)" -cp "$jar:$build/bench" CallCost
