#!/usr/bin/env bash
# run.sh CMAKE BUILD SOURCE VERSION CC: installs into a clean prefix, moves it, and uses it through
# pkg-config and through CMake; every version number that a user can see is the same.
set -euo pipefail
cmake=$1 build=$2 source=$3 version=$4 cc=$5
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
example=$source/examples/c/minimal.c

"$cmake" --install "$build" --prefix "$dir/first" >/dev/null
mv "$dir/first" "$dir/moved"
prefix=$dir/moved
library=$(find "$prefix" -name "librkv.so.$version" -type f)
[ -n "$library" ] || { echo "no librkv.so.$version installed"; exit 1; }
libdir=${library%/*}
[ -n "$(find "$prefix" -name LICENSE)" ] || { echo "no licence installed"; exit 1; }
if grep -rIlF -e "$source" -e "$dir/first" "$prefix" --include='*.pc' --include='*.cmake'; then
  echo "build or first install paths in the files above"
  exit 1
fi

export PKG_CONFIG_PATH=$libdir/pkgconfig LD_LIBRARY_PATH=$libdir
[ "$(pkg-config --modversion rkv)" = "$version" ] || { echo "pkg-config: other version"; exit 1; }
read -ra flags <<<"$(pkg-config --cflags --libs rkv)"
"$cc" -std=c11 -Wall -Wextra -Werror "$source/tests/install/version.c" "${flags[@]}" \
  -o "$dir/version"
[ "$("$dir/version")" = "$version" ] || { echo "rkv_version_string: other version"; exit 1; }
"$cc" -std=c11 -Wall -Wextra -Werror "$example" "${flags[@]}" -o "$dir/minimal"
"$dir/minimal" >"$dir/minimal.out"
echo "pkg-config: minimal.c runs"
read -ra flags <<<"$(pkg-config --cflags rkv)"
"$cc" -std=c11 -Wall -Wextra -Werror "${source}/examples/c/dlopen.c" "${flags[@]}" -ldl \
  -o "$dir/dlopen"
if "$dir/dlopen" "$dir/no-such-library.so" 2>/dev/null; then
  echo "dlopen.c runs without the library"
  exit 1
fi
"$dir/dlopen" "$libdir/librkv.so.${version%%.*}" >"$dir/dlopen.out"
echo "dlopen.c runs"

"$cmake" -S "$source/tests/install/consumer" -B "$dir/consumer" -DCMAKE_PREFIX_PATH="$prefix" \
  -DRKV_WANTED="$version" -DRKV_EXAMPLE="$example" -DCMAKE_C_COMPILER="$cc" >"$dir/log" 2>&1 &&
  "$cmake" --build "$dir/consumer" >>"$dir/log" 2>&1 || { cat "$dir/log"; exit 1; }
"$dir/consumer/consumer" >"$dir/consumer.out"
echo "find_package(rkv $version): minimal.c runs"
if "$cmake" -S "$source/tests/install/consumer" -B "$dir/refused" -DCMAKE_PREFIX_PATH="$prefix" \
  -DRKV_WANTED=99.0 -DRKV_EXAMPLE="$example" >/dev/null 2>&1; then
  echo "find_package(rkv 99.0) was satisfied by $version"
  exit 1
fi
