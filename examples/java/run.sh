#!/usr/bin/env bash
# examples/java/run.sh [JAR [NAME...]]: the engine in plain Java with librkv's attention, over the jar
# alone. JAR is the packaged binding, by default the one that bindings/java/test.sh leaves. NAME: only
# these prompts of tests/golden/smollm2-greedy.json.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/../../bindings/java/common.sh"
jar=${1:-$jar}
[ -e "$jar" ] || { echo "no $jar: bindings/java/test.sh PREFIX builds it" >&2; exit 1; }
model=$("$root/examples/model.sh")
clean=$(mktemp -d)
trap 'rm -rf "$clean"' EXIT
unset LD_LIBRARY_PATH
cp "$jar" "$clean/rkv.jar"
javac -Xlint:all -Werror -d "$clean/classes" -cp "$clean/rkv.jar" "$here"/engine/*.java
java -Xmx3g -cp "$clean/rkv.jar:$clean/classes" engine.Engine \
  "$model" "$root/tests/golden/smollm2-greedy.json" "${@:2}"
