#!/usr/bin/env bash
# examples/java/ffm/run.sh [JAR]: heap float[] into librkv without a copy, by java.lang.foreign. Needs a
# JDK >= 22, which is looked for in the usual folders; exit 77 without one.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/../../../bindings/java/common.sh"
jar=${1:-$jar}
[ -e "$jar" ] || { echo "no $jar: bindings/java/test.sh PREFIX builds it" >&2; exit 1; }
jdk=$(newest_jdk 22)
if [ -z "$jdk" ]; then
  echo "skipped: java ffm: install a JDK >= 22 (JAVA_HOME, or where Debian's lie)"
  exit 77
fi
clean=$(mktemp -d)
trap 'rm -rf "$clean"' EXIT
unset LD_LIBRARY_PATH
cp "$jar" "$clean/rkv.jar"
"$jdk/bin/javac" -Xlint:all,-restricted -Werror -d "$clean/classes" -cp "$clean/rkv.jar" "$here"/*.java
"$jdk/bin/java" --enable-native-access=ALL-UNNAMED -cp "$clean/rkv.jar:$clean/classes" ffm.HeapArrays
