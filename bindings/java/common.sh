# Sourced by the scripts here and in examples/java: where things lie, and the tools.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$root/build/java
version=$(sed -n 's|^  <version>\(.*\)</version>$|\1|p' "$root/bindings/java/pom.xml" | head -n 1)
jar=$build/target/rkv-$version.jar

# java_release JAVA: its number, 0 where it does not run.
java_release() {
  local release
  release=$("$1" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1)
  echo "${release:-0}"
}

# newest_jdk LEAST: the home of the newest JDK that the system's usual folders hold.
newest_jdk() {
  local home best='' most=$(($1 - 1)) release
  for home in "${JAVA_HOME:-}" /usr/lib/jvm/* /opt/*jdk*; do
    if [ -x "$home/bin/javac" ]; then
      release=$(java_release "$home/bin/java")
      if [ "$release" -gt "$most" ]; then best=$home most=$release; fi
    fi
  done
  [ -z "$best" ] || echo "$best"
}

java_ready() {
  command -v javac >/dev/null && command -v mvn >/dev/null &&
    [ "$(java_release java)" -ge 17 ]
}

# Debian's packages where the toolchain is missing; 77 where that cannot be.
java_toolchain() {
  java_ready && return
  local run=()
  [ "$(id -u)" = 0 ] || run=(sudo -n)
  if command -v apt-get >/dev/null; then
    { "${run[@]}" apt-get update -qq && "${run[@]}" env DEBIAN_FRONTEND=noninteractive \
      apt-get install -qq -y --no-install-recommends openjdk-17-jdk-headless maven; } >/dev/null 2>&1 || true
  fi
  java_ready && return
  echo "skipped: java: install a JDK >= 17 and Maven (Debian: openjdk-17-jdk-headless maven)"
  exit 77
}

# maven PREFIX ARGUMENT...
maven() {
  local prefix=$1
  shift
  mvn -q -B -f "$root/bindings/java/pom.xml" -Drkv.prefix="$prefix" "$@"
}
