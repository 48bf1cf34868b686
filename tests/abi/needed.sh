#!/usr/bin/env bash
# needed.sh READELF LIBRARY SONAME: the library drags nothing along but libc, libm and the loader,
# has no run path and no executable stack, and bears its SONAME.
set -euo pipefail
readelf=$1 library=$2 soname=$3
dynamic=$("$readelf" -dW "$library")

extra=$(sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' <<<"$dynamic" |
  grep -vE '^(libc|libm|libpthread|libdl|librt)\.so\.[0-9]+$|^ld-linux.*\.so\.[0-9]+$' || true)
[ -z "$extra" ] || { echo "needs more than libc: $extra"; exit 1; }
if grep -E '\((RPATH|RUNPATH|TEXTREL)\)' <<<"$dynamic"; then
  echo "run path or text relocations"
  exit 1
fi
found=$(sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p' <<<"$dynamic")
[ "$found" = "$soname" ] || { echo "SONAME is $found, not $soname"; exit 1; }
stack=$("$readelf" -lW "$library" | grep GNU_STACK)
[[ $stack != *RWE* ]] || { echo "executable stack"; exit 1; }
"$readelf" -SW "$library" | grep -q '\.debug_info' || { echo "built without -g"; exit 1; }
echo "$soname: libc only"
