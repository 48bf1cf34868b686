#!/usr/bin/env bash
# header.sh CC CXX INCLUDE: each public header compiles alone and twice in one file, as C11
# -pedantic and as C++17, with warnings as errors; rkv.h includes nothing but stdint.h and stddef.h.
set -euo pipefail
cc=$1 cxx=$2 include=$3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
flags=(-Wall -Wextra -Wpedantic -pedantic-errors -Werror -fsyntax-only -I "$include")

for header in "$include"/rkv/*.h; do
  name=rkv/${header##*/}
  echo "#include <$name>" >"$dir/once.c"
  printf '#include <%s>\n#include <%s>\n' "$name" "$name" >"$dir/twice.c"
  for source in once twice; do
    # A file of declarations alone is no program to -pedantic: give it one of its own.
    echo 'extern int rkv_header_test;' >>"$dir/$source.c"
    cp "$dir/$source.c" "$dir/$source.cpp"
    "$cc" -std=c11 "${flags[@]}" -Wstrict-prototypes "$dir/$source.c"
    "$cxx" -std=c++17 "${flags[@]}" "$dir/$source.cpp"
    echo "$name: $source, C11 and C++17"
  done
done

others=$(grep -E '^ *# *include' "$include/rkv/rkv.h" | grep -vE '<(stdint|stddef)\.h>' || true)
if [ -n "$others" ]; then
  echo "rkv.h includes more than stdint.h and stddef.h: $others"
  exit 1
fi
bad=$(sed 's://.*::; s:/\*.*\*/::' "$include/rkv/rkv.h" | grep -oE '^ *# *define +[A-Za-z_0-9]+' |
  awk '{print $NF}' | grep -vE '^(RKV|rkv)_' || true)
if [ -n "$bad" ]; then
  echo "rkv.h defines names outside RKV_: $bad"
  exit 1
fi
