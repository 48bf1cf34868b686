#!/usr/bin/env bash
# deb.sh CPACK BUILD SOURCE VERSION CC: makes the Debian packages, unpacks them into a clean root and
# uses them from there. The library's package holds the library alone, the other the rest.
set -euo pipefail
cpack=$1 build=$2 source=$3 version=$4 cc=$5
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
soname=${version%%.*}

(cd "$build" && "$cpack" -G DEB -B "$dir/packages") >"$dir/log" 2>&1 || { cat "$dir/log"; exit 1; }
field() { dpkg-deb -f "$1" "$2"; }
lib=$(echo "$dir"/packages/"librkv${soname}_${version}"_*.deb)
dev=$(echo "$dir"/packages/"librkv-dev_${version}"_*.deb)
[ "$(field "$lib" Package) $(field "$lib" Version)" = "librkv$soname $version" ]
[ "$(field "$dev" Package) $(field "$dev" Version)" = "librkv-dev $version" ]
[ "$(field "$dev" Depends)" = "librkv$soname (= $version)" ]
# The loader and libc, nothing else.
[[ $(field "$lib" Depends) =~ ^libc6\ \([^,]*\)$ ]] || { field "$lib" Depends; exit 1; }

dpkg-deb -x "$lib" "$dir/root"
others=$(cd "$dir/root" && find . -type f -o -type l | grep -vE '/librkv\.so\.[0-9.]+$|/LICENSE$' || true)
[ -z "$others" ] || { echo "in librkv$soname: $others"; exit 1; }
dpkg-deb -x "$dev" "$dir/root"
libdir=$(dirname "$(find "$dir/root" -name "librkv.so.$version")")
export PKG_CONFIG_PATH=$libdir/pkgconfig LD_LIBRARY_PATH=$libdir
[ "$(pkg-config --modversion rkv)" = "$version" ]
read -ra flags <<<"$(pkg-config --cflags --libs rkv)"
for example in minimal layouts; do
  "$cc" -std=c11 "$source/examples/c/$example.c" "${flags[@]}" -o "$dir/$example"
  "$dir/$example" >"$dir/$example.out"
done
echo "librkv$soname, librkv-dev $version: minimal.c and layouts.c run"
