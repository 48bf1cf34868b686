#!/usr/bin/env bash
# bindings/java/test.sh PREFIX: builds, checks and tests the Java binding against the librkv that is
# installed in PREFIX, packages it, and uses the package alone. The last two lines are
#   golden: N cases, checksum X
#   tests: P passed, F failed, S skipped
# Exit 1 on a failure, 77 where there is no Java toolchain and none can be installed.
set -uo pipefail
prefix=$(cd "${1:?test.sh PREFIX}" && pwd) || exit 1
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
java_toolchain
passed=0 failed=0 skipped=0

# step NAME COMMAND...: one test case; 77 is a skip that has said why.
step() {
  local name=$1 code=0 start=$SECONDS
  shift
  "$@" || code=$?
  case $code in
    0) passed=$((passed + 1)) ;;
    77) skipped=$((skipped + 1)) ;;
    *) failed=$((failed + 1)) ;;
  esac
  printf '%-10s %4d s  %s\n' "$name" $((SECONDS - start)) \
    "$([ $code = 0 ] && echo passed || { [ $code = 77 ] && echo skipped || echo FAILED; })"
}

# The JUnit cases count one by one; a failed build counts as one.
reports=$build/target/surefire-reports
# sum ATTRIBUTE: over the heads of all suites
sum() {
  echo $(($(sed -n 's/^<testsuite .* '"$1"'="\([0-9]*\)".*/\1/p' "$reports"/*.xml | paste -sd+)))
}
units() {
  rm -rf "$reports" "$jar"
  maven "$prefix" fmt:check package || { [ -e "$reports" ] || return 1; }
  local all bad left
  all=$(sum tests) bad=$(($(sum errors) + $(sum failures))) left=$(sum skipped)
  passed=$((passed + all - bad - left)) failed=$((failed + bad)) skipped=$((skipped + left))
  [ -e "$jar" ] && [ "$all" -gt 0 ]
}

# What -Xcheck:jni found is printed into the reports, or beside them where it broke the channel.
silent_jni() {
  ! grep -rhE '(WARNING|FATAL ERROR) in native method' "$reports"
}

golden() {
  golden=$(java -Xcheck:jni -cp "$jar:$build/target/test-classes" \
    io.github.librkv.GoldenRunner "$root"/tests/golden/*.txt) || { echo "$golden"; return 1; }
  [[ $golden =~ ^golden:\ [1-9][0-9]*\ cases,\ checksum\ [0-9a-f]{16}$ ]]
}
golden='golden: 0 cases, checksum 0000000000000000'

# The jar alone in a clean folder: the README's programs, and versions that agree.
package() (
  set -e
  clean=$(mktemp -d)
  trap 'rm -rf "$clean"' EXIT
  unset LD_LIBRARY_PATH
  cp "$jar" "$clean/rkv.jar"
  cd "$clean"
  awk '/^```java$/ { n++; inside = 1; next } /^```$/ { inside = 0 } inside { print > "Readme" n ".java" }' \
    "$root/bindings/java/README.md"
  [ -e Readme1.java ]
  for program in Readme*.java; do java -cp rkv.jar "$program"; done
  jar xf rkv.jar META-INF
  grep -q "^Implementation-Version: $version" META-INF/MANIFEST.MF
  [ -s META-INF/LICENSE ]
)

# As a Maven user has it: deployed to a repository of its own, and resolved from there.
consumer() (
  set -e
  clean=$(mktemp -d)
  trap 'rm -rf "$clean"' EXIT
  unset LD_LIBRARY_PATH
  maven "$prefix" deploy -DskipTests -DaltDeploymentRepository="clean::file://$clean/repository"
  cp -r "$root/bindings/java/consumer" "$clean/consumer"
  mvn -q -B -f "$clean/consumer/pom.xml" -Drkv.repository="file://$clean/repository" \
    -Drkv.version="$version" -U compile exec:java
)

"$root/cmake/deps.sh" core python || exit 1
step units units
step jni silent_jni
step golden golden
step package package
step consumer consumer
step calls "$root/bindings/java/bench/run.sh" "$prefix"
step engine "$root/examples/java/run.sh" "$jar"
step ffm "$root/examples/java/ffm/run.sh" "$jar"
echo "$golden"
echo "tests: $passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
