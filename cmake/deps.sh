#!/usr/bin/env bash
# Installs what librkv is built and tested with.
#
#   cmake/deps.sh [--prefix DIR] [GROUP...]      (default: core test)
#
#   core    C++ compiler, CMake >= 3.24, Ninja, make, pkg-config, binutils, Highway >= 1.2 (static)
#   test    GoogleTest, abidiff, DLPack's header, what cpack -G DEB needs
#   arm64   compiler and emulator for 64-bit ARM; Highway and GoogleTest for it in DIR/arm64
#   python  Python >= 3.11 with venv and headers, SWIG >= 4.1 in DIR/venv
#   format  clang-format 19 in DIR/venv
#   tidy    clang-tidy 19 in DIR/venv (119 MB)
#
# What is found is used. System packages come from apt (root or sudo); Highway is built into DIR
# (default: .deps in the repository), which CMakeLists.txt searches by itself. The package sources
# of the system are read, never changed. Running it again is cheap.
#
# RKV_HWY_SOURCE=DIR  build Highway from this source tree instead of fetching it
# RKV_HWY_SUITE=NAME  suite whose Highway source is taken (Debian: trixie, Ubuntu: resolute)
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
prefix=$root/.deps
groups=()
while [ $# -gt 0 ]; do
  case $1 in
    --prefix) prefix=${2:?--prefix needs a folder}; shift ;;
    core | test | arm64 | python | format | tidy) groups+=("$1") ;;
    -h | --help) sed -n '2,19s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "deps: unknown group '$1' (core test arm64 python format tidy)" >&2; exit 2 ;;
  esac
  shift
done
[ ${#groups[@]} -gt 0 ] || groups=(core test)
mkdir -p "$prefix"
prefix=$(cd "$prefix" && pwd)
# Two runs at once would build into the same folder: the second waits.
if command -v flock >/dev/null; then exec 9>"$prefix/.lock"; flock 9; fi

say() { echo "deps: $*"; }
die() { echo "deps: missing: $*" >&2; exit 1; }
has() { command -v "$1" >/dev/null 2>&1; }
# Shows what a command printed only if it fails.
quietly() {
  local log code=0
  log=$(mktemp)
  "$@" >"$log" 2>&1 || code=$?
  [ $code = 0 ] || tail -n 15 "$log" >&2
  rm -f "$log"
  return $code
}
wants() { [[ " ${groups[*]} " == *" $1 "* ]]; }
# at_least 3.25.1 3.24: is the first version not below the second?
at_least() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$2" ]; }

# ---- system packages --------------------------------------------------------------------------
apt_ready=0
apt_install() { # apt_install PACKAGE...
  has apt-get || die "$* (no apt-get here: install what these Debian packages hold, then run this again)"
  local run=()
  if [ "$(id -u)" != 0 ]; then
    has sudo || die "$* (needs root or sudo: apt-get install $*)"
    run=(sudo)
  fi
  run+=(env DEBIAN_FRONTEND=noninteractive apt-get)
  if [ $apt_ready = 0 ]; then
    say "apt-get update"
    quietly "${run[@]}" update -qq || die "package lists (apt-get update failed)"
    apt_ready=1
  fi
  say "apt-get install $*"
  quietly "${run[@]}" install -qq -y --no-install-recommends "$@" ||
    die "$* (apt-get install failed)"
}

# A found package is one that find_package finds; a shared Highway does not count, since librkv
# links it statically so as to drag no library along.
probe() { # probe PACKAGE VERSION [TARGET that must be a static library]
  local dir code=0
  dir=$(mktemp -d)
  cat >"$dir/CMakeLists.txt" <<PROBE
cmake_minimum_required(VERSION 3.24)
project(probe LANGUAGES CXX)
find_package($1 $2 REQUIRED)
if(NOT "${3:-}" STREQUAL "")
  get_target_property(type ${3:-none} TYPE)
  if(NOT type STREQUAL "STATIC_LIBRARY")
    message(FATAL_ERROR "${3:-} is \${type}")
  endif()
endif()
PROBE
  cmake -S "$dir" -B "$dir/build" -DCMAKE_PREFIX_PATH="$prefix" >"$dir/log" 2>&1 || code=1
  rm -rf "$dir"
  return $code
}

missing=()
has g++ || missing+=(g++)
has cmake || missing+=(cmake)
has ninja || missing+=(ninja-build)
has make || missing+=(make)
has pkg-config || missing+=(pkg-config)
has nm || missing+=(binutils)
has git || missing+=(git)
[ -e /etc/ssl/certs/ca-certificates.crt ] || missing+=(ca-certificates)
[ ${#missing[@]} = 0 ] || apt_install "${missing[@]}"
version=$(cmake --version | sed -n '1s/[^0-9]*\([0-9.]*\).*/\1/p')
at_least "$version" 3.24 || die "cmake >= 3.24 (found $version: for instance pip install 'cmake<4')"

# ---- Highway ----------------------------------------------------------------------------------
# Debian 12's own 1.0.3 is shared only and lacks the AVX-512 BF16 targets. The source comes through
# an apt root of its own (sources, lists, cache), so that the system's stay as they are.
fetch_highway() { # prints the source folder
  local apt=$prefix/apt src=$prefix/src suite uri components opts
  . /etc/os-release
  case ${ID:-} in
    ubuntu) suite=${RKV_HWY_SUITE:-resolute} ;;
    *) suite=${RKV_HWY_SUITE:-trixie} ;;
  esac
  # The mirror that already serves this system's own release.
  uri=$(apt-get indextargets --no-release-info --format '$(SITE)|$(RELEASE)' 'Created-By: Packages' |
    awk -F'|' -v r="${VERSION_CODENAME:-}" '$2 == r { print $1; exit }') || true
  [ -n "$uri" ] ||
    die "Highway >= 1.2 (apt has no source for ${VERSION_CODENAME:-this system}: set RKV_HWY_SOURCE)"
  rm -rf "$apt" "$src"
  mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$src"
  components=main
  [ "${ID:-}" != ubuntu ] || components='main universe'
  printf 'Types: deb-src\nURIs: %s\nSuites: %s\nComponents: %s\n' \
    "$uri" "$suite" "$components" >"$apt/highway.sources"
  opts=(-o Dir::Etc::sourcelist="$apt/highway.sources" -o Dir::Etc::sourceparts=-
    -o Dir::State::lists="$apt/lists" -o Dir::Cache="$apt/cache" -o APT::Sandbox::User=root)
  quietly apt-get "${opts[@]}" -qq update &&
    (cd "$src" && quietly apt-get "${opts[@]}" -qq source highway) ||
    die "Highway >= 1.2 (its source package from $suite could not be fetched: set RKV_HWY_SOURCE)"
  find "$src" -mindepth 1 -maxdepth 1 -type d -name 'highway-*' | head -n 1
}

# Builds into PREFIX/build, installs into PREFIX, leaves nothing else there.
cmake_install() { # cmake_install PREFIX SOURCE OPTION...
  local to=$1 source=$2
  shift 2
  quietly cmake -S "$source" -B "$to/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DBUILD_SHARED_LIBS=OFF -DBUILD_TESTING=OFF \
    -DCMAKE_INSTALL_PREFIX="$to" -DCMAKE_INSTALL_LIBDIR=lib "$@" &&
    quietly cmake --build "$to/build" -j 2 && quietly cmake --install "$to/build" || return 1
  rm -rf "$to/build"
}

build_highway() { # build_highway PREFIX OPTION...
  local to=$1 source=${RKV_HWY_SOURCE:-}
  shift
  if [ -z "$source" ]; then
    has apt-get || die "Highway >= 1.2 (no apt-get here: set RKV_HWY_SOURCE to its source tree)"
    has dpkg-source || apt_install dpkg-dev
    say "Highway: fetching the source package"
    source=$(fetch_highway)
  fi
  say "Highway: building ${source##*/} into $to"
  cmake_install "$to" "$source" -DHWY_ENABLE_TESTS=OFF -DHWY_ENABLE_EXAMPLES=OFF \
    -DHWY_ENABLE_CONTRIB=OFF "$@" || die "Highway >= 1.2 (its build failed)"
  rm -rf "$prefix/src" "$prefix/apt"
}

if wants core; then
  if probe hwy 1.2 hwy::hwy; then say "Highway >= 1.2: found"; else
    build_highway "$prefix"
    probe hwy 1.2 hwy::hwy || die "Highway >= 1.2 (built, but CMake does not find it in $prefix)"
    say "Highway: installed in $prefix"
  fi
fi

# ---- tests -----------------------------------------------------------------------
if wants test; then
  probe GTest 1.11 || apt_install libgtest-dev
  probe GTest 1.11 || die "GoogleTest >= 1.11 (CMake does not find it)"
  has abidiff || apt_install abigail-tools
  has dpkg-shlibdeps || ! has apt-get || apt_install dpkg-dev
  has file || ! has apt-get || apt_install file
  [ -e /usr/include/dlpack/dlpack.h ] || apt_install libdlpack-dev
  say "GoogleTest, abidiff, DLPack: found"
fi

# ---- 64-bit ARM -----------------------------------------------------------------------------------
if wants arm64; then
  arm64=$prefix/arm64
  toolchain=-DCMAKE_TOOLCHAIN_FILE=$root/cmake/aarch64.cmake
  missing=()
  has aarch64-linux-gnu-g++ || missing+=(g++-aarch64-linux-gnu)
  has qemu-aarch64-static || missing+=(qemu-user-static)
  [ -e /usr/src/googletest ] || missing+=(googletest)
  [ ${#missing[@]} = 0 ] || apt_install "${missing[@]}"
  [ -e "$arm64/lib/libhwy.a" ] || build_highway "$arm64" "$toolchain"
  [ -e "$arm64/lib/libgtest.a" ] ||
    cmake_install "$arm64" /usr/src/googletest -DBUILD_GMOCK=OFF "$toolchain" ||
    die "GoogleTest for 64-bit ARM (its build failed)"
  say "64-bit ARM: found"
fi

# ---- Python and the tools that come as wheels ---------------------------------------------------
python_ok() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }
find_python() {
  local p
  for p in python3 /usr/bin/python3 python3.13 python3.12 python3.11; do
    if python_ok "$p"; then python=$p; return 0; fi
  done
  return 1
}
venv() {
  [ ! -x "$prefix/venv/bin/pip" ] || return 0
  find_python || apt_install python3
  find_python || die "Python >= 3.11"
  "$python" -c 'import ensurepip, venv' 2>/dev/null || apt_install python3-venv
  say "Python: $("$python" --version 2>&1) in $prefix/venv"
  "$python" -m venv --clear "$prefix/venv" || die "python3-venv (making $prefix/venv failed)"
}
pip_install() { # pip_install REQUIREMENT...
  say "pip install $*"
  "$prefix/venv/bin/pip" install -q --disable-pip-version-check "$@" || die "$* (pip install failed)"
}
venv_has() { [ -x "$prefix/venv/bin/$1" ] && "$prefix/venv/bin/$1" "$2" 2>/dev/null | grep -q "$3"; }

if wants python; then
  venv
  header=$("$prefix/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h
  [ -e "$header" ] || apt_install python3-dev
  [ -e "$header" ] || die "Python.h (no $header)"
  if ! venv_has swig -version 'SWIG Version 4'; then pip_install 'swig==4.5.1'; fi
  say "SWIG: found"
fi
if wants format; then
  venv
  if ! venv_has clang-format --version 'version 19\.1'; then pip_install 'clang-format==19.1.7'; fi
  say "clang-format: found"
fi
if wants tidy; then
  venv
  if ! venv_has clang-tidy --version 'version 19\.1'; then pip_install 'clang-tidy==19.1.0.1'; fi
  say "clang-tidy: found"
fi
